//! The floor under an ADD: makes the kernel objects that attaching one container to a bridge takes (the pair,
//! address, routes, elements in the packet filter), in one process and with as few system calls as it can. No
//! lease, no sysctl, no waiting, no check, nothing to take back.
//!
//! `FLOOR_NETNS` is the container's namespace, `FLOOR_NUMBER` tells one container from the other.

mod filter;
mod links;

use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

/// The bridge that a list has made before.
const BRIDGE: &str = "nomad";

fn main() -> ExitCode {
    match floor() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("floor: {error}");
            ExitCode::FAILURE
        }
    }
}

fn floor() -> Result<(), Box<dyn Error>> {
    if !Path::new("/run/sandbox/netns").exists() {
        return Err("refusing to work outside a sandbox".into());
    }
    let netns = File::open(std::env::var("FLOOR_NETNS")?)?;
    let number: u32 = std::env::var("FLOOR_NUMBER")?.parse()?;
    let elements = filter::open()?;
    let container = links::attach(&netns, number)?;
    links::configure(&container, number)?;
    filter::add(&elements, number)?;
    Ok(())
}
