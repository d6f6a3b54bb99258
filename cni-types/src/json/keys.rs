//! Which keys a type takes, asked of the code that decodes it.

use std::cell::RefCell;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor,
};

use super::DecodeError;

/// No configuration nests deeper; a type that holds itself would for ever.
const DEPTH_MAX: usize = 16;

/// A key that a configuration may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The way to it, as `ipam.ranges[][].subnet`: `[]` stands for any element of an array.
    pub path: String,
    /// What its value is: `bool`, `int`, `number`, `string`, `any`, or `list of` and `object of` one of these.
    pub kind: String,
}

/// Every key that [`from_value`](super::from_value) takes for a `T`, in the order of its fields.
///
/// Nothing is listed by hand: `T` is decoded from a document that has each key in turn, as far as the value of the key, and
/// the names are those that the decoder compares with.
///
/// ```
/// #[derive(serde::Deserialize, Default)]
/// #[serde(rename_all = "camelCase", default)]
/// struct Ports { host_port: u16, names: Vec<String> }
/// let keys: Vec<_> = cni_types::json::keys::<Ports>().into_iter().map(|k| (k.path, k.kind)).collect();
/// let key = |path: &str, kind: &str| (path.to_owned(), kind.to_owned());
/// assert_eq!(keys, [key("hostPort", "int"), key("names", "list of string")]);
/// ```
pub fn keys<T: DeserializeOwned>() -> Vec<Key> {
    let trace = RefCell::new(Trace::default());
    loop {
        // The error that ends each walk is its purpose.
        let _ = T::deserialize(Walker {
            trace: &trace,
            path: String::new(),
        });
        if !trace.borrow_mut().advance() {
            return trace.into_inner().found;
        }
    }
}

/// Which field is taken at each struct on the way, and how many there are.
#[derive(Default)]
struct Trace {
    choices: Vec<(usize, usize)>,
    depth: usize,
    found: Vec<Key>,
}

impl Trace {
    fn choose(&mut self, count: usize) -> usize {
        let depth = self.depth;
        self.depth += 1;
        match self.choices.get_mut(depth) {
            Some((index, known)) => {
                *known = count;
                *index
            }
            None => {
                self.choices.push((0, count));
                0
            }
        }
    }

    /// Goes on to the next way; false if that was the last.
    fn advance(&mut self) -> bool {
        self.choices.truncate(self.depth);
        self.depth = 0;
        while let Some((index, count)) = self.choices.last_mut() {
            *index += 1;
            if *index < *count {
                return true;
            }
            self.choices.pop();
        }
        false
    }

    fn leaf(&mut self, path: &str, kind: &str) {
        let mut path = path;
        let mut words = String::new();
        loop {
            if let Some(rest) = path.strip_suffix("[]") {
                path = rest;
                words.insert_str(0, "list of ");
            } else if let Some(rest) = path.strip_suffix(".*") {
                path = rest;
                words.insert_str(0, "object of ");
            } else {
                break;
            }
        }
        let key = Key {
            path: path.to_owned(),
            kind: words + kind,
        };
        if !key.path.is_empty() && !self.found.contains(&key) {
            self.found.push(key);
        }
    }
}

/// Stands for a value that has every type.
struct Walker<'t> {
    trace: &'t RefCell<Trace>,
    path: String,
}

impl<'t> Walker<'t> {
    fn at(&self, path: String) -> Walker<'t> {
        Walker {
            trace: self.trace,
            path,
        }
    }

    fn leaf<T>(&self, kind: &str) -> Result<T, DecodeError> {
        self.trace.borrow_mut().leaf(&self.path, kind);
        Err(de::Error::custom("a key and no value"))
    }
}

macro_rules! leaves {
    ($($kind:literal: $($method:ident)*;)*) => {$($(
        fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, DecodeError> {
            self.leaf($kind)
        }
    )*)*};
}

impl<'de> Deserializer<'de> for Walker<'_> {
    type Error = DecodeError;

    leaves! {
        "any": deserialize_any deserialize_bytes deserialize_byte_buf deserialize_unit deserialize_ignored_any;
        "bool": deserialize_bool;
        "int": deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
            deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64;
        "number": deserialize_f32 deserialize_f64;
        "string": deserialize_char deserialize_str deserialize_string deserialize_identifier;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_some(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: V,
    ) -> Result<V::Value, DecodeError> {
        self.leaf("any")
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let path = format!("{}[]", self.path);
        visitor.visit_seq(Single(Some(self.at(path))))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let path = format!("{}.*", self.path);
        visitor.visit_map(Pair("*", Some(self.at(path))))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        if fields.is_empty() || self.trace.borrow().depth >= DEPTH_MAX {
            return self.leaf("any");
        }
        let chosen = self.trace.borrow_mut().choose(fields.len());
        let name = fields.get(chosen).copied().unwrap_or_default();
        let path = if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        };
        visitor.visit_map(Pair(name, Some(self.at(path))))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, DecodeError> {
        self.leaf("string")
    }
}

/// An array with one element.
struct Single<'t>(Option<Walker<'t>>);

impl<'de> SeqAccess<'de> for Single<'_> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        self.0.take().map(|one| seed.deserialize(one)).transpose()
    }
}

/// An object with one pair.
struct Pair<'t>(&'static str, Option<Walker<'t>>);

impl<'de> MapAccess<'de> for Pair<'_> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, DecodeError> {
        if self.1.is_none() {
            return Ok(None);
        }
        seed.deserialize(StrDeserializer::<DecodeError>::new(self.0))
            .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, DecodeError> {
        match self.1.take() {
            Some(walker) => seed.deserialize(walker),
            None => Err(de::Error::custom("value asked for before its key")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Dns, Route};
    use serde::Deserialize;
    use std::collections::BTreeMap;

    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    #[allow(dead_code)]
    struct All {
        plain_text: Option<String>,
        ranges: Vec<Vec<Option<Inner>>>,
        map: BTreeMap<String, bool>,
        rest: serde_json::Value,
        mode: Option<Mode>,
        nested: Inner,
        routes: Vec<Route>,
        dns: Dns,
    }

    #[derive(Deserialize, Default)]
    #[serde(default)]
    #[allow(dead_code)]
    struct Inner {
        #[serde(rename = "minID")]
        min_id: i64,
        #[serde(deserialize_with = "crate::net::optional_ip")]
        gateway: Option<std::net::IpAddr>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        One,
    }

    #[test]
    fn every_kind_of_key() {
        let found: Vec<(String, String)> = keys::<All>()
            .into_iter()
            .map(|key| (key.path, key.kind))
            .collect();
        let expected = [
            ("plainText", "string"),
            ("ranges[][].minID", "int"),
            ("ranges[][].gateway", "string"),
            ("map", "object of bool"),
            ("rest", "any"),
            ("mode", "string"),
            ("nested.minID", "int"),
            ("nested.gateway", "string"),
            ("routes[].dst", "string"),
            ("routes[].gw", "string"),
            ("routes[].mtu", "int"),
            ("routes[].advmss", "int"),
            ("routes[].priority", "int"),
            ("routes[].table", "int"),
            ("routes[].scope", "int"),
            ("dns.nameservers", "list of string"),
            ("dns.domain", "string"),
            ("dns.search", "list of string"),
            ("dns.options", "list of string"),
        ];
        assert_eq!(
            found,
            expected.map(|(path, kind)| (path.to_owned(), kind.to_owned()))
        );
        let _ = Mode::One;
    }

    #[test]
    fn nothing_to_configure() {
        #[derive(Deserialize)]
        struct Empty {}
        assert!(keys::<Empty>().is_empty());
        let _ = Empty {};
    }
}
