//! Which kinds of link this kernel can make.

use netlink_packet_route::link::InfoKind;
use nix::errno::Errno;
use rtnetlink::{LinkMessageBuilder, LinkUnspec};

use super::rtnl::Rtnl;
use crate::error::{Error, Result};

const PROBE: &str = "probe-kind";

impl Rtnl {
    /// Whether the kernel knows links of this kind, or loads the module that does.
    ///
    /// # Errors
    /// When the link made to find out cannot be deleted.
    pub fn can_make(&self, kind: &str) -> Result<bool> {
        if kind == "tun" {
            // Made by way of its device file, not over netlink.
            let file = std::fs::File::options()
                .read(true)
                .write(true)
                .open("/dev/net/tun");
            return Ok(file.is_ok());
        }
        let message =
            LinkMessageBuilder::<LinkUnspec>::new_with_info_kind(InfoKind::Other(kind.to_owned()))
                .name(PROBE.to_owned())
                .build();
        match self.add(message, || format!("make a link of kind {kind}")) {
            Ok(()) => self.delete_link(PROBE).map(|()| true),
            Err(error) => Ok(!is_unknown(&error)),
        }
    }
}

/// What the kernel says of a kind that it does not know; any other refusal is of one it knows.
fn is_unknown(error: &Error) -> bool {
    let Error::Netlink {
        source: rtnetlink::Error::NetlinkError(message),
        ..
    } = error
    else {
        return false;
    };
    message.raw_code().abs() == Errno::EOPNOTSUPP as i32
}
