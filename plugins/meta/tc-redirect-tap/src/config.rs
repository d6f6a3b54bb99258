//! The `tc-redirect-tap` plugin's configuration.

use cni_types::{Args, IfName};
use netlink::tun::NewTap;
use nix::unistd::{getegid, geteuid};
use serde::Deserialize;

use crate::error::Error;

/// The arguments in `CNI_ARGS`.
const NAME: &str = "TC_REDIRECT_TAP_NAME";
const UID: &str = "TC_REDIRECT_TAP_UID";
const GID: &str = "TC_REDIRECT_TAP_GID";

/// The keys that this plugin reads. `CNI_ARGS` comes before each of them.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Name of the tap; empty leaves it to the kernel, which takes `tap0` in a new namespace.
    pub tap_name: String,
    /// The user that may open the tap; the plugin's own unless it is given.
    pub uid: Option<u32>,
    /// The group that may open the tap; the plugin's own unless it is given.
    pub gid: Option<u32>,
}

impl Config {
    /// The tap to make.
    ///
    /// # Errors
    /// If a name or a number is none.
    pub fn tap(&self, args: &Args) -> Result<NewTap, Error> {
        let name = args.get_nonempty(NAME).unwrap_or(&self.tap_name);
        if !name.is_empty() {
            IfName::new(name).map_err(|why| Error::TapName {
                name: name.to_owned(),
                why,
            })?;
        }
        let uid = id(args, UID)?.or(self.uid);
        let gid = id(args, GID)?.or(self.gid);
        Ok(NewTap {
            name: Some(name.to_owned()).filter(|name| !name.is_empty()),
            // Firecracker opens the tap once, and wants the header for offloads.
            multi_queue: false,
            vnet_hdr: true,
            owner: Some(uid.unwrap_or_else(|| geteuid().as_raw())),
            group: Some(gid.unwrap_or_else(|| getegid().as_raw())),
        })
    }
}

fn id(args: &Args, key: &'static str) -> Result<Option<u32>, Error> {
    let Some(text) = args.get_nonempty(key) else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|_| Error::Id {
        key,
        text: text.to_owned(),
    })
}
