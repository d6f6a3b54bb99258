//! The pair, the address and the route.

use std::error::Error;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{InfoData, InfoVeth};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, setns};
use rtnetlink::{LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder};

use super::BRIDGE;

/// Makes the pair, this end switched on, and enters the container's namespace. Returns a socket there.
pub fn attach(netns: &File, number: u32) -> Result<Socket, Box<dyn Error>> {
    let host = Socket::new(NETLINK_ROUTE)?;
    let far = LinkMessageBuilder::<LinkUnspec>::new()
        .name("eth0")
        .setns_by_fd(netns.as_raw_fd())
        .build();
    let pair = LinkVeth::new(&format!("floor{number}"), "eth0")
        .txqueuelen(0)
        .controller(if_nametoindex(BRIDGE)?)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(far)))
        .up()
        .build();
    exchange(
        &host,
        vec![(
            RouteNetlinkMessage::NewLink(pair),
            NLM_F_CREATE | NLM_F_EXCL,
        )],
    )?;
    setns(netns, CloneFlags::CLONE_NEWNET)?;
    Ok(Socket::new(NETLINK_ROUTE)?)
}

/// Address, the other end switched on, and the default route.
pub fn configure(container: &Socket, number: u32) -> Result<(), Box<dyn Error>> {
    let index = if_nametoindex("eth0")?;
    let own = IpAddr::V4(Ipv4Addr::from(
        u32::from(Ipv4Addr::new(172, 26, 79, 0)) + number,
    ));
    let mut address = AddressMessage::default();
    address.header.family = netlink_packet_route::AddressFamily::Inet;
    address.header.prefix_len = 20;
    address.header.index = index;
    address.attributes = vec![AddressAttribute::Address(own), AddressAttribute::Local(own)];
    let route = RouteMessageBuilder::<Ipv4Addr>::new()
        .gateway(Ipv4Addr::new(172, 26, 64, 1))
        .output_interface(index)
        .build();
    let on = LinkUnspec::new_with_index(index).up().build();
    let new = NLM_F_CREATE | NLM_F_EXCL;
    exchange(
        container,
        vec![
            (RouteNetlinkMessage::NewAddress(address), new),
            (RouteNetlinkMessage::NewLink(on), 0),
            (RouteNetlinkMessage::NewRoute(route), new),
        ],
    )
}

/// Sends requests in one datagram and reads their acknowledgements.
fn exchange(
    socket: &Socket,
    requests: Vec<(RouteNetlinkMessage, u16)>,
) -> Result<(), Box<dyn Error>> {
    let mut bytes = Vec::new();
    let mut waiting = requests.len();
    for (message, flags) in requests {
        let mut message = NetlinkMessage::from(message);
        message.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        message.finalize();
        let start = bytes.len();
        bytes.resize(start + message.buffer_len().next_multiple_of(4), 0);
        message.serialize(bytes.get_mut(start..).unwrap_or_default());
    }
    socket.send_to(&bytes, &SocketAddr::new(0, 0), 0)?;
    let mut answer = Vec::with_capacity(8192);
    while waiting > 0 {
        answer.clear();
        socket.recv(&mut answer, 0)?;
        let mut rest = answer.as_slice();
        while !rest.is_empty() {
            let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)?;
            if let NetlinkPayload::Error(error) = message.payload {
                match error.code {
                    None => waiting = waiting.saturating_sub(1),
                    Some(_) => return Err(format!("the kernel refuses: {error}").into()),
                }
            }
            let length = usize::try_from(message.header.length)?.next_multiple_of(4);
            rest = rest.get(length..).unwrap_or_default();
        }
    }
    Ok(())
}
