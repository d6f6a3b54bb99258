//! The environment of a call (CNI specification, section 2, "Parameters").

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use cni_types::names::{ContainerId, IfName, NetnsPath};

use crate::error::ProtocolError;

/// The seven variables of the protocol as the runtime set them. Unset and empty are the same.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `CNI_COMMAND`.
    pub command: OsString,
    /// `CNI_CONTAINERID`.
    pub container_id: OsString,
    /// `CNI_NETNS`.
    pub netns: OsString,
    /// `CNI_IFNAME`.
    pub ifname: OsString,
    /// `CNI_ARGS`.
    pub args: OsString,
    /// `CNI_PATH`.
    pub path: OsString,
    /// `CNI_NETNS_OVERRIDE`.
    pub netns_override: OsString,
}

impl Environment {
    /// Reads the variables of this process.
    pub fn of_process() -> Self {
        Self::from_lookup(|name| std::env::var_os(name).unwrap_or_default())
    }

    /// Reads the variables through a function, for calls that are not processes of their own.
    pub fn from_lookup(get: impl Fn(&str) -> OsString) -> Self {
        Self {
            command: get("CNI_COMMAND"),
            container_id: get("CNI_CONTAINERID"),
            netns: get("CNI_NETNS"),
            ifname: get("CNI_IFNAME"),
            args: get("CNI_ARGS"),
            path: get("CNI_PATH"),
            netns_override: get("CNI_NETNS_OVERRIDE"),
        }
    }

    /// The directories of `CNI_PATH`; empty elements name no directory.
    pub fn plugin_dirs(&self) -> Vec<PathBuf> {
        self.path
            .as_bytes()
            .split(|b| *b == b':')
            .filter(|part| !part.is_empty())
            .map(|part| PathBuf::from(OsStr::from_bytes(part)))
            .collect()
    }

    /// Whether `CNI_NETNS_OVERRIDE` allows the plugin's own namespace as the container's.
    pub fn allows_own_netns(&self) -> bool {
        self.netns_override == "1" || self.netns_override.eq_ignore_ascii_case("true")
    }

    pub(crate) fn verb(&self) -> Verb {
        match self.command.as_bytes() {
            b"ADD" => Verb::Add,
            b"DEL" => Verb::Del,
            b"CHECK" => Verb::Check,
            b"GC" => Verb::Gc,
            b"STATUS" => Verb::Status,
            b"REAPPLY" => Verb::Reapply,
            b"VERSION" => Verb::Version,
            _ => Verb::Unknown,
        }
    }

    /// Checks the variables in the order that the protocol's tests know: a name that is present and bad is
    /// reported at once, missing ones are collected and reported together.
    pub(crate) fn validate(&self, verb: Verb) -> Result<Option<Attachment>, ProtocolError> {
        let mut missing = Vec::new();
        let mut attachment = None;
        if self.command.is_empty() {
            missing.push("CNI_COMMAND");
        }
        if verb.concerns_attachment() {
            let container_id = present(&self.container_id, "CNI_CONTAINERID", &mut missing)
                .map(ContainerId::from_os)
                .transpose()
                .map_err(ProtocolError::Name)?;
            if self.netns.is_empty() && verb != Verb::Del {
                missing.push("CNI_NETNS");
            }
            let ifname = present(&self.ifname, "CNI_IFNAME", &mut missing)
                .map(IfName::from_os)
                .transpose()
                .map_err(ProtocolError::Name)?;
            attachment = container_id
                .zip(ifname)
                .map(|(container_id, ifname)| Attachment {
                    container_id,
                    ifname,
                    netns: NetnsPath::new(&self.netns).ok(),
                });
        }
        if verb.needs_path() && self.path.is_empty() {
            missing.push("CNI_PATH");
        }
        if missing.is_empty() {
            Ok(attachment)
        } else {
            Err(ProtocolError::MissingVariables(missing))
        }
    }
}

fn present<'v>(
    value: &'v OsStr,
    name: &'static str,
    missing: &mut Vec<&'static str>,
) -> Option<&'v OsStr> {
    if value.is_empty() {
        missing.push(name);
        return None;
    }
    Some(value)
}

/// What an ADD, DEL or CHECK is about: one interface of one container.
#[derive(Debug, Clone)]
pub struct Attachment {
    /// The container.
    pub container_id: ContainerId,
    /// The interface inside it.
    pub ifname: IfName,
    /// The container's network namespace; a DEL may come without.
    pub netns: Option<NetnsPath>,
}

/// The commands of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Add,
    Del,
    Check,
    Gc,
    Status,
    Reapply,
    Version,
    Unknown,
}

impl Verb {
    /// The word of the protocol, for the log.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Add => "ADD",
            Self::Del => "DEL",
            Self::Check => "CHECK",
            Self::Gc => "GC",
            Self::Status => "STATUS",
            Self::Reapply => "REAPPLY",
            Self::Version => "VERSION",
            Self::Unknown => "unknown",
        }
    }

    fn concerns_attachment(self) -> bool {
        matches!(self, Self::Add | Self::Del | Self::Check | Self::Reapply)
    }

    fn needs_path(self) -> bool {
        !matches!(self, Self::Version | Self::Unknown)
    }
}
