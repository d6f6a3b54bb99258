//! Values that change from run to run, replaced by stable ones of the same shape.

use std::collections::HashMap;

use regex_lite::{Captures, Regex};

use super::Call;
use crate::{Error, Result};

/// Container id, UUID, names of a veth and an IFB, MAC address, descriptor and number of a process, name of a
/// build step, short container id.
const VOLATILE: &str = "(?<id>[0-9a-f]{64})\
    |(?<uuid>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\
    |(?<veth>veth[0-9a-f]{8,11})\
    |(?<ifb>bwp[0-9a-f]{12})\
    |(?<mac>(?:[0-9a-f]{2}:){5}[0-9a-f]{2})\
    |(?<descriptor>/proc/[0-9]+/fd/[0-9]+)\
    |(?<process>/proc/[0-9]+/)\
    |(?<build>buildah[0-9]+)\
    |(?<short>\\b[0-9a-f]{12}\\b)";

/// The names of its groups but the last.
const KINDS: [&str; 8] = [
    "id",
    "uuid",
    "veth",
    "ifb",
    "mac",
    "descriptor",
    "process",
    "build",
];

/// The MAC address of loopback, which is always this one.
const NO_MAC: &str = "00:00:00:00:00:00";

/// Replaces what is volatile, and of equal VERSION calls keeps the first: how often a client asks
/// depends on how many commands the scenario is made of.
///
/// # Errors
/// Never for calls that were recorded.
pub fn normalise(calls: &[Call]) -> Result<Vec<Call>> {
    let bad = |what: String| Error::Malformed { what };
    let pattern = Regex::new(VOLATILE).map_err(|error| bad(error.to_string()))?;
    let mut names = Names::default();
    let mut done: Vec<Call> = Vec::new();
    for call in calls {
        let text = serde_json::to_string(call).unwrap_or_default();
        let text = pattern.replace_all(&text, |found: &Captures<'_>| names.stable(found));
        let call: Call =
            serde_json::from_str(&text).map_err(|error| bad(format!("{text}: {error}")))?;
        if call.command() != "VERSION" || !done.contains(&call) {
            done.push(call);
        }
    }
    Ok(done)
}

/// A text with the kinds of its volatile values in their place.
pub(super) fn shape(text: &str) -> String {
    let Ok(pattern) = Regex::new(VOLATILE) else {
        return text.to_owned();
    };
    let replaced = pattern.replace_all(text, |found: &Captures<'_>| format!("<{}>", kind(found)));
    replaced.into_owned()
}

fn kind(found: &Captures<'_>) -> &'static str {
    KINDS
        .into_iter()
        .find(|kind| found.name(kind).is_some())
        .unwrap_or("short")
}

/// Which stable value stands for which volatile one.
#[derive(Default)]
struct Names {
    known: HashMap<String, String>,
    counts: HashMap<&'static str, u32>,
}

impl Names {
    fn stable(&mut self, found: &Captures<'_>) -> String {
        let text = found.get(0).map_or("", |whole| whole.as_str());
        if text == NO_MAC {
            return NO_MAC.into();
        }
        if let Some(name) = self.known.get(text) {
            return name.clone();
        }
        let kind = kind(found);
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let number = *count;
        let name = match kind {
            "id" => format!("{number:064x}"),
            "uuid" => format!("00000000-0000-4000-8000-{number:012x}"),
            "ifb" => format!("bwp{number:012x}"),
            "veth" => format!("veth{number:011x}"),
            "mac" => format!("02:00:00:00:{:02x}:{:02x}", number >> 8, number & 0xff),
            "build" => format!("buildah{number:010}"),
            "descriptor" => format!("/proc/{}/fd/9", 1000 + number),
            "process" => format!("/proc/{}/", 1000 + number),
            _ => format!("{number:012x}"),
        };
        self.known.insert(text.to_owned(), name.clone());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(netns: &str, mac: &str) -> Call {
        serde_json::from_value(json!({
            "plugin": "bridge",
            "env": {"CNI_COMMAND": "ADD", "CNI_NETNS": netns},
            "stdin": {"mac": mac},
            "exit": 0,
            "stdout": {"interfaces": [{"name": "veth0a1b2c3d", "mac": mac}, {"name": "lo", "mac": NO_MAC}]},
        }))
        .unwrap()
    }

    #[test]
    fn two_runs_of_one_scenario_are_equal() {
        let one = [call("/proc/77/ns/net", "aa:bb:cc:dd:ee:ff")];
        let two = [call("/proc/1234/ns/net", "0e:11:22:33:44:55")];
        let one = normalise(&one).unwrap();
        assert_eq!(one, normalise(&two).unwrap());
        assert_eq!(one[0].var("CNI_NETNS"), "/proc/1001/ns/net");
        assert_eq!(one[0].stdout["interfaces"][0]["name"], "veth00000000001");
        assert_eq!(one[0].stdout["interfaces"][1]["mac"], NO_MAC);
    }

    #[test]
    fn what_is_the_same_stays_the_same() {
        let calls = [
            call("/proc/77/ns/net", "aa:bb:cc:dd:ee:ff"),
            call("/proc/78/ns/net", "aa:bb:cc:dd:ee:ff"),
        ];
        let calls = normalise(&calls).unwrap();
        assert_ne!(calls[0].var("CNI_NETNS"), calls[1].var("CNI_NETNS"));
        assert_eq!(calls[0].stdin, calls[1].stdin);
    }
}
