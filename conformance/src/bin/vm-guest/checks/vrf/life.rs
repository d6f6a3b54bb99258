//! VRFs: refusals, failures, and what is left.

use std::path::Path;

use conformance::chain::{Attachment, Runtime};
use conformance::error::{Error, Result};
use conformance::net::{Netns, Rtnl};
use serde_json::{Value, json};

use super::{call, config, good, has_link, interface, ip, ip_words, routing, settled, works};
use crate::checks::world::{World, equal, holds};

/// A container with one interface, and what its routing was like before.
struct Site {
    world: World,
    netns: Netns,
    to: Attachment,
    result: Value,
    before: Vec<String>,
}

impl Site {
    fn new() -> Result<Self> {
        let world = World::new()?;
        let netns = world.host.container("c1")?;
        let result = interface(&world, &netns, "eth0", 2)?;
        ip(&netns, "route add default via 10.2.0.1")?;
        settled(&netns)?;
        let before = routing(&netns)?;
        Ok(Self {
            to: Attachment::new("c1", netns.path()),
            world,
            netns,
            result,
            before,
        })
    }

    fn config(&self, extra: &Value) -> Value {
        config("blue", &self.result, extra)
    }

    fn works(&self, config: &Value) -> Result<()> {
        works(&self.world, config, &self.to, &self.netns)
    }

    fn del(&self, config: &Value) -> Result<()> {
        good(&self.world, "DEL", config, &self.to).map(drop)
    }

    fn is_as_before(&self) -> Result<()> {
        equal("routing", &routing(&self.netns)?, &self.before)?;
        holds("no VRF", ip(&self.netns, "link show type vrf")?.is_empty())
    }

    fn refused(&self, config: &Value, code: u64, words: &str) -> Result<()> {
        let answer = call(&self.world, "ADD", config, &self.to)?;
        let error = answer
            .error()
            .ok_or_else(|| Error::unexpected("ADD to fail", answer.text()))?;
        equal(&error.msg, &error.code, &code)?;
        holds(&error.msg, error.msg.contains(words))
    }
}

/// A VRF that was there before keeps its alias and stays when its last interface goes, whoever asks for the DEL.
pub fn of_the_administrator() -> Result<()> {
    let site = Site::new()?;
    let config = site.config(&json!({}));
    for alias in ["", "my own"] {
        ip(&site.netns, "link add blue type vrf table 9")?;
        ip_words(&site.netns, &["link", "set", "blue", "alias", alias])?;
        // A DEL without an ADD, or after one that was refused, is no reason to touch it.
        site.del(&config)?;
        holds("it is there", has_link(&site.netns, "blue")?)?;
        for _ in 0..2 {
            site.works(&config)?;
            site.del(&config)?;
            let link = Rtnl::open(&site.netns)?.link("blue")?;
            equal("alias", &link.facts.alias.as_str(), &alias)?;
        }
        ip(&site.netns, "link del blue")?;
        site.is_as_before()?;
    }
    Ok(())
}

/// Everything that can be refused is refused before the first change.
pub fn refusals() -> Result<()> {
    let site = Site::new()?;
    for (extra, code, words) in [
        (json!({"vrfname": ""}), 7, "vrfname"),
        (json!({"vrfname": "a/b"}), 7, "vrfname"),
        (json!({"vrfname": "a name that is too long"}), 7, "vrfname"),
        (json!({"table": -1}), 7, "table"),
        (json!({"vrfname": "eth0"}), 7, "eth0"),
        (json!({"vrfname": "lo"}), 999, "not a VRF"),
    ] {
        let config = site.config(&extra);
        site.refused(&config, code, words)?;
        site.is_as_before()?;
        site.del(&config)?;
        site.is_as_before()?;
    }
    let mut alone = site.config(&json!({}));
    if let Some(object) = alone.as_object_mut() {
        object.remove("prevResult");
    }
    site.refused(&alone, 999, "chained")?;
    site.is_as_before()?;
    // A port of something else is named, and stays where it is, at DEL too.
    ip(&site.netns, "link add br7 type bridge")?;
    ip(&site.netns, "link set eth0 master br7")?;
    let config = site.config(&json!({}));
    site.refused(&config, 999, "br7")?;
    site.del(&config)?;
    holds(
        "it is a port still",
        ip(&site.netns, "link show dev eth0")?.contains("master br7"),
    )?;
    ip(&site.netns, "link set eth0 nomaster")?;
    ip(&site.netns, "link del br7")?;
    // A second ADD without DEL is refused and changes nothing.
    site.works(&config)?;
    let now = routing(&site.netns)?;
    site.refused(&config, 999, "blue")?;
    equal("routing after a second ADD", &routing(&site.netns)?, &now)?;
    site.del(&config)?;
    // An interface that is not there.
    let other = Attachment::new("c1", site.netns.path()).ifname("eth7");
    let answer = call(&site.world, "ADD", &config, &other)?;
    holds(&answer.text(), answer.error().is_some())?;
    holds("no VRF", !has_link(&site.netns, "blue")?)?;
    good(&site.world, "DEL", &config, &other)?;
    // The kernel does not take lo.
    let lo = Attachment::new("c1", site.netns.path()).ifname("lo");
    let answer = call(&site.world, "ADD", &config, &lo)?;
    holds(&answer.text(), answer.error().is_some())?;
    holds("no VRF", !has_link(&site.netns, "blue")?)
}

/// An ADD whose result cannot be written takes everything back, and can be repeated.
pub fn failure() -> Result<()> {
    let site = Site::new()?;
    let config = site.config(&json!({}));
    let full = ["/bin/sh", "-c", "exec \"$0\" >/dev/full"].map(Into::into);
    for own in [false, true] {
        if own {
            ip(&site.netns, "link add blue type vrf table 9")?;
        }
        let vrfs = described(&site.netns)?;
        let call = site.world.runtime.call("vrf", "ADD", &site.to)?;
        let answer = call.under(&full).stdin(config.to_string()).run()?;
        holds("the ADD fails", !answer.ok())?;
        equal("routing", &routing(&site.netns)?, &site.before)?;
        equal("VRFs", &described(&site.netns)?, &vrfs)?;
    }
    ip(&site.netns, "link del blue")?;
    site.works(&config)?;
    site.del(&config)?;
    site.is_as_before()
}

/// The VRFs, but for the queue that one gets when it is set up for the first time.
fn described(netns: &Netns) -> Result<Vec<String>> {
    let text = ip(netns, "-o -d link show type vrf")?;
    let words = text.split_whitespace();
    let lasting = words.filter(|word| !["noop", "noqueue"].contains(word));
    Ok(lasting.map(str::to_owned).collect())
}

/// What a killed ADD can have left: a VRF that has no alias yet, one that nothing was put into, an interface without its
/// addresses.
pub fn killed() -> Result<()> {
    let site = Site::new()?;
    let config = site.config(&json!({}));
    let made = "link add blue address 02:76:72:66:00:01 type vrf table 1";
    let steps: [&[&str]; 3] = [
        &[],
        &["link set blue up"],
        &["link set blue up", "link set eth0 master blue"],
    ];
    for more in steps {
        for with_add in [false, true] {
            ip(&site.netns, made)?;
            for command in more {
                ip(&site.netns, command)?;
                if command.ends_with("up") {
                    mark(&site.netns)?;
                }
            }
            if with_add && more.len() < 2 {
                site.works(&config)?;
            }
            site.del(&config)?;
            holds("no VRF", ip(&site.netns, "link show type vrf")?.is_empty())?;
        }
    }
    Ok(())
}

fn mark(netns: &Netns) -> Result<()> {
    let alias = "cni vrf: goes with its last interface";
    ip_words(netns, &["link", "set", "blue", "alias", alias]).map(drop)
}

/// DEL from nothing.
pub fn patience() -> Result<()> {
    let site = Site::new()?;
    let config = site.config(&json!({}));
    let broken = [
        json!({"cniVersion": "1.1.0", "name": "net", "type": "vrf"}),
        json!({"cniVersion": "1.1.0", "name": "net", "type": "vrf", "vrfname": 7, "table": "x"}),
        json!({"cniVersion": "1.1.0", "name": "net", "type": "vrf", "vrfname": "other", "table": 3}),
        json!({"cniVersion": "1.1.0", "name": "net", "type": "vrf", "vrfname": "blue", "prevResult": {"cniVersion": "1.1.0"}}),
    ];
    for config_of_del in &broken {
        site.works(&config)?;
        site.del(config_of_del)?;
        site.del(config_of_del)?;
        site.is_as_before()?;
    }
    // The interface has been taken out, renamed or deleted by the workload.
    site.works(&config)?;
    ip(&site.netns, "link set eth0 nomaster")?;
    site.del(&config)?;
    holds("no VRF", !has_link(&site.netns, "blue")?)?;
    let again = Site::new_interface(&site, "eth5", 5)?;
    let to = Attachment::new("c1", site.netns.path()).ifname("eth5");
    works(&site.world, &again, &to, &site.netns)?;
    ip(&site.netns, "link del eth5")?;
    good(&site.world, "DEL", &again, &to)?;
    holds("no VRF", !has_link(&site.netns, "blue")?)?;
    // The VRF was deleted.
    let again = Site::new_interface(&site, "eth6", 6)?;
    let to = Attachment::new("c1", site.netns.path()).ifname("eth6");
    works(&site.world, &again, &to, &site.netns)?;
    ip(&site.netns, "link del blue")?;
    good(&site.world, "DEL", &again, &to)?;
    // No namespace, one that is gone, and no file is made in its place.
    for path in ["", "/run/netns/nowhere", "/nowhere/at/all"] {
        let mut to = site.to.clone();
        to.netns = Path::new(path).to_owned();
        good(&site.world, "DEL", &config, &to)?;
    }
    holds("no file", !Path::new("/run/netns/nowhere").exists())
}

impl Site {
    fn new_interface(&self, name: &str, number: u8) -> Result<Value> {
        let result = interface(&self.world, &self.netns, name, number)?;
        Ok(config("blue", &result, &json!({})))
    }
}

/// CHECK tells each loss and changes nothing.
pub fn check() -> Result<()> {
    let site = Site::new()?;
    let mut config = site.config(&json!({"table": 7}));
    if let Some(result) = config.get_mut("prevResult").and_then(Value::as_object_mut) {
        result.insert(
            "routes".into(),
            json!([{"dst": "0.0.0.0/0", "gw": "10.2.0.1"}]),
        );
    }
    for (lost, mended) in [
        ("link set eth0 nomaster", None),
        ("link set blue down", Some("link set blue up")),
        ("address del 10.2.0.2/24 dev eth0", None),
        ("-6 address del fd00:2::2/64 dev eth0", None),
        ("route del default table 7", None),
        ("link del blue", None),
    ] {
        site.works(&config)?;
        ip(&site.netns, lost)?;
        let now = routing(&site.netns)?;
        let answer = call(&site.world, "CHECK", &config, &site.to)?;
        holds(
            &format!("CHECK fails after {lost}"),
            answer.error().is_some(),
        )?;
        equal("routing after CHECK", &routing(&site.netns)?, &now)?;
        if let Some(command) = mended {
            ip(&site.netns, command)?;
        }
        site.del(&config)?;
        for (family, address) in [("-4", "10.2.0.2/24"), ("-6", "fd00:2::2/64")] {
            if !ip(&site.netns, &format!("{family} address show dev eth0"))?.contains(address) {
                ip(&site.netns, &format!("address add {address} dev eth0"))?;
            }
        }
        ip(&site.netns, "route replace default via 10.2.0.1")?;
        settled(&site.netns)?;
    }
    // With another table or another VRF than at ADD.
    site.works(&config)?;
    let other = Attachment::new("c1", site.netns.path()).ifname("eth7");
    let answer = call(&site.world, "CHECK", &config, &other)?;
    holds(
        "CHECK fails without the interface",
        answer.error().is_some(),
    )?;
    for extra in [json!({"table": 8}), json!({"vrfname": "red"})] {
        let mut other = config.clone();
        if let (Some(into), Some(more)) = (other.as_object_mut(), extra.as_object()) {
            into.extend(more.clone());
        }
        let answer = call(&site.world, "CHECK", &other, &site.to)?;
        holds(
            &format!("CHECK fails with {extra}"),
            answer.error().is_some(),
        )?;
    }
    site.del(&config)
}

/// The result passes through in every version.
pub fn versions() -> Result<()> {
    let site = Site::new()?;
    let ips =
        json!([{"version": "4", "address": "10.2.0.2/24", "gateway": "10.2.0.1", "interface": 0}]);
    let modern = json!({"interfaces": [{"name": "eth0", "sandbox": "x"}], "ips": ips});
    let old = json!({"ip4": {"ip": "10.2.0.2/24", "gateway": "10.2.0.1"}});
    for (version, result) in [
        ("0.1.0", &old),
        ("0.2.0", &old),
        ("0.3.0", &modern),
        ("0.3.1", &modern),
        ("0.4.0", &modern),
        ("1.0.0", &modern),
        ("1.1.0", &modern),
    ] {
        let config = json!({"cniVersion": version, "name": "n", "type": "vrf", "vrfname": "blue", "prevResult": result});
        let answer = good(&site.world, "ADD", &config, &site.to)?;
        let found = answer.json().unwrap_or_default();
        equal("version", &found.get("cniVersion"), &Some(&json!(version)))?;
        let key = if result == &old { "ip4" } else { "ips" };
        holds("the result", found.get(key).is_some())?;
        holds("the VRF", has_link(&site.netns, "blue")?)?;
        site.del(&config)?;
        site.is_as_before()?;
    }
    Ok(())
}

/// What the reference set made, ours takes away, and the other way round.
pub fn reference() -> Result<()> {
    let site = Site::new()?;
    let theirs = Runtime::new(Path::new("/usr/lib/cni"));
    let mut config = site.config(&json!({"cniVersion": "1.0.0"}));
    if let Some(result) = config.get_mut("prevResult").and_then(Value::as_object_mut) {
        result.insert("cniVersion".into(), json!("1.0.0"));
    }
    let by_them = |verb: &str| {
        let answer = theirs
            .call("vrf", verb, &site.to)?
            .stdin(config.to_string())
            .run()?;
        holds(
            &format!("{verb} by the reference set: {}", answer.text()),
            answer.ok(),
        )
    };
    by_them("ADD")?;
    good(&site.world, "CHECK", &config, &site.to)?;
    site.del(&config)?;
    holds("no VRF", !has_link(&site.netns, "blue")?)?;
    site.works(&config)?;
    by_them("CHECK")?;
    by_them("DEL")?;
    holds("no VRF", !has_link(&site.netns, "blue")?)
}

/// STATUS and GC.
pub fn status() -> Result<()> {
    let site = Site::new()?;
    let links = site.world.host.rtnl().links()?.len();
    for (extra, good) in [
        (json!({}), true),
        (json!({"vrfname": ""}), false),
        (json!({"table": -5}), false),
    ] {
        let mut config = site.config(&extra);
        if let Some(object) = config.as_object_mut() {
            object.insert("cni.dev/valid-attachments".into(), json!([]));
        }
        for verb in ["STATUS", "GC"] {
            let call = site.world.runtime.bare("vrf", verb)?;
            let answer = call.stdin(config.to_string()).run()?;
            equal(
                &format!("{verb} with {extra}: {}", answer.text()),
                &answer.ok(),
                &(good || verb == "GC"),
            )?;
        }
    }
    equal(
        "links on the host",
        &site.world.host.rtnl().links()?.len(),
        &links,
    )
}
