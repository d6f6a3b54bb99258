//! The Container Network Interface specification as types: versions, names, configuration,
//! results, errors and arguments, for every version from 0.1.0 to 1.1.0.
//!
//! Nothing here touches a file, a socket or the environment. JSON is read the way the reference
//! set reads it (see [`json`]), because runtimes rely on that: keys match without regard to
//! case, `null` means "not given", and whatever is not understood passes through untouched.
//!
//! ```
//! use cni_types::{CniResult, SpecVersion, json};
//!
//! let printed = br#"{"cniVersion": "0.2.0", "ip4": {"ip": "10.1.0.2/16"}}"#;
//! let value = json::parse(printed)?;
//! let (version, result) = CniResult::decode(&value, SpecVersion::V0_1_0)?;
//! assert_eq!(version, SpecVersion::V0_2_0);
//! assert_eq!(result.ips[0].address.to_string(), "10.1.0.2/16");
//!
//! let newest = result.encode(SpecVersion::V1_1_0)?;
//! assert_eq!(json::to_string(&newest), r#"{"cniVersion":"1.1.0","ips":[{"address":"10.1.0.2/16"}]}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod args;
pub mod conf;
pub mod error;
pub mod json;
pub mod names;
pub mod nearest;
pub mod net;
pub mod result;
pub mod version;

pub use args::Args;
pub use conf::{Attachment, NetConf, NetworkList, PluginConf, ValidAttachments};
pub use error::{CniError, code};
pub use names::{ContainerId, IfName, NameError, NetnsPath, NetworkName};
pub use result::{CniResult, Dns, Interface, Ip, Route};
pub use version::SpecVersion;

/// The JSON value used throughout: keeps the order of keys and the text of numbers.
pub use serde_json::{Map, Value};
