//! Which attachment, and what is remembered of it.

use std::path::PathBuf;

use cni_types::NameError;
use cni_types::{
    Attachment, ContainerId, IfName, Map, NetworkList, NetworkName, PluginConf, Value,
};

use crate::libcni::RuntimeConf;

/// Which attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub(super) network: NetworkName,
    pub(super) container_id: ContainerId,
    pub(super) ifname: IfName,
}

/// A remembered attachment.
#[derive(Clone, Debug, PartialEq)]
pub struct Cached {
    /// The network.
    pub network: String,
    /// The container.
    pub container_id: String,
    /// The interface.
    pub ifname: String,
    /// The container's network namespace at that time, or empty.
    pub netns: PathBuf,
    /// The configuration it was made with.
    pub config: Vec<u8>,
    /// The pairs of `CNI_ARGS`.
    pub args: Vec<(String, String)>,
    /// The capability arguments, for all plugins.
    pub capability_args: Map<String, Value>,
    /// The result of the last plugin; `Null` if there was none.
    pub result: Value,
}

impl Key {
    /// An attachment's key.
    pub fn new(network: &NetworkName, container_id: &ContainerId, ifname: &IfName) -> Self {
        Key {
            network: network.clone(),
            container_id: container_id.clone(),
            ifname: ifname.clone(),
        }
    }

    /// The checked names make sure that this stays inside the directory.
    pub(super) fn file_name(&self) -> String {
        format!("{}-{}-{}", self.network, self.container_id, self.ifname)
    }

    pub(super) fn is(&self, cached: &Cached) -> bool {
        self.network.as_str() == cached.network
            && self.container_id.as_str() == cached.container_id
            && self.ifname.as_str() == cached.ifname
    }
}

impl Cached {
    /// The list the attachment was made with, if it can be read. Some runtimes remember a single
    /// plugin's configuration instead.
    pub fn list(&self) -> Option<NetworkList> {
        let list = NetworkList::parse(&self.config)
            .ok()
            .filter(|list| !list.plugins.is_empty())
            .or_else(|| {
                PluginConf::parse(&self.config)
                    .ok()
                    .map(NetworkList::from_single)
            })?;
        (list.name == self.network).then_some(list)
    }

    /// The attachment as the runtime asked for it then.
    ///
    /// # Errors
    ///
    /// A remembered name that no attachment can have.
    pub fn runtime_conf(&self) -> std::result::Result<RuntimeConf, NameError> {
        Ok(RuntimeConf {
            container_id: ContainerId::new(self.container_id.as_str())?,
            netns: self.netns.clone(),
            ifname: IfName::new(self.ifname.as_str())?,
            args: self.args.clone(),
            capability_args: self.capability_args.clone(),
        })
    }

    /// Whether its network namespace still exists, or may.
    pub fn may_live(&self) -> bool {
        crate::libcni::gc::may_exist(&self.netns)
    }

    /// The attachment as GC lists it.
    pub fn attachment(&self) -> Attachment {
        Attachment {
            container_id: self.container_id.clone(),
            ifname: self.ifname.clone(),
        }
    }
}
