//! CHECK.

use serde_json::json;

use crate::judge::check::{Check, Versions, spec};
use crate::judge::place::{Families, lease, merge};
use crate::judge::profile::Role;
use crate::judge::trial::Trial;
use crate::judge::verdict::{Verdict, ensure, skip};
use crate::net::Rtnl;

const NOTICES: &str = "2 \"CHECK\": the plugin must return an error if an interface or address in prevResult is missing or in an invalid state";

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "lifecycle.check",
        title: "CHECK after ADD succeeds and prints nothing",
        clause: spec("2 \"CHECK\""),
        versions: Versions::EachFrom("0.4.0"),
        run: |trial| {
            trial
                .added()
                .and_then(|attached| trial.must("CHECK", &attached))
        },
    },
    Check {
        id: "lifecycle.check-twice",
        title: "CHECK can be repeated, and changes nothing on the host",
        clause: spec("2 \"CHECK\": to probe the status of an existing container"),
        versions: Versions::NewestFrom("0.4.0"),
        run: changes_nothing,
    },
    Check {
        id: "lifecycle.check-needs-a-result",
        title: "CHECK without prevResult is refused",
        clause: spec("2 \"CHECK\": prevResult is required"),
        versions: Versions::NewestFrom("0.4.0"),
        run: needs_result,
    },
    Check {
        id: "lifecycle.check-misses-the-interface",
        title: "CHECK fails when the interface is gone",
        clause: spec(NOTICES),
        versions: Versions::NewestFrom("0.4.0"),
        run: interface_gone,
    },
    Check {
        id: "lifecycle.check-misses-the-address",
        title: "CHECK fails when the address is gone",
        clause: spec(NOTICES),
        versions: Versions::NewestFrom("0.4.0"),
        run: address_gone,
    },
    Check {
        id: "lifecycle.check-misses-the-route",
        title: "CHECK fails when a route is gone",
        clause: spec("2 \"CHECK\": routes in prevResult exist"),
        versions: Versions::NewestFrom("0.4.0"),
        run: route_gone,
    },
    Check {
        id: "lifecycle.check-after-del",
        title: "CHECK fails after DEL",
        clause: spec(NOTICES),
        versions: Versions::NewestFrom("0.4.0"),
        run: after_del,
    },
];

fn changes_nothing(trial: &Trial<'_>) -> Verdict {
    let attached = trial.added()?;
    let before = trial.snapshot()?;
    trial.must("CHECK", &attached)?;
    trial.must("CHECK", &attached)?;
    let diff = before.diff(&trial.snapshot()?);
    ensure(diff.is_empty(), || {
        format!("CHECK changed the host: {diff}")
    })
}

fn needs_result(trial: &Trial<'_>) -> Verdict {
    let role = trial.subject.profile().role;
    if matches!(role, Role::Unknown | Role::Loopback | Role::Ipam) {
        return skip("it may have nothing to compare");
    }
    let mut attached = trial.added()?;
    attached.result = None;
    trial.must_fail("CHECK", "there is no prevResult", &attached)
}

/// Whose CHECK looks at the container's interface.
fn looks(trial: &Trial<'_>) -> Verdict {
    if trial.subject.profile().role == Role::Interface {
        return Ok(());
    }
    skip("it makes no interface with addresses")
}

fn interface_gone(trial: &Trial<'_>) -> Verdict {
    let attached = trial.attach()?;
    let profile = trial.subject.profile();
    if attached.ifname == "lo" || !profile.checks_interface || profile.role == Role::Ipam {
        return skip("its CHECK is not about an interface");
    }
    if profile.role == Role::Unknown {
        return skip("the suite does not know what it makes");
    }
    drop(attached);
    let attached = trial.added()?;
    Rtnl::open(&attached.netns)?.delete_link(&attached.ifname)?;
    trial.must_fail("CHECK", "the interface is gone", &attached)
}

fn address_gone(trial: &Trial<'_>) -> Verdict {
    looks(trial)?;
    let attached = trial.added()?;
    Rtnl::open(&attached.netns)?.flush_addresses(&attached.ifname)?;
    trial.must_fail("CHECK", "the address is gone", &attached)
}

fn route_gone(trial: &Trial<'_>) -> Verdict {
    looks(trial)?;
    let mut attached = trial.attach()?;
    let mut lease = lease(&trial.version, &attached.addresses, Families::V4);
    let gateway = &attached.addresses.gateway_v4;
    merge(
        &mut lease,
        &json!({"routes": [{"dst": "198.51.100.0/24", "gw": gateway}]}),
    );
    trial
        .standins()?
        .lease(&attached.id, &attached.ifname, &lease)?;
    trial.add(&mut attached)?;
    trial.must("CHECK", &attached)?;
    let gone = crate::judge::attach::parse("198.51.100.0/24")?;
    Rtnl::open(&attached.netns)?.delete_routes_to(gone)?;
    trial.must_fail("CHECK", "a route is gone", &attached)
}

fn after_del(trial: &Trial<'_>) -> Verdict {
    let role = trial.subject.profile().role;
    let keeps = role == Role::Interface || trial.subject.name == "host-local";
    if !keeps {
        return skip("it makes nothing that is gone after DEL");
    }
    let attached = trial.added()?;
    trial.must("DEL", &attached)?;
    trial.must_fail("CHECK", "DEL took everything", &attached)
}
