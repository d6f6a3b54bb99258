//! Attaches a network namespace to a network, checks it, and detaches it: what a runtime does, with this crate's library.
//!
//! ```text
//! ip netns add blue
//! cargo run -p conformance --example run_list -- /opt/cni/bin mynet.conflist /run/netns/blue
//! ```

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cni_types::{ContainerId, IfName};
use conformance::libcni::{Cni, RuntimeConf, list_from_file};

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [plugins, list, netns] = arguments.as_slice() else {
        eprintln!("usage: run_list PLUGIN_DIRECTORY LIST NETNS");
        return ExitCode::from(2);
    };
    match run(plugins, list, netns) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("run_list: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(plugins: &Path, list: &Path, netns: &Path) -> Result<(), Box<dyn std::error::Error>> {
    // Where the plugins are. Attachments are remembered in /var/lib/cni, as every runtime of the host does.
    let cni = Cni::new([plugins.to_owned()]);
    let list = list_from_file(list)?;

    // Do all plugins know the list's version? Could an ADD work? Both are questions that cost little.
    cni.validate(&list)?;
    cni.status(&list)?;

    let attachment = RuntimeConf::new(ContainerId::new("example")?, netns, IfName::new("eth0")?);
    if let Some(result) = cni.add(&list, &attachment)? {
        println!("{result:#}");
    }
    let checked = cni.check(&list, &attachment);
    // Whatever CHECK says, what was attached is to be detached. DEL can be repeated until it succeeds.
    cni.del(&list, &attachment)?;
    checked?;
    Ok(())
}
