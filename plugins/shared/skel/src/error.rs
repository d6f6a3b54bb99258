//! Errors of the protocol, and the one place where an error becomes a CNI error object.

use std::error::Error;
use std::fmt::Write;

use cni_types::json::DecodeError;
use cni_types::names::NameError;
use cni_types::result::ResultError;
use cni_types::{CniError, code};

use crate::delegate::DelegateError;

/// What dispatch needs to know of a plugin's error beyond its text.
///
/// The text itself (`Display`) says what failed on which object; it becomes `msg`.
pub trait PluginError: Error {
    /// The error code (CNI specification, section 5, "Error"); 999 where nothing there fits.
    fn code(&self) -> u32 {
        code::INTERNAL
    }

    /// Whose object it is and what to do about it; becomes `details`.
    fn details(&self) -> String {
        String::new()
    }

    /// An error that some delegate gave, to be passed through as it is.
    fn delegated(&self) -> Option<&DelegateError> {
        None
    }
}

/// A plugin that has nothing to go wrong in some verb.
impl PluginError for std::convert::Infallible {}

/// Turns an error into the object that goes to stdout.
pub(crate) fn to_object(error: &dyn PluginError) -> CniError {
    if let Some(DelegateError::Refused(object)) = error.delegated() {
        let mut object = object.clone();
        // A delegate that died may have left code 0, which the specification gives to nobody.
        if object.code == 0 {
            object.code = code::INTERNAL;
        }
        return object;
    }
    if let Some(DelegateError::Hangs { .. }) = error.delegated() {
        return CniError::new(code::TRY_AGAIN_LATER, chain(error))
            .with_details("see what that plugin waits for; what it may have given was asked back");
    }
    CniError::new(error.code(), chain(error)).with_details(error.details())
}

/// The error's text, followed by those causes that it does not already quote.
fn chain(error: &dyn PluginError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !quotes(&text, &inner_text) {
            // Writing to a string cannot fail.
            let _ = write!(text, ": {inner_text}");
        }
        cause = inner.source();
    }
    text
}

/// Whether the text has the cause's in it, be it with another first letter and without the number that Rust adds.
fn quotes(text: &str, cause: &str) -> bool {
    let bare = cause.split(" (os error ").next().unwrap_or(cause);
    text.to_lowercase().contains(&bare.to_lowercase())
}

/// What is wrong with a request, before any plugin sees it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProtocolError {
    #[error("required env variables [{}] missing", .0.join(","))]
    MissingVariables(Vec<&'static str>),
    #[error(transparent)]
    Name(NameError),
    #[error("unknown CNI_COMMAND: {0}")]
    UnknownCommand(String),
    #[error("error reading from stdin: {0}")]
    Stdin(std::io::Error),
    #[error("the request on stdin is longer than {0} bytes")]
    StdinTooLong(u64),
    #[error("error unmarshall network config: {0}")]
    NotConfig(String),
    #[error("missing network name")]
    NoNetworkName,
    #[error("decoding version from network config: cniVersion is not a string")]
    BadVersion,
    #[error("{}", .0.msg)]
    Version(CniError),
    #[error("plugin's netns and netns from CNI_NETNS should not be the same")]
    OwnNetns,
    #[error("failed to load netconf: {0}")]
    BadConfig(DecodeError),
    #[error("could not parse prevResult: {0}")]
    BadPrevResult(ResultError),
    #[error("stopped by {0} before the work was done; everything was taken back")]
    Interrupted(&'static str),
    #[error("the plugin that ran this one for ipam has been killed; nothing was done")]
    Orphaned,
    #[error("the plugin failed unexpectedly: {0}")]
    Panicked(String),
}

impl PluginError for ProtocolError {
    fn code(&self) -> u32 {
        match self {
            Self::MissingVariables(_) | Self::UnknownCommand(_) => code::INVALID_ENVIRONMENT,
            Self::Name(error) => error.code(),
            Self::Stdin(_) | Self::StdinTooLong(_) => code::IO_FAILURE,
            Self::NotConfig(_) | Self::BadVersion | Self::BadPrevResult(_) => {
                code::DECODING_FAILURE
            }
            Self::NoNetworkName | Self::BadConfig(_) => code::INVALID_NETWORK_CONFIG,
            Self::Version(object) => object.code,
            Self::OwnNetns => code::INVALID_NETNS,
            Self::Interrupted(_) | Self::Orphaned => code::TRY_AGAIN_LATER,
            Self::Panicked(_) => code::INTERNAL,
        }
    }

    fn details(&self) -> String {
        match self {
            Self::Name(error) => error.details(),
            Self::Version(object) => object.details.clone(),
            Self::OwnNetns => "set CNI_NETNS_OVERRIDE=1 if that is meant".to_owned(),
            Self::MissingVariables(_) => {
                "a runtime sets these; by hand cnitool add NETWORK NETNS is easier than running a plugin".to_owned()
            }
            Self::UnknownCommand(_) => {
                "known are ADD, DEL, CHECK, GC, STATUS and VERSION (and REAPPLY of our own)".to_owned()
            }
            Self::Stdin(_) => "the network configuration is expected on standard input".to_owned(),
            Self::StdinTooLong(_) => "make the configuration smaller".to_owned(),
            Self::NotConfig(_) => {
                "it must be a JSON object with cniVersion, name and type".to_owned()
            }
            Self::NoNetworkName => "give the list a \"name\"".to_owned(),
            Self::BadVersion => format!("write it as \"cniVersion\": {:?}", cni_types::SpecVersion::CURRENT.as_str()),
            Self::BadConfig(_) => "correct the type of that key; the plugin's page lists them all".to_owned(),
            Self::BadPrevResult(_) => {
                "it is the result of the plugin before, or of the ADD; a result in /var/lib/cni/results may be damaged".to_owned()
            }
            Self::Interrupted(_) | Self::Orphaned => "call it again".to_owned(),
            Self::Panicked(_) => "please report this, with the configuration and this text".to_owned(),
        }
    }
}
