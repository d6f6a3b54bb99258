//! A result says what there is.

use std::net::IpAddr;

use crate::facts;
use crate::judge::attach::Attached;
use crate::judge::check::{Check, Versions, spec};
use crate::judge::place::Families;
use crate::judge::profile::Role;
use crate::judge::trial::Trial;
use crate::judge::verdict::{Verdict, ensure, fault, skip};
use crate::net::Rtnl;

const INTERFACES: &str =
    "5 \"ADD Success\": interfaces holds all interfaces created by the attachment";

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "results.container-interface",
        title: "the interface in the container is in the list, with CNI_IFNAME and CNI_NETNS",
        clause: spec(INTERFACES),
        versions: Versions::EachFrom("0.3.0"),
        run: container_interface,
    },
    Check {
        id: "results.host-interfaces",
        title: "the interfaces without a sandbox are on the host",
        clause: spec("5 \"ADD Success\": sandbox is empty for interfaces of the host"),
        versions: Versions::NewestFrom("0.3.0"),
        run: host_interfaces,
    },
    Check {
        id: "results.true-mac",
        title: "the MAC address is the one that the interface has",
        clause: spec(INTERFACES),
        versions: Versions::EachFrom("0.3.0"),
        run: true_mac,
    },
    Check {
        id: "results.true-addresses",
        title: "the container's interface has exactly the addresses of the result",
        clause: spec("5 \"ADD Success\": ips are the addresses assigned by the attachment"),
        versions: Versions::Each,
        run: |trial| true_addresses(trial, Families::V4),
    },
    Check {
        id: "results.true-addresses-of-both-families",
        title: "the same with IPv4 and IPv6",
        clause: spec("5 \"ADD Success\": ips are the addresses assigned by the attachment"),
        versions: Versions::Newest,
        run: |trial| true_addresses(trial, Families::Both),
    },
    Check {
        id: "results.address-of-the-container",
        title: "each address names the interface in the container",
        clause: spec(
            "5 \"ADD Success\": interface is the index of the interface the address is of",
        ),
        versions: Versions::EachFrom("0.3.0"),
        run: address_of_container,
    },
    Check {
        id: "results.routes",
        title: "the routes of IPAM are in the result",
        clause: spec("5 \"ADD Success\": routes created by the attachment"),
        versions: Versions::Each,
        run: routes,
    },
];

fn interface_maker(trial: &Trial<'_>, families: Families) -> Verdict<Attached> {
    if trial.subject.profile().role != Role::Interface {
        return skip("it makes no interface with addresses");
    }
    let mut attached = trial.attach_with(families)?;
    trial.add(&mut attached)?;
    Ok(attached)
}

fn container_interface(trial: &Trial<'_>) -> Verdict {
    let mut attached = trial.attach()?;
    if !matches!(
        trial.subject.profile().role,
        Role::Interface | Role::Loopback
    ) {
        return skip("it makes no interface");
    }
    let result = trial.add(&mut attached)?;
    let found = facts::interfaces(&result)
        .into_iter()
        .any(|one| one.name == attached.ifname && one.sandbox == attached.path.to_string_lossy());
    ensure(found, || {
        format!(
            "{} in {} is not among the interfaces: {result}",
            attached.ifname,
            attached.path.display()
        )
    })
}

fn host_interfaces(trial: &Trial<'_>) -> Verdict {
    let attached = interface_maker(trial, Families::V4)?;
    let result = attached.result.clone().unwrap_or_default();
    for interface in facts::interfaces(&result) {
        if interface.sandbox.is_empty() {
            let found = trial.rtnl()?.link(&interface.name).is_ok();
            ensure(found, || {
                format!("there is no {} on the host: {result}", interface.name)
            })?;
        }
    }
    Ok(())
}

fn true_mac(trial: &Trial<'_>) -> Verdict {
    let attached = interface_maker(trial, Families::V4)?;
    let result = attached.result.clone().unwrap_or_default();
    for interface in facts::interfaces(&result) {
        let link = if interface.sandbox.is_empty() {
            trial.rtnl()?.link(&interface.name)
        } else {
            Rtnl::open(&attached.netns)?.link(&interface.name)
        };
        let Ok(link) = link else {
            return fault(format!("there is no {}: {result}", interface.name));
        };
        ensure(interface.mac.eq_ignore_ascii_case(&link.facts.mac), || {
            format!(
                "{} has the MAC address {}: {result}",
                interface.name, link.facts.mac
            )
        })?;
    }
    Ok(())
}

fn true_addresses(trial: &Trial<'_>, families: Families) -> Verdict {
    let attached = interface_maker(trial, families)?;
    let result = attached.result.clone().unwrap_or_default();
    let mut said: Vec<_> = facts::addresses(&result)
        .iter()
        .map(|one| one.address)
        .collect();
    let number = if families == Families::Both { 2 } else { 1 };
    ensure(said.len() == number, || {
        format!("expected {number} addresses: {result}")
    })?;
    let Ok(mut there) = Rtnl::open(&attached.netns)?.addresses_of(&attached.ifname) else {
        return fault(format!("there is no {} in the container", attached.ifname));
    };
    there.retain(|one| !matches!(one.ip(), IpAddr::V6(v6) if v6.is_unicast_link_local()));
    said.sort();
    there.sort();
    ensure(said == there, || {
        format!("the result says {said:?}, the interface has {there:?}")
    })
}

fn address_of_container(trial: &Trial<'_>) -> Verdict {
    let attached = interface_maker(trial, Families::V4)?;
    let result = attached.result.clone().unwrap_or_default();
    let interfaces = facts::interfaces(&result);
    for address in facts::addresses(&result) {
        let named = address
            .interface
            .and_then(|index| interfaces.get(usize::try_from(index).ok()?));
        ensure(
            named.is_some_and(|one| one.name == attached.ifname && !one.sandbox.is_empty()),
            || format!("{} names {named:?}: {result}", address.address),
        )?;
    }
    Ok(())
}

fn routes(trial: &Trial<'_>) -> Verdict {
    let attached = interface_maker(trial, Families::V4)?;
    let result = attached.result.clone().unwrap_or_default();
    let pointer = if trial.at_least("0.3.0") {
        "/routes/0/dst"
    } else {
        "/ip4/routes/0/dst"
    };
    let found = result.pointer(pointer).and_then(serde_json::Value::as_str);
    ensure(found == Some("0.0.0.0/0"), || {
        format!("the default route is missing: {result}")
    })
}
