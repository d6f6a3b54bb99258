//! JSON as the reference set reads and writes it.
//!
//! Two layers: [`parse`] makes a lossless [`Value`] (order of keys and text of numbers are
//! kept), and [`from_value`] decodes typed views from it with the rules that runtimes rely on:
//!
//! * object keys match struct fields exactly, else without regard to case; of several keys that
//!   match one field the last wins;
//! * `null` leaves a field at its default;
//! * unknown keys are ignored;
//! * integers are plain integer literals in range, never strings or `1.0`.
//!
//! A config struct needs nothing but
//! `#[derive(Deserialize, Default)] #[serde(rename_all = "camelCase", default)]`. Not supported,
//! because serde hides the field names from the deserializer: `flatten`, `untagged` and
//! internally tagged enums.
//!
//! ```
//! #[derive(serde::Deserialize, Default)]
//! #[serde(rename_all = "camelCase", default)]
//! struct PortMapping {
//!     host_port: u16,
//!     protocol: String,
//! }
//! let value = cni_types::json::parse(br#"{"HostPort": 8080, "Protocol": null}"#)?;
//! let mapping: PortMapping = cni_types::json::from_value(&value)?;
//! assert_eq!((mapping.host_port, mapping.protocol.as_str()), (8080, ""));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
mod decode;
mod fold;
mod keys;
mod parse;
mod print;
mod repeated;

pub use decode::{DecodeError, from_value};
pub use fold::{get, remove, same_key};
pub use keys::{Key, keys};
pub use parse::{ParseError, parse};
pub use print::{sorted, to_pretty, to_string};
pub use repeated::repeated_keys;

use serde_json::Value;

/// The kind of a value, as error messages name it.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
