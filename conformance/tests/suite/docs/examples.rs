//! Every example of a configuration is run as it stands.
//!
//! What the fence says decides: ```` ```json ```` is attached, checked and detached; ```` ```json,accept ```` needs something that
//! no test has (a DHCP server, a device), and must only make sense to its plugins; ```` ```json,result ```` is the result of an
//! ADD.

use cni_types::{CniResult, SpecVersion};
use conformance::Error;
use conformance::chain::{Attachment, Network, Verb};
use conformance::lists::nomad_ports;
use serde_json::{Value, json};

use super::super::support::{Lab, run, sandboxed, tool};
use super::page::{Page, all};

/// Error codes of a configuration that makes no sense.
const NONSENSE: [u64; 4] = [1, 2, 4, 7];

/// An example and where it is.
struct Example {
    place: String,
    info: String,
    value: Value,
}

fn examples() -> Vec<Example> {
    let mut found = Vec::new();
    for page in all() {
        found.extend(of(&page));
    }
    assert!(found.len() >= 15, "only {} examples", found.len());
    found
}

fn of(page: &Page) -> impl Iterator<Item = Example> {
    let blocks = page.blocks.iter().enumerate();
    blocks
        .filter(|(_, block)| block.info.starts_with("json"))
        .map(|(number, block)| {
            let place = format!("block {} of {}", number + 1, page.name());
            let value = serde_json::from_str(&block.code)
                .unwrap_or_else(|error| panic!("{place}: {error}"));
            Example {
                place,
                info: block.info.clone(),
                value,
            }
        })
}

/// A list that is not marked as JSON would not be run.
#[test]
fn every_configuration_is_marked_as_json() {
    for page in all() {
        for block in &page.blocks {
            let marked = block.info.starts_with("json");
            assert!(
                marked || !block.code.trim_start().starts_with('{'),
                "{}: a block looks like JSON, and its fence does not say so:\n{}",
                page.name(),
                block.code
            );
        }
    }
}

sandboxed! {
    fn examples_work(lab) {
        furnish(lab);
        let mut faults = Vec::new();
        for (number, example) in examples().iter().enumerate() {
            if let Err(fault) = try_out(lab, number, example) {
                faults.push(format!("{}: {fault}", example.place));
            }
        }
        assert!(faults.is_empty(), "\n{}", faults.join("\n"));
    }
}

/// What examples count on: interfaces of the usual names, with IPv4, and the chain that Nomad makes.
fn furnish(lab: &Lab) {
    for (name, far) in [("eth0", "far0"), ("eth1", "far1")] {
        lab.rtnl().add_veth(name, lab.host.outside(), far).unwrap();
        lab.rtnl().set_up(name).unwrap();
    }
    for family in ["iptables", "ip6tables"] {
        run(&tool(family, "iptables"), &["-N", "NOMAD-ADMIN"]);
    }
}

fn try_out(lab: &Lab, number: usize, example: &Example) -> Result<(), String> {
    match example.info.as_str() {
        "json" => attach(lab, number, example, !lacking(&example.value)),
        "json,accept" => attach(lab, number, example, false),
        "json,result" => CniResult::decode(&example.value, SpecVersion::V0_1_0)
            .map(drop)
            .map_err(|error| error.to_string()),
        other => Err(format!("nobody knows what to do with {other:?}")),
    }
}

/// Along the list and back. Without `must_work` the ADD may fail, but not because of what the configuration says.
fn attach(lab: &Lab, number: usize, example: &Example, must_work: bool) -> Result<(), String> {
    let network = Network::parse(&example.value.to_string()).map_err(|e| e.to_string())?;
    let name = format!("example{number}");
    let netns = lab.container(&name);
    let port = 20_000 + u16::try_from(number).unwrap();
    let mut attachment =
        Attachment::new(&name, netns.path()).capability("portMappings", nomad_ports(port, 80));
    let added = lab.ours.add(&network, &mut attachment);
    let outcome = match added {
        Ok(_) => verify(lab, &network, &attachment),
        Err(error) if must_work || is_nonsense(&error) => Err(error.to_string()),
        Err(_) => Ok(()),
    };
    lab.ours
        .del(&network, &attachment)
        .map_err(|e| e.to_string())?;
    outcome
}

fn verify(lab: &Lab, network: &Network, attachment: &Attachment) -> Result<(), String> {
    if network.has(Verb::Check) {
        lab.ours
            .check(network, attachment)
            .map_err(|e| e.to_string())?;
    }
    if network.has(Verb::Status) {
        lab.ours.status(network).map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn is_nonsense(error: &Error) -> bool {
    match error {
        Error::Plugin(failure) => failure
            .error
            .as_ref()
            .is_none_or(|object| NONSENSE.contains(&object.code)),
        _ => true,
    }
}

/// Whether a plugin of the list makes a kind of link that this kernel does not have, or names a user that the sandbox of
/// an ordinary user does not have.
fn lacking(list: &Value) -> bool {
    let single = [list.clone()];
    let plugins = list["plugins"]
        .as_array()
        .map_or(&single[..], Vec::as_slice);
    plugins.iter().any(|plugin| {
        if plugin["owner"].as_u64().is_some_and(|user| !has_user(user)) {
            return true;
        }
        let arguments: &[&str] = match plugin["type"].as_str().unwrap_or_default() {
            "dummy" => &["type", "dummy"],
            "ipvlan" => &["link", "eth0", "type", "ipvlan"],
            "macvlan" => &["link", "eth0", "type", "macvlan"],
            "vlan" => &["link", "eth0", "type", "vlan", "id", "7"],
            "vrf" => &["type", "vrf", "table", "7"],
            _ => return false,
        };
        !can_make(arguments)
    })
}

/// Whether the user namespace has this user, see user_namespaces(7).
fn has_user(user: u64) -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap();
    map.lines().any(|line| {
        let numbers: Vec<u64> = line
            .split_whitespace()
            .map(|n| n.parse().unwrap())
            .collect();
        (numbers[0]..numbers[0] + numbers[2]).contains(&user)
    })
}

fn can_make(arguments: &[&str]) -> bool {
    let ip = tool("ip", "iproute2");
    let made = std::process::Command::new(&ip)
        .args(["link", "add", "name", "trial0"])
        .args(arguments)
        .output()
        .unwrap();
    if made.status.success() {
        run(&ip, &["link", "del", "trial0"]);
    }
    made.status.success()
}

#[test]
fn nonsense_is_told_from_what_the_machine_lacks() {
    assert!(!NONSENSE.contains(&50) && !NONSENSE.contains(&999));
    assert!(!lacking(&json!({"type": "bridge"})));
    assert!(has_user(nix::unistd::getuid().as_raw().into()));
}
