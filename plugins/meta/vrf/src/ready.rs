//! Waiting until traffic flows again: the interface was down for a moment.

use std::time::{Duration, Instant};

use cni_types::result::CniResult;
use netlink::{Handle, Link};
use skel::log;

use crate::belongings::Belongings;
use crate::error::Error;

/// The longest wait for the kernel's deferred jobs, which take milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Waits until the interface's addresses are taken in by its VRF, and until its other end, and the bridge that one may be
/// a port of, have noticed that it is up again.
///
/// # Errors
/// When an address is not taken in.
pub fn wait(
    container: &Handle,
    vrf: &Link,
    moved: &Belongings,
    result: &CniResult,
) -> Result<(), Error> {
    let deadline = Instant::now() + PATIENCE;
    let link = &moved.link;
    if !link.is_running() {
        return Ok(());
    }
    container.wait_running(link, deadline)?;
    container.wait_settled_in(Some(vrf.index), link, |one| moved.had(one), deadline)?;
    if let Err(error) = wait_outside(link, result, deadline) {
        log::warn(format_args!("{error}"));
    }
    Ok(())
}

/// The other end is on the host, if the result says so.
fn wait_outside(link: &Link, result: &CniResult, deadline: Instant) -> netlink::Result<()> {
    let host = Handle::host()?;
    let outside = result
        .interfaces
        .iter()
        .filter(|one| one.sandbox.is_empty());
    for one in outside {
        let Ok(end) = host.link(&one.name) else {
            continue;
        };
        if !end.is_peer_of(link) {
            continue;
        }
        let end = host.wait_running(&end, deadline)?;
        if let Some(master) = end.master {
            host.wait_running(&master, deadline)?;
        }
    }
    Ok(())
}
