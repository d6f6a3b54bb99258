//! A recorded scenario played against any plugin directory.

use std::collections::HashMap;
use std::fs;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use ipnetwork::IpNetwork;
use serde_json::{Map, Value};

use super::{Call, Transcript};
use crate::chain::standard_path;
use crate::facts::{addresses, spellings};
use crate::net::{Host, Netns};
use crate::plugin;
use crate::{Error, Result, error::Context};

/// Plays transcripts on the host of a sandbox.
///
/// Namespaces are made where the client had them and go when the client had lost them; what a
/// plugin answers now takes the place of what was recorded in all that follows.
#[derive(Debug)]
pub struct Replay<'a> {
    host: &'a Host,
    plugins: PathBuf,
    /// What stands for a recorded text now.
    known: HashMap<String, String>,
    /// The namespace that stands for a recorded path.
    places: HashMap<String, Netns>,
    /// The recorded path of each container's namespace.
    homes: HashMap<String, String>,
    owners: Vec<String>,
}

impl<'a> Replay<'a> {
    /// A replay that has not begun.
    #[must_use]
    pub fn new(host: &'a Host, plugins: &Path) -> Self {
        Self {
            host,
            plugins: plugins.to_owned(),
            known: HashMap::new(),
            places: HashMap::new(),
            homes: HashMap::new(),
            owners: Vec::new(),
        }
    }

    /// Makes every call in its turn; exit codes and the shape of answers have to be the same.
    ///
    /// # Errors
    /// The first call that was answered otherwise.
    pub fn play(&mut self, transcript: &Transcript) -> Result<()> {
        for (number, call) in transcript.calls.iter().enumerate() {
            let place = || {
                let verb = call.command();
                format!("call {number} ({} {verb})", call.plugin)
            };
            let answer = self.make(call)?;
            if answer.status.code() != Some(call.exit) {
                return Err(Error::unexpected(
                    format!("{} to exit with {}", place(), call.exit),
                    answer.text(),
                ));
            }
            let stdout = answer.json().unwrap_or(Value::Null);
            if call.exit != 0 {
                // Texts of errors name paths, and may be bettered.
                if call.stdout.get("code") != stdout.get("code") {
                    let expected = format!("{} to fail with {}", place(), call.stdout);
                    return Err(Error::unexpected(expected, answer.text()));
                }
                continue;
            }
            learn(&mut self.known, &call.stdout, &stdout).map_err(|what| {
                Error::unexpected(format!("{} to answer as recorded", place()), what)
            })?;
            self.remember(call, &stdout);
        }
        Ok(())
    }

    /// Container ids and addresses, in every spelling: nothing may mention them in the end.
    #[must_use]
    pub fn owners(&self) -> &[String] {
        &self.owners
    }

    fn remember(&mut self, call: &Call, stdout: &Value) {
        // Those of loopback are nobody's own, and part of others.
        let given = addresses(stdout)
            .into_iter()
            .map(|one| one.address.ip())
            .filter(|ip| !ip.is_loopback())
            .flat_map(spellings);
        let id = call.var("CNI_CONTAINERID").to_owned();
        for owner in given.chain([id]) {
            if !owner.is_empty() && !self.owners.contains(&owner) {
                self.owners.push(owner);
            }
        }
    }

    fn make(&mut self, call: &Call) -> Result<plugin::Answer> {
        let netns = self.namespace(call)?;
        let program = plugin::find(&call.plugin, std::slice::from_ref(&self.plugins))?;
        let mut made = plugin::Call::new(program).env("PATH", standard_path());
        for (name, value) in &call.env {
            made = match name.as_str() {
                "CNI_PATH" if value != "dummy" => made.env(name, &self.plugins),
                "CNI_NETNS" => made.env(name, &netns),
                _ => made.env(name, value),
            };
        }
        let stdin = match &call.stdin {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            value => self.today(value).to_string(),
        };
        made.stdin(stdin).run()
    }

    /// What stands for the recorded `CNI_NETNS` now.
    fn namespace(&mut self, call: &Call) -> Result<String> {
        let recorded = call.var("CNI_NETNS");
        let id = call.var("CNI_CONTAINERID");
        if recorded.is_empty() {
            // How a client says that the namespace is gone; it was not empty at the ADD.
            if let Some(home) = self.homes.remove(id) {
                self.places.remove(&home);
            }
            return Ok(String::new());
        }
        if id.is_empty() || recorded == "dummy" {
            return Ok(recorded.to_owned());
        }
        if call.netns_gone {
            self.places.remove(recorded);
        } else if !self.places.contains_key(recorded) {
            self.settle(recorded)?;
        }
        self.homes.insert(id.to_owned(), recorded.to_owned());
        let known = self.known.get(recorded);
        Ok(known.map_or_else(|| recorded.to_owned(), Clone::clone))
    }

    /// Makes the namespace that a recorded path named, at a path of the same kind.
    fn settle(&mut self, recorded: &str) -> Result<()> {
        let name = recorded.trim_matches('/').replace('/', "-");
        let name = match recorded.rsplit_once("/netns/") {
            Some((_, last)) if !last.contains('/') => last,
            _ => &name,
        };
        let netns = self.host.container(name)?;
        let path = if recorded.starts_with("/proc/") {
            let own = fs::read_link("/proc/self").doing(|| "read /proc/self")?;
            format!("/proc/{}/fd/{}", own.display(), netns.fd().as_raw_fd())
        } else {
            netns.path().display().to_string()
        };
        self.known.insert(recorded.to_owned(), path);
        self.places.insert(recorded.to_owned(), netns);
        Ok(())
    }

    /// A recorded value with what is known in the place of what was.
    fn today(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.known.get(text).unwrap_or(text).clone().into(),
            Value::Array(list) => list.iter().map(|one| self.today(one)).collect(),
            Value::Object(map) => {
                let entries = map.iter().map(|(key, one)| (key.clone(), self.today(one)));
                Value::Object(entries.collect::<Map<_, _>>())
            }
            other => other.clone(),
        }
    }
}

/// Compares two answers by shape and notes which text took the place of which.
fn learn(
    known: &mut HashMap<String, String>,
    recorded: &Value,
    actual: &Value,
) -> std::result::Result<(), String> {
    match (recorded, actual) {
        (Value::String(one), Value::String(two)) => {
            let same = one == two || known.get(one) == Some(two);
            if !same && (kind(one).is_none() || kind(one) != kind(two)) {
                return Err(format!("{two:?} instead of {one:?}"));
            }
            known.insert(one.clone(), two.clone());
            Ok(())
        }
        (Value::Array(one), Value::Array(two)) if one.len() == two.len() => one
            .iter()
            .zip(two)
            .try_for_each(|(one, two)| learn(known, one, two)),
        (Value::Object(one), Value::Object(two)) if one.len() == two.len() => {
            one.iter().try_for_each(|(key, one)| match two.get(key) {
                Some(two) => learn(known, one, two),
                None => Err(format!("no {key} in {actual}")),
            })
        }
        _ if recorded == actual => Ok(()),
        _ => Err(format!("{actual} instead of {recorded}")),
    }
}

/// What a text is, where texts of one kind may stand for each other.
fn kind(text: &str) -> Option<&'static str> {
    let mac = text.split(':').count() == 6
        && text
            .split(':')
            .all(|byte| byte.len() == 2 && u8::from_str_radix(byte, 16).is_ok());
    let named = |prefix: &str| {
        text.strip_prefix(prefix)
            .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    if mac {
        Some("mac")
    } else if named("veth") {
        Some("veth")
    } else if named("bwp") {
        Some("IFB")
    } else if text.starts_with('/') {
        Some("path")
    } else if text.parse::<IpAddr>().is_ok() {
        Some("address")
    } else if text.contains('/') && text.parse::<IpNetwork>().is_ok() {
        Some("network")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_are_compared_by_shape() {
        let mut known = HashMap::new();
        let recorded = json!({"mac": "02:00:00:00:00:01", "ips": ["10.0.0.2/8"], "mtu": 1500});
        let alike = json!({"mac": "0a:11:22:33:44:55", "ips": ["10.0.0.9/8"], "mtu": 1500});
        learn(&mut known, &recorded, &alike).unwrap();
        assert_eq!(known["02:00:00:00:00:01"], "0a:11:22:33:44:55");
        for other in [
            json!({"mac": "eth0", "ips": ["10.0.0.2/8"], "mtu": 1500}),
            json!({"mac": "02:00:00:00:00:01", "ips": [], "mtu": 1500}),
            json!({"mac": "02:00:00:00:00:01", "ips": ["10.0.0.2/8"], "mtu": 1400}),
            json!({"mac": "02:00:00:00:00:01", "ips": ["10.0.0.2/8"]}),
            json!(null),
        ] {
            assert!(
                learn(&mut HashMap::new(), &recorded, &other).is_err(),
                "{other}"
            );
        }
    }
}
