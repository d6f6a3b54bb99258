//! The error object that a plugin prints and a runtime reads.

use crate::json::{self, DecodeError};
use crate::names::NameError;
use crate::version::SpecVersion;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt;

/// The error codes of the specification, and the two that the reference set adds (8 and 999).
/// Plugins may use 100 and above for themselves.
pub mod code {
    /// Never printed by a plugin: what a runtime makes of a failure without an error object.
    pub const UNKNOWN: u32 = 0;
    /// The plugin does not support the version of the configuration.
    pub const INCOMPATIBLE_VERSION: u32 = 1;
    /// A field of the configuration is not supported; the message names key and value.
    pub const UNSUPPORTED_FIELD: u32 = 2;
    /// The container is unknown or does not exist; the runtime need not clean up.
    pub const UNKNOWN_CONTAINER: u32 = 3;
    /// A required environment variable is missing or invalid.
    pub const INVALID_ENVIRONMENT: u32 = 4;
    /// Reading the request or writing the answer failed.
    pub const IO_FAILURE: u32 = 5;
    /// The request is not JSON, or a value in it has the wrong type.
    pub const DECODING_FAILURE: u32 = 6;
    /// The network configuration is not valid.
    pub const INVALID_NETWORK_CONFIG: u32 = 7;
    /// The network namespace cannot be used, for instance because it is the plugin's own.
    pub const INVALID_NETNS: u32 = 8;
    /// The runtime should try again later.
    pub const TRY_AGAIN_LATER: u32 = 11;
    /// STATUS: the plugin cannot serve ADD requests.
    pub const PLUGIN_NOT_AVAILABLE: u32 = 50;
    /// STATUS: as 50, and containers attached already may have limited connectivity.
    pub const LIMITED_CONNECTIVITY: u32 = 51;
    /// Any failure without a code of its own.
    pub const INTERNAL: u32 = 999;

    /// The name of a code, for people; `None` for codes of no general meaning.
    pub fn name(code: u32) -> Option<&'static str> {
        Some(match code {
            UNKNOWN => "unknown",
            INCOMPATIBLE_VERSION => "incompatible version",
            UNSUPPORTED_FIELD => "unsupported field",
            UNKNOWN_CONTAINER => "unknown container",
            INVALID_ENVIRONMENT => "invalid environment",
            IO_FAILURE => "I/O failure",
            DECODING_FAILURE => "decoding failure",
            INVALID_NETWORK_CONFIG => "invalid network config",
            INVALID_NETNS => "invalid network namespace",
            TRY_AGAIN_LATER => "try again later",
            PLUGIN_NOT_AVAILABLE => "plugin not available",
            LIMITED_CONNECTIVITY => "limited connectivity",
            INTERNAL => "internal",
            _ => return None,
        })
    }
}

/// A CNI error: a [code](code), a message, and details that may be empty.
///
/// Displayed as `msg` or `msg; details`; the code is not shown.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct CniError {
    /// One of [`code`], or 100 and above for a plugin's own.
    pub code: u32,
    /// What failed, on which object.
    pub msg: String,
    /// More about it; empty if there is nothing to add.
    pub details: String,
}

impl CniError {
    /// An error without details.
    pub fn new(code: u32, msg: impl Into<String>) -> Self {
        CniError {
            code,
            msg: msg.into(),
            details: String::new(),
        }
    }

    /// The same error with details.
    #[must_use]
    pub fn with_details(mut self, details: impl Into<String>) -> Self {
        self.details = details.into();
        self
    }

    /// Reads the error object that a plugin printed. Unknown keys are ignored, and every key may
    /// be missing.
    ///
    /// # Errors
    ///
    /// When the value is no object, or `code` is no integer from 0 to 2^32-1.
    pub fn decode(value: &Value) -> Result<Self, DecodeError> {
        json::from_value(value)
    }

    /// The object: `cniVersion` if given (the reference set leaves it out), code, msg, and
    /// details unless empty.
    pub fn encode(&self, version: Option<SpecVersion>) -> Value {
        let mut object = Map::new();
        if let Some(version) = version {
            object.insert("cniVersion".into(), version.as_str().into());
        }
        object.insert("code".into(), self.code.into());
        object.insert("msg".into(), self.msg.as_str().into());
        if !self.details.is_empty() {
            object.insert("details".into(), self.details.as_str().into());
        }
        Value::Object(object)
    }

    /// What a plugin prints: [`encode`](Self::encode) without a version, indented by four spaces,
    /// without a trailing newline.
    pub fn to_json(&self) -> String {
        json::to_pretty(&self.encode(None))
    }
}

impl fmt::Display for CniError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.msg)?;
        if !self.details.is_empty() {
            write!(f, "; {}", self.details)?;
        }
        Ok(())
    }
}

impl std::error::Error for CniError {}

impl From<NameError> for CniError {
    fn from(error: NameError) -> Self {
        let details = error.details();
        CniError::new(error.code(), error.to_string()).with_details(details)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn prints_in_order_without_empty_details() {
        let error = CniError::new(code::TRY_AGAIN_LATER, "busy");
        assert_eq!(
            error.to_json(),
            "{\n    \"code\": 11,\n    \"msg\": \"busy\"\n}"
        );
        assert_eq!(error.to_string(), "busy");
        let error = error.with_details("a <b>");
        assert!(
            error
                .to_json()
                .ends_with("\"details\": \"a \\u003cb\\u003e\"\n}")
        );
        assert_eq!(error.to_string(), "busy; a <b>");
        let with_version = error.encode(Some(SpecVersion::V1_0_0));
        assert_eq!(with_version.get("cniVersion"), Some(&json!("1.0.0")));
    }

    #[test]
    fn decodes_leniently_but_not_a_wrong_code() {
        assert_eq!(CniError::decode(&json!({})).unwrap(), CniError::default());
        let error = CniError::decode(&json!({"Code": 7, "msg": "m", "details": null, "x": 1}));
        assert_eq!(error.unwrap(), CniError::new(7, "m"));
        for bad in [
            json!({"code": -1}),
            json!({"code": 1.5}),
            json!({"code": "1"}),
            json!([]),
        ] {
            assert!(CniError::decode(&bad).is_err(), "{bad}");
        }
    }
}
