//! Keys of a configuration that are one slip away from one that the plugin knows. Unknown keys are ignored, as the
//! specification wants, and so a slip would go unnoticed.

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde_json::Value;

use crate::nearest::distance;

/// Keys shorter than this are too close to one another by chance.
const SHORTEST: usize = 4;
/// From this length on, two slips are taken for slips.
const LONG: usize = 8;

/// Keys that are not the plugin's but the protocol's, and ours in every plugin.
const OF_ALL: [&str; 12] = [
    "cniVersion",
    "cniVersions",
    "name",
    "type",
    "ipam",
    "dns",
    "args",
    "capabilities",
    "runtimeConfig",
    "prevResult",
    "logLevel",
    "logFile",
];

/// The unknown keys of a configuration that look like one of `C`'s, each with that one.
pub fn suspects<C: DeserializeOwned>(config: &Value) -> Vec<(&str, &'static str)> {
    let mut fields = Fields(&[]);
    // It always fails: the names are all that is wanted.
    drop(C::deserialize(&mut fields));
    let Value::Object(object) = config else {
        return Vec::new();
    };
    let known = |key: &str| {
        let mut all = fields.0.iter().chain(&OF_ALL);
        key.contains('/') || all.any(|field| field.eq_ignore_ascii_case(key))
    };
    let unknown = object.keys().filter(|key| !known(key));
    unknown
        .filter_map(|key| Some((key.as_str(), nearest(key, fields.0)?)))
        .collect()
}

fn nearest(key: &str, fields: &'static [&'static str]) -> Option<&'static str> {
    let allowed = if key.len() >= LONG { 2 } else { 1 };
    let candidates = fields.iter().filter(|field| field.len() >= SHORTEST);
    let near = candidates.map(|field| (distance(key, field), *field));
    let best = near.min_by_key(|(distance, _)| *distance)?;
    (key.len() >= SHORTEST && best.0 <= allowed).then_some(best.1)
}

/// Asks a type which fields it has.
struct Fields(&'static [&'static str]);

impl<'de> Deserializer<'de> for &mut Fields {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("no struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        self.0 = fields;
        Err(Error::custom("asked only for the fields"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    #[allow(dead_code)]
    struct Config {
        ip_masq: bool,
        mtu: u32,
        is_default_gateway: bool,
        mode: String,
    }

    fn found(config: &str) -> Vec<(String, String)> {
        let value: Value = serde_json::from_str(config).unwrap();
        let found = suspects::<Config>(&value).into_iter();
        found
            .map(|(key, field)| (key.to_owned(), field.to_owned()))
            .collect()
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
        ] {
            let all = found(&format!(r#"{{"{key}": true, "type": "x"}}"#));
            assert_eq!(all, [(key.to_owned(), field.to_owned())]);
        }
    }

    #[test]
    fn everything_else_is_left_in_peace() {
        let all = found(
            r#"{"cniVersion":"1.0.0","name":"n","type":"t","IPMASQ":true,"mtu":1,"mtv":2,"bridge":"b","vlanId":5,"ipam":{},
                "cni.dev/attachments":[],"args":{},"dns":{},"runtimeConfig":{},"prevResult":{},"":1,"isGateway":true,"node":"m"}"#,
        );
        assert_eq!(all, [("node".to_owned(), "mode".to_owned())]);
        assert!(suspects::<Config>(&Value::Null).is_empty());
        assert!(suspects::<u32>(&serde_json::json!({"ipMask": 1})).is_empty());
    }
}
