//! What the Firecracker SDK does around the plugins: DEL before ADD, the list of its own pages with
//! an early version, and a static guest configuration out of the result.

use std::path::Path;

use conformance::chain::{Attachment, Network};
use conformance::facts::{addresses, interfaces, spellings};
use conformance::net::{HOST_V4, OUTSIDE_V4, Rtnl};
use conformance::probe::PATIENCE;
use serde_json::{Value, json};

use super::guest::Guest;
use super::support::{Lab, network, sandboxed};

const VM: &str = "4af6d2b0-7d5e-4c56-93f6-1e2a3b4c5d6e";

fn list(version: &str) -> Network {
    network(&json!({"cniVersion": version, "name": "fcnet", "plugins": [
        {"type": "ptp", "ipMasq": true,
         "ipam": {"type": "host-local", "subnet": "192.168.127.0/24", "resolvConf": "/etc/resolv.conf",
                  "routes": [{"dst": "0.0.0.0/0"}]}},
        {"type": "firewall"},
        {"type": "tc-redirect-tap"}]}))
}

fn attachment(netns: &Path) -> Attachment {
    Attachment::new(VM, netns).args(
        "IgnoreUnknown=1;TC_REDIRECT_TAP_NAME=vm7;TC_REDIRECT_TAP_UID=0;TC_REDIRECT_TAP_GID=0",
    )
}

/// What the kernel command line of the guest is made of.
#[derive(Debug)]
struct Guest4 {
    tap: String,
    mac: String,
    address: ipnetwork::Ipv4Network,
    gateway: std::net::Ipv4Addr,
}

/// The interface whose sandbox is the machine's id, the tap of the same name outside of it, and the
/// one IPv4 address on it; anything else is an error of the SDK's.
fn guest(result: &Value) -> Guest4 {
    let listed = interfaces(result);
    let inside: Vec<usize> = (0..listed.len())
        .filter(|index| listed[*index].sandbox == VM)
        .collect();
    assert_eq!(inside.len(), 1, "{result}");
    let machine = &listed[inside[0]];
    let tap: Vec<_> = listed
        .iter()
        .filter(|one| one.name == machine.name && one.sandbox != VM)
        .collect();
    assert_eq!(tap.len(), 1, "{result}");
    let index = u64::try_from(inside[0]).unwrap();
    let given: Vec<_> = addresses(result)
        .into_iter()
        .filter(|one| one.interface == Some(index))
        .collect();
    assert_eq!(given.len(), 1, "{result}");
    match (given[0].address, given[0].gateway) {
        (ipnetwork::IpNetwork::V4(address), Some(std::net::IpAddr::V4(gateway))) => Guest4 {
            tap: tap[0].name.clone(),
            mac: machine.mac.clone(),
            address,
            gateway,
        },
        _ => panic!("{result}"),
    }
}

fn nothing_left(lab: &Lab, result: &Value) {
    let after = lab.snapshot();
    let owners = addresses(result)
        .into_iter()
        .flat_map(|one| spellings(one.address.ip()));
    for owner in owners.chain([VM.to_owned()]) {
        assert!(
            after.mentioning(&owner).is_empty(),
            "{:?}",
            after.mentioning(&owner)
        );
    }
}

sandboxed! {
    fn del_before_add_and_a_guest_from_the_result(lab) {
        // Its pages have 0.3.1, which the reference set's firewall refuses, on DEL too.
        for version in ["0.3.1", "0.4.0", "1.0.0"] {
            let list = list(version);
            let netns = lab.container("vm");
            let mut attachment = attachment(netns.path());
            lab.del(&list, &attachment);
            let result = lab.add(&list, &mut attachment);
            assert_eq!(result["cniVersion"], version);
            let found = guest(&result);
            assert_eq!((found.tap.as_str(), found.address.prefix()), ("vm7", 24));
            assert_eq!(result["dns"]["nameservers"][0], "192.0.2.53");
            let rtnl = Rtnl::open(&netns).unwrap();
            assert_eq!(rtnl.link("vm7").unwrap().facts.kind, "tun");
            assert_eq!(rtnl.link("eth0").unwrap().facts.mac, found.mac);
            let mut machine = Guest::start(&netns, &found.tap, &found.mac, found.address.ip());
            assert!(machine.ping(found.gateway, found.gateway, PATIENCE), "{found:?}");
            let std::net::IpAddr::V4(outside) = OUTSIDE_V4 else { unreachable!() };
            assert!(machine.ping(found.gateway, outside, PATIENCE), "masqueraded as {HOST_V4}");
            drop(machine);
            lab.del(&list, &attachment);
            nothing_left(lab, &result);
        }
    }

    fn a_machine_that_died_is_cleaned_up_before_the_next_one_of_its_name(lab) {
        let list = list("0.3.1");
        let netns = lab.container("vm");
        let mut first = attachment(netns.path());
        let result = lab.add(&list, &mut first);
        // The process is gone and the namespace is not; the next start begins with DEL, without a result.
        first.result = None;
        lab.del(&list, &first);
        nothing_left(lab, &result);
        let again = lab.add(&list, &mut first);
        guest(&again);
        drop(netns);
        lab.rtnl().wait_links_gone("veth", 1, PATIENCE).unwrap();
        // The namespace's path is still given although nothing is there.
        lab.del(&list, &first);
        nothing_left(lab, &again);
    }
}
