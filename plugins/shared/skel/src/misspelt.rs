//! Keys of a configuration that are one slip away from one that the plugin knows, at any depth. Unknown keys are ignored,
//! as the specification wants, and so a slip would go unnoticed.

use cni_types::conf::NetConf;
use cni_types::json::{self, Key};
use cni_types::nearest::distance;
use serde_json::Value;

use crate::dispatch::{LOG_FILE, LOG_LEVEL};
use crate::plugin::Plugin;

/// Keys shorter than this are too close to one another by chance.
const SHORTEST: usize = 4;
/// From this length on, two slips are taken for slips.
const LONG: usize = 8;
/// After so many the point is made.
const MOST: usize = 16;

/// Sections of which a plugin reads what it likes; what the others have in them is none of its business.
const SECTIONS: [&str; 5] = ["ipam", "dns", "args", "runtimeConfig", "cniVersions"];

/// The keys of the configuration that `P` takes: its own, the protocol's, and those of every plugin of ours.
pub(crate) fn keys_of<P: Plugin>() -> Vec<Key> {
    let ours = [LOG_LEVEL, LOG_FILE].map(|path| Key {
        path: path.to_owned(),
        kind: "string".to_owned(),
    });
    let all = P::keys().into_iter().chain(NetConf::keys());
    all.chain(ours).collect()
}

/// A key that nobody reads, and the one that was meant by it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Slip {
    /// The way to the key as it is written, as `ipam.ranges[0][0].subnett`.
    pub(crate) written: String,
    /// The way to the other.
    pub(crate) meant: String,
}

/// The unknown keys of a configuration that look like one of those that `P` takes and that is not there.
///
/// An IPAM plugin is given the whole configuration of the plugin that calls it, which looks after its own keys.
pub(crate) fn slips_of<P: Plugin>(config: &Value) -> Vec<Slip> {
    let word = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let ipam = json::get(config, "ipam");
    let own = Some(P::NAME.to_owned());
    let delegated = word(json::get(config, "type")) != own
        && word(ipam.and_then(|ipam| json::get(ipam, "type"))) == own;
    match ipam.filter(|_| delegated) {
        Some(ipam) => slips(ipam, "ipam", &keys_of::<P>()),
        None => slips(config, "", &keys_of::<P>()),
    }
}

/// The same for the part of a configuration to which `place` is the way.
fn slips(part: &Value, place: &str, known: &[Key]) -> Vec<Slip> {
    let paths = known.iter().map(|key| key.path.as_str());
    let mut search = Search {
        // A key with a slash is somebody's own; dots in it separate nothing.
        paths: paths
            .filter(|path| !path.contains('/'))
            .chain(SECTIONS)
            .collect(),
        found: Vec::new(),
    };
    search.look(part, place, place);
    search.found
}

struct Search<'k> {
    paths: Vec<&'k str>,
    found: Vec<Slip>,
}

impl<'k> Search<'k> {
    /// Looks at a value. `pattern` is the way to it among the known, `written` that in the configuration.
    fn look(&mut self, value: &Value, pattern: &str, written: &str) {
        match value {
            Value::Object(object) => {
                let known = self.below(pattern);
                let is = |key: &str, name: &str| key.eq_ignore_ascii_case(name);
                let absent = |name: &&str| !object.keys().any(|key| is(key, name));
                let absent: Vec<&str> = known.iter().copied().filter(absent).collect();
                for (key, inner) in object {
                    if let Some(name) = known.iter().find(|name| is(key, name)) {
                        self.look(inner, &join(pattern, name), &join(written, key));
                    } else if let Some(name) = meant(key, &absent) {
                        self.tell(join(written, key), join(written, name));
                    }
                }
            }
            Value::Array(elements) => {
                let pattern = format!("{pattern}[]");
                for (index, element) in elements.iter().enumerate() {
                    self.look(element, &pattern, &format!("{written}[{index}]"));
                }
            }
            _ => {}
        }
    }

    /// The names of the keys that an object may have.
    fn below(&self, pattern: &str) -> Vec<&'k str> {
        let mut names: Vec<&str> = Vec::new();
        for path in &self.paths {
            let rest = match pattern {
                "" => Some(*path),
                _ => path
                    .strip_prefix(pattern)
                    .and_then(|rest| rest.strip_prefix('.')),
            };
            let name = rest.and_then(|rest| rest.split(['.', '[']).next());
            names.extend(name.filter(|name| !names.contains(name)));
        }
        names
    }

    fn tell(&mut self, written: String, meant: String) {
        if self.found.len() < MOST {
            self.found.push(Slip { written, meant });
        }
    }
}

fn join(path: &str, key: &str) -> String {
    match path {
        "" => key.to_owned(),
        _ => format!("{path}.{key}"),
    }
}

fn meant<'n>(key: &str, names: &[&'n str]) -> Option<&'n str> {
    if key.len() < SHORTEST || key.contains('/') {
        return None;
    }
    let most = if key.len() >= LONG { 2 } else { 1 };
    let candidates = names.iter().filter(|name| name.len() >= SHORTEST);
    let near = candidates.map(|name| (distance(key, name), *name));
    let best = near.min_by_key(|(distance, _)| *distance)?;
    (best.0 <= most).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 16] = [
        "cniVersion",
        "ipMasq",
        "mtu",
        "isDefaultGateway",
        "mode",
        "name",
        "type",
        "ipam.type",
        "ipam.subnet",
        "ipam.ranges[][].subnet",
        "ipam.ranges[][].rangeStart",
        "runtimeConfig.portMappings[].hostPort",
        "runtimeConfig.portMappings[].containerPort",
        "sysctl",
        "prevResult",
        "cni.dev/attachments[].ifname",
    ];

    fn found(config: &str) -> Vec<(String, String)> {
        let known = KNOWN.map(|path| Key {
            path: path.to_owned(),
            kind: "any".to_owned(),
        });
        let value: Value = serde_json::from_str(config).unwrap();
        let found = slips(&value, "", &known).into_iter();
        found.map(|slip| (slip.written, slip.meant)).collect()
    }

    #[test]
    fn slips_are_found() {
        for (key, field) in [
            ("ipMask", "ipMasq"),
            ("ipMaqs", "ipMasq"),
            ("ipMas", "ipMasq"),
            ("isDefaultGatway", "isDefaultGateway"),
            ("is_default_gateway", "isDefaultGateway"),
            ("modes", "mode"),
            ("runtimeConfg", "runtimeConfig"),
        ] {
            let all = found(&format!(r#"{{"{key}": true, "type": "x"}}"#));
            assert_eq!(all, [(key.to_owned(), field.to_owned())]);
        }
    }

    #[test]
    fn slips_below_are_told_with_the_way_to_them() {
        let all = found(
            r#"{"IPAM":{"tpye":"x","subnett":"","ranges":[[{"subnet":""},{"rangeStrat":""}]]},
                "runtimeConfig":{"portMappings":[{"hostport":1,"containerPrt":1}],"portMapings":[]}}"#,
        );
        let expected = [
            ("IPAM.tpye", "IPAM.type"),
            ("IPAM.subnett", "IPAM.subnet"),
            (
                "IPAM.ranges[0][1].rangeStrat",
                "IPAM.ranges[0][1].rangeStart",
            ),
            (
                "runtimeConfig.portMappings[0].containerPrt",
                "runtimeConfig.portMappings[0].containerPort",
            ),
        ];
        assert_eq!(all, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }

    #[test]
    fn everything_else_is_left_in_peace() {
        let all = found(
            r#"{"cniVersion":"1.0.0","name":"n","type":"t","IPMASQ":true,"mtu":1,"mtv":2,"bridge":"b","vlanId":5,
                "ipam":{"type":"other","types":1,"address":[],"ranges":{"subnett":1}},"sysctl":{"net.core.x":"1","modes":"1"},
                "cni.dev/attachments":[{"ifnam":"x"}],"args":{"ipMask":1},"dns":{"ipMask":1},"prevResult":{"ipMask":1},
                "":1,"isGateway":true,"node":"m"}"#,
        );
        assert_eq!(all, [("node".to_owned(), "mode".to_owned())]);
        for config in ["null", "[[{}]]", "3", r#""ipMask""#] {
            assert!(found(config).is_empty(), "{config}");
        }
    }

    #[test]
    fn many_are_too_many() {
        let element = r#"{"hostPrt":1},"#.repeat(100);
        let config = format!(r#"{{"runtimeConfig":{{"portMappings":[{element}{{}}]}}}}"#);
        assert_eq!(found(&config).len(), MOST);
    }
}
