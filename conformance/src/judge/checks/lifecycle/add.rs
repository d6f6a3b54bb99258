//! ADD.

use crate::judge::attach::{good, refused};
use crate::judge::check::{Check, Versions, reference, spec};
use crate::judge::place::Place;
use crate::judge::profile::Role;
use crate::judge::trial::Trial;
use crate::judge::verdict::{Verdict, ensure, expect, skip};
use crate::net::Rtnl;

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "lifecycle.add",
        title: "ADD succeeds and prints one result object",
        clause: spec("2 \"ADD\""),
        versions: Versions::Each,
        run: |trial| trial.added().map(drop),
    },
    Check {
        id: "lifecycle.add-makes-the-interface",
        title: "after ADD the interface is in the container, under its name, and up",
        clause: spec(
            "2 \"ADD\": create the interface defined by CNI_IFNAME inside the container at CNI_NETNS",
        ),
        versions: Versions::Newest,
        run: makes_interface,
    },
    Check {
        id: "lifecycle.two-interfaces",
        title: "one container can have two attachments, by two interface names",
        clause: spec(
            "2 \"ADD\": an attachment is uniquely identified by (CNI_CONTAINERID, CNI_IFNAME)",
        ),
        versions: Versions::Newest,
        run: two_interfaces,
    },
    Check {
        id: "lifecycle.interface-name-taken",
        title: "an interface name that is taken in the container is an error, and what has it stays",
        clause: spec(
            "2 \"ADD\": if an interface of the same name already exists in the container, the plugin must return with an error",
        ),
        versions: Versions::Newest,
        run: taken,
    },
    Check {
        id: "lifecycle.add-twice",
        title: "a second ADD of the same attachment is refused or harmless, and one DEL is enough",
        clause: spec(
            "2 \"ADD\": a runtime should not call ADD twice without DEL; 2 \"DEL\" cleans up",
        ),
        versions: Versions::Newest,
        run: twice,
    },
    Check {
        id: "lifecycle.again-and-again",
        title: "ADD and DEL can be repeated with the same id",
        clause: spec("2 \"ADD\" and \"DEL\""),
        versions: Versions::Newest,
        run: again,
    },
    Check {
        id: "lifecycle.without-ipam",
        title: "plugins that do without IPAM run all commands without it",
        clause: reference("main plugins: ipam is optional"),
        versions: Versions::EachFrom("0.4.0"),
        run: without_ipam,
    },
    Check {
        id: "lifecycle.arguments-for-others",
        title: "CNI_ARGS that are meant for others do not matter, with IgnoreUnknown",
        clause: reference("conventions: IgnoreUnknown=1 and unknown keys are ignored"),
        versions: Versions::Newest,
        run: arguments,
    },
];

fn makes_interface(trial: &Trial<'_>) -> Verdict {
    if !matches!(
        trial.subject.profile().role,
        Role::Interface | Role::Loopback
    ) {
        return skip("it makes no interface");
    }
    let attached = trial.added()?;
    let link = expect(
        "after ADD",
        Rtnl::open(&attached.netns)?.link(&attached.ifname),
    )?;
    ensure(link.facts.up, || format!("{} is down", attached.ifname))
}

fn two_interfaces(trial: &Trial<'_>) -> Verdict {
    if trial.subject.profile().role != Role::Interface || !trial.subject.profile().many_interfaces {
        return skip("one attachment a container, or no interface of its own");
    }
    let first = trial.added()?;
    let mut second = trial.attach()?;
    second.id.clone_from(&first.id);
    second.path.clone_from(&first.path);
    second.ifname = "eth1".into();
    if trial.subject.name == "ptp" {
        // A route to a gateway can be there only once.
        second.addresses = Place {
            number: trial.place.number + 50,
        }
        .own(1);
    }
    let lease = crate::judge::place::lease(
        &trial.version,
        &second.addresses,
        crate::judge::place::Families::V4,
    );
    // Without a second default route, which no kernel takes.
    trial.standins()?.lease(
        &second.id,
        &second.ifname,
        &crate::judge::place::without(&lease, "routes"),
    )?;
    trial.add(&mut second)?;
    trial.must("DEL", &second)?;
    ensure(trial.interface_is_there(&first)?, || {
        "DEL of eth1 took eth0, too".to_owned()
    })?;
    if trial.at_least("0.4.0") {
        trial.must("CHECK", &first)?;
    }
    trial.must("DEL", &first)
}

fn taken(trial: &Trial<'_>) -> Verdict {
    if trial.subject.profile().role != Role::Interface {
        return skip("it makes no interface");
    }
    let attached = trial.attach()?;
    let name = trial.place.host_end(9);
    trial
        .rtnl()?
        .add_veth(&name, &attached.netns, &attached.ifname)?;
    let inside = Rtnl::open(&attached.netns)?;
    let before = inside.link(&attached.ifname)?;
    refused(
        "ADD over an interface that is there",
        &trial.try_to("ADD", &attached)?,
    )?;
    let after = expect(
        "the interface that was there",
        inside.link(&attached.ifname),
    )?;
    ensure(
        after.index == before.index && after.facts.mac == before.facts.mac,
        || format!("it was {before:?} and is {after:?}"),
    )
}

fn twice(trial: &Trial<'_>) -> Verdict {
    let attached = trial.added()?;
    let second = trial.try_to("ADD", &attached)?;
    if !second.ok() {
        refused("a second ADD", &second)?;
    }
    trial.must("DEL", &attached)?;
    if trial.subject.profile().role == Role::Interface {
        ensure(!trial.interface_is_there(&attached)?, || {
            format!("{} is there after DEL", attached.ifname)
        })?;
    }
    let third = trial.try_to("ADD", &attached)?;
    good("ADD after DEL", &third)
}

fn again(trial: &Trial<'_>) -> Verdict {
    let mut attached = trial.attach()?;
    for _ in 0..4 {
        trial.add(&mut attached)?;
        trial.must("DEL", &attached)?;
        attached.result = None;
    }
    Ok(())
}

fn without_ipam(trial: &Trial<'_>) -> Verdict {
    let profile = trial.subject.profile();
    if profile.role != Role::Interface || !profile.without_ipam {
        return skip("it needs IPAM, or never asks for it");
    }
    let mut attached = trial.attach()?;
    attached.config = crate::judge::place::without(&attached.config, "ipam");
    if trial.subject.name == "bridge" {
        crate::judge::place::merge(
            &mut attached.config,
            &serde_json::json!({"isGateway": false}),
        );
    }
    trial.add(&mut attached)?;
    ensure(trial.interface_is_there(&attached)?, || {
        format!("{} is not there", attached.ifname)
    })?;
    trial.must("CHECK", &attached)?;
    trial.must("DEL", &attached)?;
    trial.must("DEL", &attached)
}

fn arguments(trial: &Trial<'_>) -> Verdict {
    for args in [
        "IgnoreUnknown=1;K8S_POD_NAME=a;K8S_POD_UID=b",
        "K8S_POD_NAME=a;IgnoreUnknown=true",
    ] {
        let attached = trial.attach()?;
        let ask = trial.ask_for("ADD", &attached).set("CNI_ARGS", args);
        good(&format!("ADD with CNI_ARGS={args}"), &trial.send(&ask)?)?;
        let ask = trial.ask_for("DEL", &attached).set("CNI_ARGS", args);
        good(&format!("DEL with CNI_ARGS={args}"), &trial.send(&ask)?)?;
    }
    Ok(())
}
