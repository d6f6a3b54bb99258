//! The VLANs of bridge ports as the kernel tells them, and tagged interfaces on top of others.

use std::collections::BTreeSet;

use conformance::error::{Context, Error, Result};
use conformance::net::{Netns, Rtnl};
use futures_util::TryStreamExt;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::link::{
    AfSpecBridge, BridgeVlanInfoFlags, InfoBridge, InfoData, LinkAttribute, LinkExtentMask,
    LinkInfo, LinkMessage,
};
use rtnetlink::{Handle, LinkBridgeVlan, LinkVlan};

/// One VLAN of a port, written as `bridge vlan` writes it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Vlan {
    pub vid: u16,
    pub pvid: bool,
    pub untagged: bool,
}

/// A VLAN whose frames carry their tag.
pub fn tagged(vid: u16) -> Vlan {
    Vlan {
        vid,
        pvid: false,
        untagged: false,
    }
}

/// The VLAN of untagged frames, in and out.
pub fn native(vid: u16) -> Vlan {
    Vlan {
        vid,
        pvid: true,
        untagged: true,
    }
}

/// The VLANs of a port of this namespace.
pub fn of_port(name: &str) -> Result<BTreeSet<Vlan>> {
    let index = Rtnl::here()?.link(name)?.index;
    let messages = with_handle(|handle| async move {
        let mask = vec![LinkExtentMask::Brvlan];
        handle
            .link()
            .get()
            .set_filter_mask(AddressFamily::Bridge, mask)
            .execute()
            .try_collect::<Vec<_>>()
            .await
    })?;
    let of_port = messages
        .iter()
        .filter(|message| message.header.index == index);
    Ok(of_port
        .flat_map(|message| &message.attributes)
        .flat_map(vlans_in)
        .collect())
}

fn vlans_in(attribute: &LinkAttribute) -> Vec<Vlan> {
    let LinkAttribute::AfSpecBridge(specs) = attribute else {
        return Vec::new();
    };
    let read = |spec: &AfSpecBridge| match spec {
        AfSpecBridge::VlanInfo(info) => Some(Vlan {
            vid: info.vid,
            pvid: info.flags.contains(BridgeVlanInfoFlags::Pvid),
            untagged: info.flags.contains(BridgeVlanInfoFlags::Untagged),
        }),
        _ => None,
    };
    specs.iter().filter_map(read).collect()
}

/// Takes a port of this namespace out of a VLAN.
pub fn remove(name: &str, vid: u16) -> Result<()> {
    let index = Rtnl::here()?.link(name)?.index;
    with_handle(|handle| async move {
        let mut request = handle.link().del(index);
        *request.message_mut() = LinkBridgeVlan::new(index)
            .vlan(vid, BridgeVlanInfoFlags::empty())
            .build();
        request.execute().await
    })
}

/// Whether a bridge of this namespace filters by VLAN.
pub fn filters(bridge: &str) -> Result<bool> {
    let name = bridge.to_owned();
    let messages: Vec<LinkMessage> = with_handle(|handle| async move {
        handle
            .link()
            .get()
            .match_name(name)
            .execute()
            .try_collect()
            .await
    })?;
    let infos = messages
        .iter()
        .flat_map(|message| &message.attributes)
        .filter_map(|attribute| match attribute {
            LinkAttribute::LinkInfo(infos) => Some(infos),
            _ => None,
        });
    Ok(infos.flatten().any(|info| match info {
        LinkInfo::Data(InfoData::Bridge(settings)) => {
            settings.contains(&InfoBridge::VlanFiltering(true))
        }
        _ => false,
    }))
}

/// Makes `PARENT.VID` in a namespace: an interface that sends and receives with that tag. It is switched on.
pub fn add_tagged(netns: &Netns, parent: &str, vid: u16) -> Result<String> {
    let name = format!("{parent}.{vid}");
    netns.run(|| {
        let index = Rtnl::here()?.link(parent)?.index;
        let message = LinkVlan::new(&name, index, vid).up().build();
        with_handle(|handle| async move { handle.link().add(message).execute().await })
    })?;
    Ok(name)
}

/// Runs one request on a connection of its own in the namespace of this thread.
fn with_handle<T, F: Future<Output = std::result::Result<T, rtnetlink::Error>>>(
    request: impl FnOnce(Handle) -> F,
) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .doing(|| "start the netlink runtime")?;
    runtime.block_on(async {
        let (connection, handle, _) =
            rtnetlink::new_connection().doing(|| "open a netlink socket")?;
        tokio::spawn(connection);
        request(handle).await.map_err(|source| Error::Netlink {
            what: "ask about VLANs".into(),
            source,
        })
    })
}
