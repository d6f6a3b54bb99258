//! What a result says of the virtual machine, and the other way round.

use cni_types::ContainerId;
use cni_types::result::{CniResult, Interface, Ip};

/// The tap and the machine's interface behind it.
#[derive(Debug)]
pub struct Machine<'a> {
    /// The interface that is to be set up within the machine.
    pub interface: &'a Interface,
}

/// The machine's interface: the one whose sandbox is the container id. Its name is the tap's.
pub fn find<'a>(result: &'a CniResult, id: &ContainerId) -> Option<Machine<'a>> {
    let mut listed = result.interfaces.iter();
    listed
        .rfind(|i| i.sandbox == id.as_str())
        .map(|interface| Machine { interface })
}

/// Adds the tap and the machine's interface to a result. The addresses of the container's interface are listed once more,
/// as the machine's.
pub fn describe(result: &mut CniResult, ifname: &str, tap: Interface, machine: Interface) {
    let is_of_container = |ip: &&Ip| {
        result
            .interface_of(ip)
            .is_some_and(|i| i.name == ifname && i.sandbox == tap.sandbox)
    };
    let given: Vec<Ip> = result.ips.iter().filter(is_of_container).cloned().collect();
    result.interfaces.extend([tap, machine]);
    let index = i64::try_from(result.interfaces.len() - 1).ok();
    result.ips.extend(given.into_iter().map(|ip| Ip {
        interface: index,
        ..ip
    }));
}
