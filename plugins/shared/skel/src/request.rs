//! What a plugin is given.

use std::rc::Rc;

use cni_types::Args;
use cni_types::SpecVersion;
use cni_types::conf::ValidAttachments;
use cni_types::names::{ContainerId, IfName, NetnsPath, NetworkName};
use cni_types::result::CniResult;

use crate::delegate::Delegate;

/// An ADD or CHECK; with `N = Option<NetnsPath>` a DEL, which may come without a namespace.
#[derive(Debug)]
pub struct Request<C, N = NetnsPath> {
    /// The network's name.
    pub network: NetworkName,
    /// The version that the configuration asks for.
    pub version: SpecVersion,
    /// The plugin's own view of the configuration. For a DEL it is the default where the configuration
    /// cannot be understood, since a DEL must clean up all the same.
    pub config: C,
    /// The container.
    pub container_id: ContainerId,
    /// The interface in the container.
    pub ifname: IfName,
    /// The container's network namespace.
    pub netns: N,
    /// `CNI_ARGS`.
    pub args: Args,
    /// The result of the plugins before this one, in the newest model.
    pub prev_result: Option<CniResult>,
    /// The IPAM plugin that the configuration names.
    pub ipam: Option<Delegate>,
    /// The request as it came, for what a decoded value cannot tell, such as repeated keys.
    pub stdin: Rc<[u8]>,
}

/// A DEL.
pub type DelRequest<C> = Request<C, Option<NetnsPath>>;

/// A GC or STATUS: it concerns a network as a whole.
#[derive(Debug)]
pub struct NetworkRequest<C> {
    /// The network's name.
    pub network: NetworkName,
    /// The version that the configuration asks for.
    pub version: SpecVersion,
    /// The plugin's own view of the configuration; for a GC the default where it cannot be understood.
    pub config: C,
    /// The attachments that are to stay (GC).
    pub valid: ValidAttachments,
    /// The IPAM plugin that the configuration names.
    pub ipam: Option<Delegate>,
}
