//! What can go wrong in a runtime.

use super::Command;
use super::cache::CacheError;
use super::exec::RunError;
use super::find::FindError;
use super::load::LoadError;
use cni_types::result::ResultError;
use cni_types::version::{UnknownVersion, VersionSyntax};
use cni_types::{CniError, NameError, PluginConf};

/// Result of the library's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure of an operation on a network.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A plugin could not be executed, or failed.
    #[error("plugin type={plugin:?}{} failed ({}): {source}", named(name), command.word())]
    Plugin {
        /// Its type.
        plugin: String,
        /// Its own name in the list, or empty.
        name: String,
        /// What it was asked to do.
        command: Command,
        /// What happened.
        source: CallError,
    },
    /// A plugin said that all is well, but its answer is no result.
    #[error(
        "plugin type={plugin:?}{} gave no usable result: {source}",
        named(name)
    )]
    Answer {
        /// Its type.
        plugin: String,
        /// Its own name in the list, or empty.
        name: String,
        /// What is wrong with the answer.
        source: AnswerError,
    },
    /// ADD failed, and so did taking back what it had done.
    #[error("{cause}{}", undo_text(cause, undo))]
    NotUndone {
        /// Why ADD failed.
        cause: Box<Error>,
        /// Why DEL failed.
        undo: Box<Error>,
    },
    /// A name that must not be used.
    #[error("{}", CniError::from(.0.clone()))]
    Name(#[from] NameError),
    /// A version that no plugin of today can be asked for.
    #[error("network {network:?}: {source}")]
    Version {
        /// The network.
        network: String,
        /// The version.
        source: UnknownVersion,
    },
    /// A version that is none.
    #[error("network {network:?}: {source}")]
    VersionSyntax {
        /// The network.
        network: String,
        /// The text.
        source: VersionSyntax,
    },
    /// CHECK came with 0.4.0.
    #[error("configuration version {0:?} does not support the CHECK command")]
    NoCheck(String),
    /// CHECK compares with the result of ADD, and that is not remembered.
    #[error(
        "no cached result of network {network:?} for {id} {ifname}: it was never added, has been deleted, or was added with another cache directory"
    )]
    NotCached {
        /// The network.
        network: String,
        /// The container.
        id: String,
        /// The interface.
        ifname: String,
    },
    /// The remembered result cannot be used.
    #[error("failed to get network {network:?} cached result: {source}")]
    CachedResult {
        /// The network.
        network: String,
        /// Why.
        source: ResultError,
    },
    /// The cache cannot be read or written.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// GC could not detach something that is gone.
    #[error("failed to delete stale attachment {id} {ifname}: {source}")]
    Stale {
        /// The container.
        id: String,
        /// The interface.
        ifname: String,
        /// Why.
        source: Box<Error>,
    },
    /// The rules of an attachment could not be put back.
    #[error("failed to reapply attachment {id} {ifname}: {source}")]
    Reapply {
        /// The container.
        id: String,
        /// The interface.
        ifname: String,
        /// Why.
        source: Box<Error>,
    },
    /// A plugin does not speak the list's version.
    #[error("plugin {plugin} does not support config version {version:?}; it knows {}", known.join(", "))]
    Unsupported {
        /// Its type.
        plugin: String,
        /// The list's version.
        version: String,
        /// Those that it supports.
        known: Vec<String>,
    },
    /// A plugin's answer to VERSION is unusable.
    #[error("plugin {plugin}: decoding version info: {problem}")]
    VersionInfo {
        /// Its type.
        plugin: String,
        /// What is wrong.
        problem: String,
    },
    /// A configuration cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Several failures, one per line.
    #[error("{}", lines(.0))]
    Many(Vec<Error>),
}

/// One plugin's call did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// There is no such plugin.
    #[error(transparent)]
    Find(#[from] FindError),
    /// It could not be started, or did not end.
    #[error(transparent)]
    Run(#[from] RunError),
    /// It failed, and said so.
    #[error(transparent)]
    Failed(#[from] CniError),
}

/// What a plugin printed is no result.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// Not JSON.
    #[error("failed to unmarshal raw result: {0}")]
    Parse(#[from] cni_types::json::ParseError),
    /// JSON, but not a result, or one that the list's version cannot express.
    #[error(transparent)]
    Result(#[from] ResultError),
}

impl Error {
    /// The CNI error that a plugin gave, for its code. Of several failures the first.
    pub fn cni(&self) -> Option<&CniError> {
        match self {
            Error::Plugin {
                source: CallError::Failed(error),
                ..
            } => Some(error),
            Error::NotUndone { cause, .. } => cause.cni(),
            Error::Stale { source, .. } | Error::Reapply { source, .. } => source.cni(),
            Error::Many(errors) => errors.iter().find_map(Error::cni),
            _ => None,
        }
    }

    /// What remains of the errors of a DEL without plugins that could not be found, and had not been executed before
    /// either: nothing of theirs is left.
    pub(super) fn without_unfound(self, executed: Option<&[PluginConf]>) -> Result<()> {
        let errors = match self {
            Error::Many(errors) => errors,
            one => vec![one],
        };
        let ran = |plugin: &str| {
            let mut all = executed.into_iter().flatten();
            all.any(|one| one.plugin_type == plugin)
        };
        let left = errors.into_iter().filter(|error| match error {
            Error::Plugin {
                plugin,
                source: CallError::Find(_),
                ..
            } => ran(plugin),
            _ => true,
        });
        Error::join(left.collect())
    }

    /// One error for several: nothing, the only one, or all.
    pub(super) fn join(mut errors: Vec<Error>) -> Result<()> {
        match (errors.len(), errors.pop()) {
            (_, None) => Ok(()),
            (1, Some(only)) => Err(only),
            (_, Some(last)) => {
                errors.push(last);
                Err(Error::Many(errors))
            }
        }
    }
}

/// What failed while taking back, unless it is the same thing again.
fn undo_text(cause: &Error, undo: &Error) -> String {
    let same = |one: &Error| match (cause, one) {
        (Error::Plugin { source: why, .. }, Error::Plugin { source: again, .. }) => {
            why.to_string() == again.to_string()
        }
        _ => false,
    };
    let undo = match undo {
        Error::Many(errors) if errors.iter().all(same) => None,
        one if same(one) => None,
        other => Some(other),
    };
    match undo {
        None => "; taking it back failed for the same reason".to_owned(),
        Some(undo) => format!("; taking it back failed too: {undo}"),
    }
}

fn named(name: &str) -> String {
    if name.is_empty() {
        String::new()
    } else {
        format!(" name={name:?}")
    }
}

fn lines(errors: &[Error]) -> String {
    errors
        .iter()
        .map(Error::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}
