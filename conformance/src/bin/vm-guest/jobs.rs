//! Everything that can be run in the machine, by name.

use crate::checks::{self, OF_THE_MACHINE};

/// A program that succeeds if all is well.
pub struct Job {
    /// What a selection is compared with.
    pub name: String,
    /// The program with its arguments.
    pub command: Vec<String>,
    /// Whether what it prints is part of the report.
    pub shown: bool,
}

/// The lists of the demo.
const DEMO_LISTS: [&str; 4] = ["a", "b", "c", "d"];

/// The torture lists of plugins whose links many kernels lack, with the plugin.
const TORTURED: [(&str, &str); 4] = [("i", "ipvlan"), ("l", "vlan"), ("d", "dummy"), ("w", "vrf")];

/// What is done to them.
const TORTURES: [&str; 2] = ["kill", "fail"];

/// All of them; plugins are tortured at every so many calls.
pub fn all(every: &str) -> Vec<Job> {
    let checks = checks::all().map(|check| Job {
        name: check.name.to_owned(),
        command: check_command(check.name),
        shown: false,
    });
    let demos = DEMO_LISTS.iter().map(|list| Job {
        name: format!("demo_{list}"),
        command: words(&["/bin/demo", "--plugins", "/opt/cni/bin", list]),
        shown: false,
    });
    let tortures = TORTURED.iter().flat_map(|(list, plugin)| {
        TORTURES.iter().map(move |torture| Job {
            name: format!("torture_{torture}_{plugin}"),
            command: words(&[
                "/bin/torture",
                torture,
                "--plugins",
                "/opt/cni/bin",
                "--list",
                list,
                "--every",
                every,
                "--from",
                "41",
                "--jobs",
                "3",
            ]),
            shown: true,
        })
    });
    checks.chain(demos).chain(tortures).collect()
}

fn check_command(name: &str) -> Vec<String> {
    let command = words(&["/bin/sandbox", "/bin/vm-guest", "--check", name]);
    let is_alone = OF_THE_MACHINE.iter().any(|check| check.name == name);
    command.into_iter().skip(usize::from(is_alone)).collect()
}

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}
