//! buildah: the network of a build step.

use std::fs;
use std::process::Command;

use conformance::net::HOST_V4;
use conformance::probe::Transport::Tcp;

use crate::image::{WAIT, archive};
use crate::machine::{Machine, Tool, cgroup, on_machine};
use crate::podman::containers_conf;

const TOOLS: [Tool; 4] = [
    ("buildah", "buildah"),
    ("runc", "runc"),
    ("busybox", "busybox-static"),
    ("tar", "tar"),
];

/// Asks the server outside, which answers with the address that it saw.
const ASK: &str = "ip -o -4 addr show eth0; nc 192.0.2.9 7000";

#[test]
#[ignore = "needs root and buildah"]
fn steps() {
    on_machine("buildah::steps", "buildah", &TOOLS, |machine| {
        let conf = containers_conf(machine);
        let buildah = |arguments: &[&str]| {
            let storage = machine.work().join("buildah");
            let mut command = machine.command("buildah");
            command
                .env("CONTAINERS_CONF", &conf)
                .arg("--root")
                .arg(storage.join("root"))
                .arg("--runroot")
                .arg(storage.join("run"))
                .args(["--storage-driver", "vfs"])
                .args(arguments);
            command
        };
        let image = archive(machine.work(), "localhost/bb:1", WAIT);
        machine.run(&mut buildah(&[
            "pull",
            &format!("docker-archive:{}", image.display()),
        ]));
        let _server = machine.serve(machine.host.outside(), Tcp, "192.0.2.9:7000", "outside");
        run(machine, &buildah);
        build(machine, &buildah);
        let version = machine.run(&mut buildah(&["--version"]));
        let what = "buildah run; buildah bud with a step that needs the network";
        machine.every_call_worked();
        machine.finish(&version, ("steps", what), &["cni-podman0"]);
    });
}

fn run(machine: &Machine, buildah: &dyn Fn(&[&str]) -> Command) {
    let group = format!("/{}", cgroup("buildah"));
    let from = [
        "from",
        "--pull-never",
        "--isolation",
        "oci",
        "--cgroup-parent",
        &group,
        "--name",
        "step",
        "localhost/bb:1",
    ];
    machine.run(&mut buildah(&from));
    let step = [
        "run",
        "--isolation",
        "oci",
        "--runtime",
        "runc",
        "step",
        "--",
        "sh",
        "-c",
        ASK,
    ];
    let seen = machine.run(&mut buildah(&step));
    judge(
        machine,
        "buildah run: eth0, and out with the host's address",
        &seen,
    );
    machine.run(&mut buildah(&["rm", "step"]));
}

fn build(machine: &Machine, buildah: &dyn Fn(&[&str]) -> Command) {
    let group = format!("/{}", cgroup("buildah"));
    let context = machine.work().join("context");
    fs::create_dir_all(&context).unwrap();
    fs::write(
        context.join("Dockerfile"),
        format!("FROM localhost/bb:1\nRUN {ASK}\n"),
    )
    .unwrap();
    let place = context.to_str().unwrap().to_owned();
    let bud = [
        "bud",
        "--pull-never",
        "--isolation",
        "oci",
        "--runtime",
        "runc",
        "--cgroup-parent",
        &group,
        &place,
    ];
    let seen = machine.run(&mut buildah(&bud));
    judge(machine, "buildah bud: the same for RUN", &seen);
}

#[track_caller]
fn judge(machine: &Machine, fact: &str, seen: &str) {
    assert!(
        seen.contains("10.88.0.") && seen.contains(&format!("outside {HOST_V4}")),
        "{seen}"
    );
    let line = seen.lines().find(|line| line.contains("outside ")).unwrap();
    machine.ok(fact, line);
}
