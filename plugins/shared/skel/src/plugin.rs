//! What a plugin is.

use std::fmt::Arguments;

use cni_types::SpecVersion;
use cni_types::json::{self, Key};
use cni_types::result::CniResult;
use serde::de::DeserializeOwned;

use crate::error::PluginError;
use crate::request::{DelRequest, NetworkRequest, Request};
use crate::undo::{Commit, Transaction};

/// A CNI plugin: one function for each command of the protocol (CNI specification, section 2).
///
/// Everything else is dispatch's: by the time a function is called, the environment and the configuration
/// are valid, the version fits, and the container's namespace is not the plugin's own.
pub trait Plugin {
    /// The file name in `/opt/cni/bin`.
    const NAME: &'static str;

    /// The versions that it accepts.
    const VERSIONS: &'static [SpecVersion] = &SpecVersion::ALL;

    /// Its view of the configuration; decoded by [`cni_types::json::from_value`].
    type Config: DeserializeOwned + Default;

    /// What can go wrong.
    type Error: PluginError;

    /// The keys of the configuration that it reads. A plugin whose [`Config`](Self::Config) is not the type that it decodes
    /// says here which is.
    fn keys() -> Vec<Key> {
        json::keys::<Self::Config>()
    }

    /// Has what it stands on (netlink, the packet filter) tell its messages to `log`. Called if somebody wants to know.
    fn trace(log: fn(Arguments<'_>)) {
        let _ = log;
    }

    /// ADD. The changes it returns are kept once the result has been written, else they are undone.
    fn add(request: &Request<Self::Config>) -> Result<Added, Self::Error>;

    /// DEL. It goes on past an error, so that one object which cannot be removed does not keep the others.
    fn del(request: &DelRequest<Self::Config>) -> Result<(), Self::Error>;

    /// CHECK. It changes nothing.
    fn check(request: &Request<Self::Config>) -> Result<(), Self::Error>;

    /// REAPPLY, which is ours and not the specification's: puts back what a reload of the packet filter wiped
    /// out, with `prevResult` being the result of the whole list. What is there already stays as it is.
    fn reapply(_: &Request<Self::Config>) -> Result<(), Self::Error> {
        Ok(())
    }

    /// GC: removes what belongs to the network and to none of the valid attachments.
    fn gc(request: &NetworkRequest<Self::Config>) -> Result<(), Self::Error>;

    /// STATUS: fails if an ADD would.
    fn status(request: &NetworkRequest<Self::Config>) -> Result<(), Self::Error>;
}

/// The outcome of an ADD.
pub struct Added {
    pub(crate) result: CniResult,
    pub(crate) changes: Option<Box<dyn Commit>>,
}

impl Added {
    /// A result, and the changes that stand behind it.
    pub fn new<W: 'static>(result: CniResult, changes: Transaction<W>) -> Self {
        Self {
            result,
            changes: Some(Box::new(changes)),
        }
    }

    /// A result behind which no change stands.
    pub fn unchanged(result: CniResult) -> Self {
        Self {
            result,
            changes: None,
        }
    }
}
