//! Attachments that are real: a container, and whatever the plugin needs around it.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::place::{Addresses, Families, lease, merge, without};
use super::profile::Role;
use super::standin::IPAM;
use super::trial::{Ask, Trial};
use super::verdict::{Trouble, Verdict, fault, skip};
use crate::error::Error;
use crate::net::{Netns, Rtnl};
use crate::plugin::Answer;

/// A container and what the plugin is asked to do with it.
#[derive(Debug)]
pub struct Attached {
    /// Its namespace.
    pub netns: Netns,
    /// What is said in `CNI_NETNS`.
    pub path: PathBuf,
    /// Its id.
    pub id: String,
    /// The interface.
    pub ifname: String,
    /// The configuration.
    pub config: Value,
    /// The result of ADD.
    pub result: Option<Value>,
    /// Its addresses.
    pub addresses: Addresses,
}

impl Attached {
    /// The configuration with the result as runtimes send it after ADD: from 0.4.0 on.
    pub fn request(&self) -> Value {
        let version = self.config.get("cniVersion").and_then(Value::as_str);
        let with_result =
            super::check::rank(version.unwrap_or_default()) >= super::check::rank("0.4.0");
        let mut config = without(&self.config, "prevResult");
        if let (Some(result), true) = (&self.result, with_result) {
            merge(&mut config, &json!({"prevResult": result}));
        }
        config
    }

    /// The prevResult of the configuration, null without one.
    pub fn previous(&self) -> Value {
        self.config.get("prevResult").cloned().unwrap_or_default()
    }
}

impl Trial<'_> {
    /// What a chained plugin of the reference set's names gets; without any if it is another kind, or the version knows no
    /// prevResult.
    pub fn attach_chained(&self) -> Verdict<Attached> {
        if self.subject.profile().role != Role::Chained {
            return skip("no chained plugin");
        }
        self.attach_behind()
    }

    /// What any plugin gets that is called behind another one: the chained ones, and those that the suite does not know.
    pub fn attach_behind(&self) -> Verdict<Attached> {
        if !matches!(self.subject.profile().role, Role::Chained | Role::Unknown) {
            return skip("no chained plugin");
        }
        let attached = self.attach()?;
        if attached.previous().is_null() {
            return skip("it is called without prevResult");
        }
        Ok(attached)
    }

    /// A container that is ready for an ADD, with IPv4 addresses.
    pub(super) fn attach(&self) -> Verdict<Attached> {
        self.attach_with(Families::V4)
    }

    /// A container that is ready for an ADD.
    pub(super) fn attach_with(&self, families: Families) -> Verdict<Attached> {
        self.can_be_attached()?;
        let number = self.containers.get();
        self.containers.set(number + 1);
        let profile = self.subject.profile();
        let name = format!("c{}x{number}", self.place.number);
        let netns = self.host()?.container(&name)?;
        let addresses = if profile.on_uplink {
            self.place.uplink(number)
        } else {
            self.place.own(number)
        };
        let is_loopback = profile.role == Role::Loopback;
        let attached = Attached {
            path: netns.path().to_owned(),
            netns,
            id: format!("judged-{name}"),
            ifname: if is_loopback { "lo" } else { "eth0" }.into(),
            config: self.config(),
            result: None,
            addresses,
        };
        self.furnish(attached, number, families)
    }

    /// Whether this machine and this version allow an ADD at all.
    fn can_be_attached(&self) -> Verdict {
        let profile = self.subject.profile();
        if profile.needs_daemon {
            return skip("an ADD needs a daemon beside the plugin");
        }
        if !self.at_least(profile.oldest) {
            return skip(format!("works from version {} on", profile.oldest));
        }
        match profile.kernel {
            Some(kind) if !self.rtnl()?.can_make(kind)? => {
                skip(format!("this kernel has no links of kind {kind}"))
            }
            _ => Ok(()),
        }
    }

    fn furnish(&self, mut attached: Attached, number: u8, families: Families) -> Verdict<Attached> {
        let profile = self.subject.profile();
        match profile.role {
            Role::Interface => {
                let leased = lease(&self.version, &attached.addresses, families);
                self.standins()?
                    .lease(&attached.id, &attached.ifname, &leased)?;
                merge(&mut attached.config, &json!({"ipam": {"type": IPAM}}));
                if profile.takes_device {
                    self.device(&mut attached, number)?;
                }
            }
            Role::Chained => {
                self.chain(&mut attached, number)?;
                // A port of the host is one container's.
                let port = 18_000 + 20 * u16::from(self.place.number) + u16::from(number);
                if let Some(mapping) = attached.config.pointer_mut("/runtimeConfig/portMappings/0")
                {
                    merge(mapping, &json!({"hostPort": port}));
                }
            }
            Role::Unknown => {
                self.standins()?;
                if self.follows_others()? {
                    self.chain(&mut attached, number)?;
                }
            }
            Role::Loopback | Role::Ipam => {
                self.standins()?;
            }
        }
        Ok(attached)
    }

    /// Whether a plugin that the suite does not know wants to be called after another one. Its configuration says so, if one
    /// was given; if not, it is tried once what it says to a call on its own.
    fn follows_others(&self) -> Verdict<bool> {
        if let Some(config) = &self.subject.config {
            return Ok(config.get("prevResult").is_some());
        }
        if let Some(follows) = self.chained() {
            return Ok(follows);
        }
        let netns = self.host()?.container("alone")?;
        let ask = |verb: &str| {
            self.ask(verb)
                .set("CNI_CONTAINERID", "judged-alone")
                .set("CNI_NETNS", netns.path())
        };
        let works = self.send(&ask("ADD"))?.ok();
        self.send(&ask("DEL"))?;
        self.set_chained(!works);
        Ok(!works)
    }

    /// A device of the host for the container.
    fn device(&self, attached: &mut Attached, number: u8) -> Verdict {
        let name = format!("jd{}x{number}", self.place.number);
        let host = self.host()?;
        self.rtnl()?.add_veth(&name, host.outside(), &name)?;
        // With a carrier: a plugin may wait for one before it asks IPAM.
        Rtnl::open(host.outside())?.set_up(&name)?;
        merge(&mut attached.config, &json!({"device": name}));
        Ok(())
    }

    /// An interface as an earlier plugin would have made it, and that plugin's result.
    pub(super) fn chain(&self, attached: &mut Attached, number: u8) -> Verdict {
        self.standins()?;
        let (near, far) = (self.rtnl()?, Rtnl::open(&attached.netns)?);
        let name = self.place.host_end(number);
        near.add_veth(&name, &attached.netns, &attached.ifname)?;
        near.set_up(&name)?;
        far.set_up(&attached.ifname)?;
        let gateway = format!("{}/24", attached.addresses.gateway_v4);
        near.add_address(&name, parse(&gateway)?)?;
        far.add_address(&attached.ifname, parse(&attached.addresses.v4)?)?;
        far.add_route(parse("0.0.0.0/0")?, parse(&attached.addresses.gateway_v4)?)?;
        let mut result = lease(&self.version, &attached.addresses, Families::V4);
        if self.at_least("0.3.0") {
            let (host, own) = (near.link(&name)?, far.link(&attached.ifname)?);
            merge(
                &mut result,
                &json!({"interfaces": [{"name": name, "mac": host.facts.mac},
                    {"name": attached.ifname, "mac": own.facts.mac, "sandbox": attached.path}]}),
            );
            if let Some(ip) = result.pointer_mut("/ips/0") {
                merge(ip, &json!({"interface": 1}));
            }
        }
        if self.subject.name == "bandwidth" || self.at_least("0.3.0") {
            // The dns of the result has to arrive, too.
            merge(
                &mut result,
                &json!({"dns": {"nameservers": ["192.0.2.53"], "search": ["example.test"]}}),
            );
        }
        merge(&mut attached.config, &json!({"prevResult": result}));
        Ok(())
    }

    /// A call for this attachment.
    pub(super) fn ask_for(&self, verb: &str, attached: &Attached) -> Ask {
        let config = if verb == "ADD" {
            attached.config.clone()
        } else {
            attached.request()
        };
        self.ask(verb)
            .set("CNI_CONTAINERID", &attached.id)
            .set("CNI_NETNS", &attached.path)
            .set("CNI_IFNAME", &attached.ifname)
            .config(&config)
    }

    /// A call that names no attachment.
    pub(super) fn ask_alone(&self, verb: &str) -> Ask {
        let mut config = self.config();
        if self.subject.profile().role == Role::Interface {
            merge(&mut config, &json!({"ipam": {"type": IPAM}}));
        }
        self.ask(verb)
            .unset("CNI_CONTAINERID")
            .unset("CNI_NETNS")
            .unset("CNI_IFNAME")
            .config(&config)
    }

    /// Executes a command for this attachment, whatever comes of it.
    pub(super) fn try_to(&self, verb: &str, attached: &Attached) -> Verdict<Answer> {
        self.send(&self.ask_for(verb, attached))
    }

    /// Executes a command for this attachment, which must succeed and print nothing.
    pub(super) fn must(&self, verb: &str, attached: &Attached) -> Verdict {
        let answer = self.try_to(verb, attached)?;
        good(verb, &answer)?;
        silent(verb, &answer)
    }

    /// Executes a command for this attachment, which must fail as the protocol wants.
    pub(super) fn must_fail(&self, verb: &str, why: &str, attached: &Attached) -> Verdict {
        let answer = self.try_to(verb, attached)?;
        if answer.ok() {
            return fault(format!("{verb} succeeded although {why}"));
        }
        refused(verb, &answer).map(drop)
    }

    /// ADD, which must succeed; gives the result.
    pub(super) fn add(&self, attached: &mut Attached) -> Verdict<Value> {
        let answer = self.try_to("ADD", attached)?;
        let guessed = !self.subject.is_known() && self.subject.config.is_none();
        if guessed && !answer.ok() {
            return skip(format!(
                "a minimal configuration does not get through an ADD ({}); name one with --config",
                brief(&answer)
            ));
        }
        good("ADD", &answer)?;
        let result = answer.json().filter(Value::is_object);
        let Some(result) = result else {
            return fault(format!("ADD printed no result object: {}", answer.text()));
        };
        attached.result = Some(result.clone());
        Ok(result)
    }

    /// A container that is attached.
    pub(super) fn added(&self) -> Verdict<Attached> {
        let mut attached = self.attach()?;
        self.add(&mut attached)?;
        Ok(attached)
    }

    /// A namespace for which nobody has made anything.
    pub(super) fn interface_is_there(&self, attached: &Attached) -> Verdict<bool> {
        let links = Rtnl::open(&attached.netns)?.links()?;
        Ok(links.iter().any(|link| link.name == attached.ifname))
    }
}

/// The answer must be success.
pub fn good(verb: &str, answer: &Answer) -> Verdict {
    if answer.ok() {
        return Ok(());
    }
    fault(format!("{verb} failed: {}", brief(answer)))
}

/// Success of a command without a result prints nothing.
pub fn silent(verb: &str, answer: &Answer) -> Verdict {
    if answer.stdout.iter().all(u8::is_ascii_whitespace) {
        return Ok(());
    }
    fault(format!(
        "{verb} succeeded and printed something: {}",
        answer.text()
    ))
}

/// The answer must be the protocol's error; gives code, message and details.
pub fn refused(verb: &str, answer: &Answer) -> Verdict<(u64, String)> {
    if answer.ok() {
        return fault(format!("{verb} succeeded: {}", answer.text()));
    }
    let object = answer.json();
    let object = object.as_ref().and_then(Value::as_object);
    let code = object.and_then(|object| object.get("code")?.as_u64());
    let text = |key: &str| {
        object
            .and_then(|object| object.get(key)?.as_str())
            .unwrap_or_default()
    };
    match code {
        Some(code) if answer.status.code().is_some() => {
            Ok((code, format!("{}; {}", text("msg"), text("details"))))
        }
        _ => fault(format!(
            "{verb} ended without an error object on standard output: {}",
            answer.text()
        )),
    }
}

/// The error object in a few words, or everything.
pub fn brief(answer: &Answer) -> String {
    match answer.error() {
        Some(error) if error.details.is_empty() => {
            format!("code {}, {:?}", error.code, error.msg)
        }
        Some(error) => format!("code {}, {:?} ({})", error.code, error.msg, error.details),
        None => answer.text(),
    }
}

/// Reads an address or a network.
pub fn parse<T: std::str::FromStr>(text: &str) -> Verdict<T>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error| {
        Trouble::Harness(Error::Invalid {
            what: format!("{text}: {error}"),
        })
    })
}
