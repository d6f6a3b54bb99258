//! DEL.

use crate::judge::attach::good;
use crate::judge::check::{Check, Versions, reference, spec};
use crate::judge::profile::Role;
use crate::judge::trial::Trial;
use crate::judge::verdict::{Verdict, ensure, skip};
use crate::net::Rtnl;

const PATIENT: &str = "2 \"DEL\": plugins should generally complete a DEL without error even if some resources are missing";
const TWICE: &str = "2 \"DEL\": plugins must accept multiple DEL calls for the same (CNI_CONTAINERID, CNI_IFNAME) and return success if the interface, or any modification added, is missing";

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "lifecycle.del",
        title: "DEL succeeds and prints nothing",
        clause: spec("2 \"DEL\""),
        versions: Versions::Each,
        run: |trial| {
            trial
                .added()
                .and_then(|attached| trial.must("DEL", &attached))
        },
    },
    Check {
        id: "lifecycle.del-takes-the-interface",
        title: "after DEL the interface is gone",
        clause: spec(
            "2 \"DEL\": remove the interface defined by CNI_IFNAME from inside the container",
        ),
        versions: Versions::Newest,
        run: takes_interface,
    },
    Check {
        id: "lifecycle.del-twice",
        title: "a second DEL succeeds",
        clause: spec(TWICE),
        versions: Versions::Each,
        run: twice,
    },
    Check {
        id: "lifecycle.del-from-nothing",
        title: "DEL of what was never added succeeds",
        clause: spec(TWICE),
        versions: Versions::Newest,
        run: |trial| {
            trial
                .attach()
                .and_then(|attached| trial.must("DEL", &attached))
        },
    },
    Check {
        id: "lifecycle.del-without-result",
        title: "DEL without prevResult succeeds, and takes the interface",
        clause: spec(PATIENT),
        versions: Versions::Newest,
        run: without_result,
    },
    Check {
        id: "lifecycle.del-after-the-namespace",
        title: "DEL succeeds when the namespace's path is gone",
        clause: spec(PATIENT),
        versions: Versions::Newest,
        run: |trial| namespace_gone(trial, false),
    },
    Check {
        id: "lifecycle.del-without-netns",
        title: "DEL succeeds without CNI_NETNS",
        clause: spec("2 \"DEL\": CNI_NETNS is optional"),
        versions: Versions::Newest,
        run: |trial| namespace_gone(trial, true),
    },
    Check {
        id: "lifecycle.del-after-the-interface",
        title: "DEL succeeds when the interface is gone",
        clause: spec(TWICE),
        versions: Versions::Newest,
        run: interface_gone,
    },
    Check {
        id: "lifecycle.del-spares-others",
        title: "DEL of one container leaves the other as it was",
        clause: spec("2 \"DEL\": of the attachment (CNI_CONTAINERID, CNI_IFNAME)"),
        versions: Versions::NewestFrom("0.4.0"),
        run: spares,
    },
    Check {
        id: "lifecycle.del-with-any-arguments",
        title: "CNI_ARGS that nobody understands do not keep DEL from cleaning up",
        clause: reference("what a DEL has to clean up does not depend on CNI_ARGS"),
        versions: Versions::Newest,
        run: any_arguments,
    },
];

fn takes_interface(trial: &Trial<'_>) -> Verdict {
    if trial.subject.profile().role != Role::Interface {
        return skip("it makes no interface");
    }
    let attached = trial.added()?;
    trial.must("DEL", &attached)?;
    ensure(!trial.interface_is_there(&attached)?, || {
        format!("{} is still there", attached.ifname)
    })
}

fn twice(trial: &Trial<'_>) -> Verdict {
    let attached = trial.added()?;
    trial.must("DEL", &attached)?;
    trial.must("DEL", &attached)
}

fn without_result(trial: &Trial<'_>) -> Verdict {
    let mut attached = trial.added()?;
    attached.result = None;
    trial.must("DEL", &attached)?;
    if trial.subject.profile().role != Role::Interface {
        return Ok(());
    }
    ensure(!trial.interface_is_there(&attached)?, || {
        format!("{} is still there", attached.ifname)
    })
}

fn namespace_gone(trial: &Trial<'_>, unset: bool) -> Verdict {
    let attached = trial.added()?;
    let mut ask = trial.ask_for("DEL", &attached);
    if unset {
        ask = ask.unset("CNI_NETNS");
    }
    drop(attached);
    let answer = trial.send(&ask)?;
    good("DEL", &answer)?;
    crate::judge::attach::silent("DEL", &answer)
}

fn interface_gone(trial: &Trial<'_>) -> Verdict {
    let attached = trial.added()?;
    if attached.ifname == "lo" {
        return skip("lo cannot be deleted");
    }
    if let Ok(true) = trial.interface_is_there(&attached) {
        Rtnl::open(&attached.netns)?.delete_link(&attached.ifname)?;
    }
    trial.must("DEL", &attached)
}

fn spares(trial: &Trial<'_>) -> Verdict {
    let role = trial.subject.profile().role;
    if role == Role::Ipam && trial.subject.name == "static" {
        return skip("it keeps nothing");
    }
    let first = trial.added()?;
    let second = trial.added()?;
    trial.must("CHECK", &first)?;
    trial.must("DEL", &second)?;
    trial.must("CHECK", &first)?;
    trial.must("DEL", &first)
}

fn any_arguments(trial: &Trial<'_>) -> Verdict {
    for args in ["FOO=1", "A=b=c", "A", "IP=nonsense;", ";;"] {
        let attached = trial.added()?;
        let ask = trial.ask_for("DEL", &attached).set("CNI_ARGS", args);
        good(&format!("DEL with CNI_ARGS={args:?}"), &trial.send(&ask)?)?;
    }
    Ok(())
}
