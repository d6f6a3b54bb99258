//! From ADD to DEL, as it should go.

use serde_json::{Value, json};

use crate::error::Result;
use crate::facts;
use crate::net::{Netns, Rtnl};
use crate::snapshot::Snapshot;

use super::site::{Container, Site, contains, equal, holds, links, result, setting, with_previous};

const VERSIONS: [&str; 7] = [
    "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0",
];

/// Every version of the specification: packets flow when ADD returns, the result has the version's shape, CHECK agrees,
/// DEL and a second DEL leave nothing.
///
/// # Errors
/// What is not so.
pub fn every_version(site: &Site) -> Result<()> {
    for version in VERSIONS {
        let container = site.container(&format!("c{}", version.replace('.', "-")))?;
        one_version(site, version, &container)?;
    }
    Ok(())
}

fn one_version(site: &Site, version: &str, container: &Container) -> Result<()> {
    let Container { netns, attachment } = container;
    let config = site.config(&json!({"cniVersion": version}));
    let before = Snapshot::take(site.host)?;
    let answer = site.good("ADD", &config, attachment)?;
    site.reaches(netns)?;
    shape(site, version, netns, &result(&answer)?)?;
    let with = with_previous(&config, &answer)?;
    if version < "0.4.0" {
        contains(
            &site.bad("CHECK", &with, attachment)?,
            "does not allow CHECK",
        )?;
    } else {
        site.good("CHECK", &with, attachment)?;
    }
    site.good("DEL", &with, attachment)?;
    equal("links after DEL", &links(netns)?, &Vec::new())?;
    site.good("DEL", &with, attachment)?;
    site.good("DEL", &config, attachment)?;
    site.is_as_before(&before)
}

/// One interface, in the container, and every address on it.
fn shape(site: &Site, version: &str, netns: &Netns, result: &Value) -> Result<()> {
    let at = |pointer: &str| result.pointer(pointer).and_then(Value::as_str);
    equal("version", &at("/cniVersion"), &Some(version))?;
    let addresses = facts::addresses(result);
    equal("addresses", &addresses.len(), &2)?;
    if version < "0.3.0" {
        return holds(
            "addresses by family and no interfaces",
            at("/ip4/ip").is_some()
                && at("/ip6/ip").is_some()
                && result.get("interfaces").is_none(),
        );
    }
    let link = Rtnl::open(netns)?.link("eth0")?;
    equal("kind", &link.facts.kind.as_str(), &site.kind.plugin)?;
    let expected = facts::Interface {
        name: "eth0".into(),
        mac: link.facts.mac,
        sandbox: netns.path().display().to_string(),
    };
    equal("interfaces", &facts::interfaces(result), &vec![expected])?;
    holds(
        "every address on the first interface",
        addresses.iter().all(|one| one.interface == Some(0)),
    )
}

/// Without IPAM every command works, and who gives the link an address later has it to himself, router advertisements
/// included. Versions that cannot say "no address" get an error, and nothing stays.
///
/// # Errors
/// What is not so.
pub fn without_ipam(site: &Site) -> Result<()> {
    let Container { netns, attachment } = site.container("c1")?;
    for keys in [json!({}), json!({"ipam": {}}), json!({"ipam": null})] {
        let config = site.flat(&keys);
        let with = site.add(&config, &attachment)?;
        let found = facts::addresses(with.get("prevResult").unwrap_or(&Value::Null));
        equal("addresses", &found, &Vec::new())?;
        let link = Rtnl::open(&netns)?.link("eth0")?;
        holds("the link is up", link.facts.up)?;
        equal(
            "accept_ra",
            &setting(&netns, "ipv6/conf/eth0/accept_ra")?,
            &setting(&netns, "ipv6/conf/default/accept_ra")?,
        )?;
        for verb in ["CHECK", "DEL", "DEL", "STATUS", "GC"] {
            site.good(verb, &with, &attachment)?;
        }
        equal("links after DEL", &links(&netns)?, &Vec::new())?;
    }
    let before = Snapshot::take(site.host)?;
    let early = site.flat(&json!({"cniVersion": "0.2.0"}));
    contains(
        &site.bad("ADD", &early, &attachment)?,
        "no valid IP addresses",
    )?;
    equal("links after that", &links(&netns)?, &Vec::new())?;
    site.is_as_before(&before)
}

/// IPAM's name servers are kept unless the configuration says something about them.
///
/// # Errors
/// What is not so.
pub fn dns(site: &Site) -> Result<()> {
    let mut ipam = super::site::ipam(&site.kind.segment);
    super::site::merge(&mut ipam, &json!({"resolvConf": "/etc/resolv.conf"}));
    let container = site.container("c1")?;
    let cases = [
        (json!({"ipam": ipam}), json!(["192.0.2.53"])),
        (
            json!({"ipam": ipam, "dns": {"nameservers": ["10.9.9.9"]}}),
            json!(["10.9.9.9"]),
        ),
    ];
    for (keys, expected) in cases {
        let config = site.config(&keys);
        let with = site.add(&config, &container.attachment)?;
        equal(
            "name servers",
            &with.pointer("/prevResult/dns/nameservers"),
            &Some(&expected),
        )?;
        site.good("DEL", &config, &container.attachment)?;
    }
    Ok(())
}
