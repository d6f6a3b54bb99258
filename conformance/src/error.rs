//! What can go wrong while judging plugins, apart from the plugins themselves.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure of the harness or of what it stands on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was being done, on which object.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A netlink request failed.
    #[error("{what}: {source}")]
    Netlink {
        /// What was being asked for.
        what: String,
        /// The kernel's answer.
        source: rtnetlink::Error,
    },
    /// The kernel or its administrator does not let us make namespaces.
    #[error(
        "this user may not make namespaces of its own ({source}); run as root, or allow it: \
         sysctl -w user.max_user_namespaces=10000 kernel.unprivileged_userns_clone=1 \
         kernel.apparmor_restrict_unprivileged_userns=0 (those that exist here)"
    )]
    NoNamespaces {
        /// The system's answer.
        source: io::Error,
    },
    /// Code that changes the network was called outside a sandbox.
    #[error("refusing to work in the machine's own namespaces; start it through the sandbox")]
    NotInSandbox,
    /// Something that was expected to be there is not.
    #[error("{what} not found")]
    Missing {
        /// The thing that is missing.
        what: String,
    },
    /// Something is not as it should be.
    #[error("expected {expected}; found {found}")]
    Unexpected {
        /// What should have been.
        expected: String,
        /// What there was.
        found: String,
    },
    /// A program ran into its deadline and was killed.
    #[error("{program} did not end within {limit:?} and was killed; it stood at {state}")]
    Timeout {
        /// The program.
        program: PathBuf,
        /// How long it was given.
        limit: Duration,
        /// Where it stood, in the words of `proc(5)`.
        state: String,
    },
    /// The kernel sent bytes that do not parse.
    #[error("malformed netlink message: {what}")]
    Malformed {
        /// Where it broke.
        what: String,
    },
    /// Something that the caller gave makes no sense.
    #[error("invalid {what}")]
    Invalid {
        /// What, and why.
        what: String,
    },
    /// A plugin answered against the protocol.
    #[error("{plugin} answered {verb} against the protocol: {what}")]
    Protocol {
        /// The plugin's name.
        plugin: String,
        /// The command it was given.
        verb: String,
        /// What is wrong with the answer.
        what: String,
    },
    /// A plugin of a list failed.
    #[error("{0}")]
    Plugin(Box<crate::chain::Failure>),
}

impl Error {
    /// Something is not as it should be.
    #[must_use]
    pub fn unexpected(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::Unexpected {
            expected: expected.into(),
            found: found.into(),
        }
    }
}

/// Adds what was being done to a system error.
pub trait Context<T> {
    /// Names the action and its object; the closure runs only on failure.
    fn doing<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn doing<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T> {
        self.map_err(|source| Error::System {
            what: what().into(),
            source,
        })
    }
}

impl<T> Context<T> for nix::Result<T> {
    fn doing<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T> {
        self.map_err(io::Error::from).doing(what)
    }
}

impl<T> Context<T> for std::result::Result<T, rtnetlink::Error> {
    fn doing<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T> {
        self.map_err(|source| Error::Netlink {
            what: what().into(),
            source,
        })
    }
}
