//! What can go wrong, with the data in it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use nix::errno::Errno;

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure, told as "cannot do what to which object: why".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The namespace file does not exist: the container is gone. This is the one case a DEL has to take as done.
    #[error("network namespace {path:?} is gone: no such file or directory")]
    NetnsGone {
        /// The path that was asked for.
        path: PathBuf,
    },
    /// The path exists but is no network namespace.
    #[error("{path:?} is not a network namespace: {why}")]
    NotNetns {
        /// The path that was asked for.
        path: PathBuf,
        /// What it is instead.
        why: String,
    },
    /// Opening or entering a namespace failed.
    #[error("cannot {what} network namespace {path:?}: {}", describe(*.errno))]
    Netns {
        /// `open`, `enter` or `inspect`.
        what: &'static str,
        /// The namespace.
        path: PathBuf,
        /// The system's reason.
        errno: Errno,
    },
    /// Somebody else works in a namespace and does not come to an end.
    #[error("network namespace {path:?} is locked: {held}")]
    Locked {
        /// The namespace.
        path: PathBuf,
        /// Who holds the lock, and for how long it was waited.
        held: String,
    },
    /// The thread could not go back to its own namespace. Nothing may run on it any more that depends on the namespace,
    /// and this crate refuses to.
    #[error("this thread is stranded in network namespace {path:?}: cannot return to its own: {}", describe(*.errno))]
    Stranded {
        /// The namespace the thread stands in.
        path: PathBuf,
        /// The system's reason.
        errno: Errno,
    },
    /// The kernel refused a request.
    #[error("cannot {what} {object}: {}", reason(*.errno, .message.as_deref()))]
    Kernel {
        /// The verb and the kind of object, such as `add address`.
        what: &'static str,
        /// Which one, such as `10.1.2.3/24 on eth0`.
        object: String,
        /// The kernel's error number.
        errno: Errno,
        /// The kernel's own explanation (extended acknowledgement), if it gave one.
        message: Option<String>,
    },
    /// A name the kernel would refuse or cut.
    #[error("interface name {name:?} {why}")]
    BadName {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A hardware address that cannot be read.
    #[error("address {text}: invalid MAC address")]
    BadMac {
        /// The text.
        text: String,
    },
    /// A socket or file operation failed.
    #[error("cannot {what} {object}: {}", io_text(.source))]
    Io {
        /// The verb.
        what: &'static str,
        /// The file or socket.
        object: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The kernel's answer could not be understood.
    #[error("cannot {what} {object}: the kernel's answer is malformed: {why}")]
    Malformed {
        /// The verb and the kind of object.
        what: &'static str,
        /// Which one.
        object: String,
        /// What does not fit.
        why: String,
    },
    /// A listing changed under our hands each time it was read.
    #[error("cannot {what} {object}: it kept changing while being read ({tries} attempts)")]
    Restless {
        /// The verb and the kind of object.
        what: &'static str,
        /// Which one.
        object: String,
        /// How often it was tried.
        tries: u32,
    },
    /// Something did not happen before the deadline.
    #[error("{object} {what} after {} ms", .waited.as_millis())]
    Timeout {
        /// The state it was left in, such as `is still without carrier`.
        what: String,
        /// The object waited for.
        object: String,
        /// How long it was waited.
        waited: Duration,
    },
    /// Duplicate address detection found the address in use by another station.
    #[error(
        "address {address} on {link} is already used by another station on that network (duplicate address detection failed)"
    )]
    Duplicate {
        /// The address.
        address: std::net::IpAddr,
        /// The link it was to be on.
        link: String,
    },
    /// The kernel has no VLAN-aware bridge.
    #[error(
        "cannot filter VLANs on {link}: this kernel is built without CONFIG_BRIDGE_VLAN_FILTERING"
    )]
    NoVlanFiltering {
        /// The bridge or the port.
        link: String,
    },
}

impl Error {
    /// What to do about it, in a sentence.
    #[must_use]
    pub fn next_step(&self) -> String {
        match self {
            Self::NetnsGone { .. } => {
                "give the path of a namespace that exists; those of ip netns are below /run/netns".to_owned()
            }
            Self::NotNetns { .. } => {
                "give the path of a network namespace, such as /run/netns/blue or /proc/PID/ns/net".to_owned()
            }
            Self::BadName { .. } => {
                "give a name of at most 15 bytes, without / : and blanks".to_owned()
            }
            Self::BadMac { .. } => "give six bytes, as 02:00:00:00:00:01".to_owned(),
            Self::Duplicate { .. } => {
                "find the station with that address (ip neigh), or take the address out of the range".to_owned()
            }
            Self::NoVlanFiltering { .. } => {
                "boot a kernel that has it, or leave vlan and vlanTrunk out".to_owned()
            }
            Self::Timeout { .. } | Self::Restless { .. } => "try again later".to_owned(),
            error if matches!(error.errno(), Some(Errno::EPERM | Errno::EACCES)) => {
                "run it with CAP_NET_ADMIN in that namespace, as root as a rule".to_owned()
            }
            _ => "cnitool doctor looks at the host; CNI_LOG=stderr:debug shows the messages to the kernel".to_owned(),
        }
    }

    /// Whether the thing acted on does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(
            self.errno(),
            Some(
                Errno::ENODEV | Errno::ENOENT | Errno::ESRCH | Errno::EADDRNOTAVAIL | Errno::ENXIO
            )
        )
    }

    /// Whether the thing to be made exists already.
    #[must_use]
    pub fn is_exists(&self) -> bool {
        self.errno() == Some(Errno::EEXIST)
    }

    /// Whether there is no way to where something is said to go.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self.errno(), Some(Errno::EHOSTUNREACH | Errno::ENETUNREACH))
    }

    /// Whether the kernel was built without what is asked of it, or that is switched off.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self.errno(),
            Some(Errno::EOPNOTSUPP | Errno::EAFNOSUPPORT | Errno::EPROTONOSUPPORT)
        )
    }

    /// Whether the namespace file is gone (and nothing else is wrong).
    #[must_use]
    pub fn is_netns_gone(&self) -> bool {
        matches!(self, Self::NetnsGone { .. })
    }

    /// The system's error number, where there is one.
    #[must_use]
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::Netns { errno, .. }
            | Self::Stranded { errno, .. }
            | Self::Kernel { errno, .. } => Some(*errno),
            Self::NetnsGone { .. } => Some(Errno::ENOENT),
            Self::Io { source, .. } => source.raw_os_error().map(Errno::from_raw),
            _ => None,
        }
    }
}

fn describe(errno: Errno) -> String {
    errno.desc().to_lowercase()
}

fn reason(errno: Errno, message: Option<&str>) -> String {
    match message {
        Some(text) => format!("{} ({text})", describe(errno)),
        None => describe(errno),
    }
}

fn io_text(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(code) => describe(Errno::from_raw(code)),
        None => error.to_string(),
    }
}
