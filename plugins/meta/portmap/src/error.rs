//! What can go wrong in `portmap`.

use cni_types::code;
use netfilter::Backend;
use skel::PluginError;

/// What can go wrong in `portmap`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plugin stands alone or first in its list.
    #[error("must be called as chained plugin")]
    NoPrevResult,
    /// `backend` names none.
    #[error("unrecognized backend {0:?}")]
    Backend(String),
    /// Options that the named backend does not have.
    #[error(
        "{backend} backend was requested but configuration contains {other}-specific options [{options}]"
    )]
    ForeignOptions {
        /// The backend named.
        backend: Backend,
        /// The backend whose options they are.
        other: Backend,
        /// The options, separated by blanks.
        options: String,
    },
    /// Options of both backends.
    #[error("configuration contains both iptables-specific and nftables-specific options")]
    MixedOptions,
    /// Two ways of marking packets.
    #[error("cannot specify externalSetMarkChain and markMasqBit together")]
    MarkTwice,
    /// `markMasqBit` is no bit of a mark.
    #[error("markMasqBit must be between 0 and 31, but is {0}")]
    MarkBit(i64),
    /// A port that is none.
    #[error("invalid {key} {number}: a port is between 1 and 65535")]
    Port {
        /// The key of the mapping.
        key: &'static str,
        /// Its value.
        number: i64,
    },
    /// A protocol that has no ports, or that does not exist.
    #[error("invalid protocol {0:?} in portMappings: known are tcp, udp, sctp")]
    Protocol(String),
    /// A host address that is none.
    #[error("invalid hostIP {0:?} in portMappings: it is not an IP address")]
    HostIp(String),
    /// The packet filter refused.
    #[error(transparent)]
    Netfilter(#[from] netfilter::Error),
    /// The kernel refused a change of an interface.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// CHECK: loopback access was promised.
    #[error("{0} does not forward from 127.0.0.0/8 any more (route_localnet is 0)")]
    RouteLocalnet(String),
    /// CHECK: a container that reaches itself by its published port was promised.
    #[error("hairpin mode of {0} is off")]
    Hairpin(String),
    /// STATUS: an ADD would fail.
    #[error("portmap cannot work with the {backend} backend: {source}")]
    NotReady {
        /// The backend that an ADD would use.
        backend: Backend,
        /// Why it cannot be used.
        source: netfilter::Error,
    },
}

impl Error {
    pub(crate) fn foreign(backend: Backend, options: Vec<&'static str>) -> Self {
        Self::ForeignOptions {
            backend,
            other: match backend {
                Backend::Iptables => Backend::Nftables,
                _ => Backend::Iptables,
            },
            options: options.join(" "),
        }
    }
}

impl PluginError for Error {
    fn code(&self) -> u32 {
        match self {
            Self::NoPrevResult
            | Self::Backend(_)
            | Self::ForeignOptions { .. }
            | Self::MixedOptions
            | Self::MarkTwice
            | Self::MarkBit(_)
            | Self::Port { .. }
            | Self::Protocol(_)
            | Self::HostIp(_)
            | Self::Netfilter(
                netfilter::Error::Invalid { .. } | netfilter::Error::PortRepeated { .. },
            ) => code::INVALID_NETWORK_CONFIG,
            Self::Netfilter(netfilter::Error::Unavailable { .. }) => code::PLUGIN_NOT_AVAILABLE,
            Self::Netfilter(netfilter::Error::Busy { .. }) => code::TRY_AGAIN_LATER,
            Self::NotReady { .. } => code::PLUGIN_NOT_AVAILABLE,
            Self::Netfilter(_) | Self::Netlink(_) | Self::RouteLocalnet(_) | Self::Hairpin(_) => {
                code::INTERNAL
            }
        }
    }

    fn details(&self) -> String {
        match self {
            Self::NoPrevResult => "put portmap after a plugin that makes an interface".to_owned(),
            Self::Backend(_) => "known backends: nftables, iptables; without the key the host decides".to_owned(),
            Self::ForeignOptions { backend, options, .. } => {
                format!("take {options} out, or another backend than {backend}")
            }
            Self::MixedOptions => {
                "externalSetMarkChain and conditions that begin with - or ! are for iptables, other conditions for nftables: \
                 keep those of one"
                    .to_owned()
            }
            Self::MarkTwice => "keep one of the two".to_owned(),
            Self::MarkBit(_) => "the bits 0 to 31 of the packet mark; the reference set's default is 13".to_owned(),
            Self::Port { key: "hostPort", .. } => {
                "correct portMappings of the runtime (CAP_ARGS of cnitool)".to_owned()
            }
            Self::Port { key, .. } => format!(
                "correct {key} in portMappings of the runtime (CAP_ARGS of cnitool): the port that the container listens on"
            ),
            Self::Protocol(_) => {
                "correct protocol in portMappings of the runtime (CAP_ARGS of cnitool)".to_owned()
            }
            Self::HostIp(_) => {
                "give an address of this host, or none for all of them".to_owned()
            }
            Self::Netfilter(source) | Self::NotReady { source, .. } => source.next_step(),
            Self::Netlink(error) => error.next_step(),
            Self::Hairpin(port) => format!(
                "cnitool reapply switches it on again, and so does bridge link set dev {port} hairpin on"
            ),
            Self::RouteLocalnet(interface) => format!(
                "cnitool reapply switches it on again, and so does sysctl -w net.ipv4.conf.{interface}.route_localnet=1"
            ),
        }
    }
}
