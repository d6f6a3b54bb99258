//! A routing-netlink connection into one namespace, used without async at the call site.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use ipnetwork::IpNetwork;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{InfoData, InfoVeth, LinkMessage};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteProtocol};
use netlink_packet_route::rule::{RuleAttribute, RuleMessage};
use rtnetlink::{
    IpVersion, LinkBridge, LinkMessageBuilder, LinkUnspec, LinkVeth, MulticastGroup,
    RouteMessageBuilder,
};
use tokio::runtime::{Builder, Runtime};

use super::links::Link;
use super::netns::Netns;
use crate::error::{Context, Error, Result};

/// One connection; it keeps speaking to the namespace it was opened in.
pub struct Rtnl {
    runtime: Runtime,
    handle: rtnetlink::Handle,
}

impl Rtnl {
    /// Connects to the namespace of the calling thread.
    ///
    /// # Errors
    /// When no socket can be had.
    pub fn here() -> Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .doing(|| "start the netlink runtime")?;
        let guard = runtime.enter();
        let (connection, handle, _) =
            rtnetlink::new_connection().doing(|| "open a netlink socket")?;
        runtime.spawn(connection);
        drop(guard);
        Ok(Self { runtime, handle })
    }

    /// Connects to a namespace.
    ///
    /// # Errors
    /// When the namespace cannot be entered or no socket can be had.
    pub fn open(netns: &Netns) -> Result<Self> {
        netns.run(Self::here)
    }

    /// Every link, in the order of their index.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn links(&self) -> Result<Vec<Link>> {
        Ok(self.link_messages()?.iter().map(Link::read).collect())
    }

    fn link_messages(&self) -> Result<Vec<LinkMessage>> {
        self.runtime
            .block_on(self.handle.link().get().execute().try_collect())
            .doing(|| "list links")
    }

    /// The link of this name.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is none.
    pub fn link(&self, name: &str) -> Result<Link> {
        self.links()?
            .into_iter()
            .find(|link| link.name == name)
            .ok_or_else(|| Error::Missing {
                what: format!("link {name}"),
            })
    }

    /// Every address of every link.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn addresses(&self) -> Result<Vec<AddressMessage>> {
        self.runtime
            .block_on(self.handle.address().get().execute().try_collect())
            .doing(|| "list addresses")
    }

    /// The addresses with their prefix on the link of this name.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is no such link.
    pub fn addresses_of(&self, name: &str) -> Result<Vec<IpNetwork>> {
        let index = self.link(name)?.index;
        let of_link = |message: &AddressMessage| message.header.index == index;
        Ok(self
            .addresses()?
            .iter()
            .filter(|message| of_link(message))
            .filter_map(network)
            .collect())
    }

    /// Every route of every table, IPv4 first.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn routes(&self) -> Result<Vec<RouteMessage>> {
        let v4 = RouteMessageBuilder::<Ipv4Addr>::new().build();
        let v6 = RouteMessageBuilder::<Ipv6Addr>::new().build();
        let mut all: Vec<RouteMessage> = Vec::new();
        for query in [v4, v6] {
            let found: Vec<RouteMessage> = self
                .runtime
                .block_on(self.handle.route().get(query).execute().try_collect())
                .doing(|| "list routes")?;
            all.extend(found);
        }
        Ok(all)
    }

    /// Every routing policy rule, IPv4 first.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn rules(&self) -> Result<Vec<RuleMessage>> {
        let mut all: Vec<RuleMessage> = Vec::new();
        for version in [IpVersion::V4, IpVersion::V6] {
            let found: Vec<RuleMessage> = self
                .runtime
                .block_on(self.handle.rule().get(version).execute().try_collect())
                .doing(|| "list routing rules")?;
            all.extend(found);
        }
        Ok(all)
    }

    /// Deletes the routing policy rules that somebody else than the kernel made.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn delete_rules(&self) -> Result<()> {
        let by_kernel = RuleAttribute::Protocol(RouteProtocol::Kernel);
        let others = self.rules()?.into_iter();
        for rule in others.filter(|rule| !rule.attributes.contains(&by_kernel)) {
            self.runtime
                .block_on(self.handle.rule().del(rule).execute())
                .doing(|| "delete a routing rule")?;
        }
        Ok(())
    }

    /// Switches a link on.
    ///
    /// # Errors
    /// When there is no such link or the kernel refuses.
    pub fn set_up(&self, name: &str) -> Result<()> {
        self.change(LinkUnspec::new_with_name(name).up().build(), || {
            format!("switch {name} on")
        })
    }

    /// Switches a link off.
    ///
    /// # Errors
    /// When there is no such link or the kernel refuses.
    pub fn set_down(&self, name: &str) -> Result<()> {
        self.change(LinkUnspec::new_with_name(name).down().build(), || {
            format!("switch {name} off")
        })
    }

    /// Gives a link another MAC address.
    ///
    /// # Errors
    /// When there is no such link or the kernel refuses.
    pub fn set_mac(&self, name: &str, mac: [u8; 6]) -> Result<()> {
        let message = LinkUnspec::new_with_name(name)
            .address(mac.to_vec())
            .build();
        self.change(message, || format!("set the MAC address of {name}"))
    }

    /// Switches promiscuous mode of a link.
    ///
    /// # Errors
    /// When there is no such link or the kernel refuses.
    pub fn set_promiscuous(&self, name: &str, on: bool) -> Result<()> {
        let message = LinkUnspec::new_with_name(name).promiscuous(on).build();
        self.change(message, || format!("switch promiscuous mode of {name}"))
    }

    /// Makes a link a port of a bridge.
    ///
    /// # Errors
    /// When one of them is missing or the kernel refuses.
    pub fn set_master(&self, name: &str, bridge: &str) -> Result<()> {
        let index = self.link(bridge)?.index;
        let message = LinkUnspec::new_with_name(name).controller(index).build();
        self.change(message, || format!("make {name} a port of {bridge}"))
    }

    /// Takes every address from a link.
    ///
    /// # Errors
    /// When there is no such link or the kernel refuses.
    pub fn flush_addresses(&self, name: &str) -> Result<()> {
        let index = self.link(name)?.index;
        for address in self.addresses()? {
            if address.header.index == index {
                self.runtime
                    .block_on(self.handle.address().del(address).execute())
                    .doing(|| format!("take an address from {name}"))?;
            }
        }
        Ok(())
    }

    fn change(&self, message: LinkMessage, what: impl FnOnce() -> String) -> Result<()> {
        self.runtime
            .block_on(self.handle.link().set(message).execute())
            .doing(what)
    }

    /// Makes a veth pair, this end named `name`, the other `peer_name` born in `peer`; both off.
    ///
    /// # Errors
    /// When a name is taken or the kernel refuses.
    pub fn add_veth(&self, name: &str, peer: &Netns, peer_name: &str) -> Result<()> {
        use std::os::fd::AsRawFd;
        let other = LinkMessageBuilder::<LinkUnspec>::new()
            .name(peer_name)
            .setns_by_fd(peer.fd().as_raw_fd())
            .build();
        let message = LinkVeth::new(name, peer_name)
            .set_info_data(InfoData::Veth(InfoVeth::Peer(other)))
            .build();
        self.add(message, || format!("make veth {name} and {peer_name}"))
    }

    /// Makes a bridge and switches it on.
    ///
    /// # Errors
    /// When the name is taken or the kernel refuses.
    pub fn add_bridge(&self, name: &str) -> Result<()> {
        self.add(LinkBridge::new(name).build(), || {
            format!("make bridge {name}")
        })
    }

    pub(super) fn add(&self, message: LinkMessage, what: impl FnOnce() -> String) -> Result<()> {
        self.runtime
            .block_on(self.handle.link().add(message).execute())
            .doing(what)
    }

    /// Deletes a link.
    ///
    /// # Errors
    /// When there is no such link or the kernel refuses.
    pub fn delete_link(&self, name: &str) -> Result<()> {
        let index = self.link(name)?.index;
        self.runtime
            .block_on(self.handle.link().del(index).execute())
            .doing(|| format!("delete link {name}"))
    }

    /// Waits until no link is a port of this bridge any more. The kernel takes the links of a
    /// namespace that is gone away on its own time.
    ///
    /// # Errors
    /// [`Error::Missing`] when ports are still there after `limit`.
    pub fn wait_without_ports(&self, bridge: &str, limit: Duration) -> Result<()> {
        self.wait_until(
            &format!("an end of the ports of {bridge}"),
            limit,
            |links| {
                let index = links
                    .iter()
                    .find(|link| link.name == bridge)
                    .map(|link| link.index);
                index.is_none() || links.iter().all(|link| link.master != index)
            },
        )
    }

    /// Waits until no more than `number` links of this kind are left.
    ///
    /// # Errors
    /// [`Error::Missing`] when there are still more after `limit`.
    pub fn wait_links_gone(&self, kind: &str, number: usize, limit: Duration) -> Result<()> {
        self.wait_until(&format!("an end of links of kind {kind}"), limit, |links| {
            links.iter().filter(|link| link.facts.kind == kind).count() <= number
        })
    }

    fn wait_until(
        &self,
        what: &str,
        limit: Duration,
        done: impl Fn(&[Link]) -> bool,
    ) -> Result<()> {
        let guard = self.runtime.enter();
        let (connection, _, mut events) =
            rtnetlink::new_multicast_connection(&[MulticastGroup::Link])
                .doing(|| "listen to link events")?;
        let listener = self.runtime.spawn(connection);
        drop(guard);
        let end = tokio::time::Instant::now() + limit;
        while !done(&self.links()?) {
            let event = async { tokio::time::timeout_at(end, events.next()).await };
            self.runtime.block_on(event).map_err(|_| Error::Missing {
                what: what.to_owned(),
            })?;
        }
        listener.abort();
        Ok(())
    }

    /// Puts an address on a link. IPv6 ones are usable at once: nobody else is on our wires.
    ///
    /// # Errors
    /// When there is no such link or the kernel refuses.
    pub fn add_address(&self, name: &str, address: IpNetwork) -> Result<()> {
        let index = self.link(name)?.index;
        let mut request = self
            .handle
            .address()
            .add(index, address.ip(), address.prefix());
        if address.is_ipv6() {
            request.message_mut().header.flags =
                netlink_packet_route::address::AddressHeaderFlags::Nodad;
            request
                .message_mut()
                .attributes
                .push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        self.runtime
            .block_on(request.execute())
            .doing(|| format!("add address {address} to {name}"))
    }

    /// Adds a route to the main table.
    ///
    /// # Errors
    /// When the gateway cannot be reached or the kernel refuses.
    pub fn add_route(&self, destination: IpNetwork, gateway: IpAddr) -> Result<()> {
        let adding = || format!("add route {destination} via {gateway}");
        let builder = RouteMessageBuilder::<IpAddr>::new()
            .destination_prefix(destination.ip(), destination.prefix())
            .and_then(|builder| builder.gateway(gateway))
            .map_err(|error| Error::Malformed {
                what: format!("{}: {error}", adding()),
            })?;
        self.runtime
            .block_on(self.handle.route().add(builder.build()).execute())
            .doing(adding)
    }
}

impl Rtnl {
    /// Takes the routes to exactly this network away.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn delete_routes_to(&self, network: IpNetwork) -> Result<()> {
        self.delete_routes(|route| {
            route.header.destination_prefix_length == network.prefix()
                && route
                    .attributes
                    .iter()
                    .any(|attribute| match (attribute, network.ip()) {
                        (RouteAttribute::Destination(RouteAddress::Inet(one)), IpAddr::V4(v4)) => {
                            *one == v4
                        }
                        (RouteAttribute::Destination(RouteAddress::Inet6(one)), IpAddr::V6(v6)) => {
                            *one == v6
                        }
                        _ => false,
                    })
        })
    }

    fn delete_routes(&self, doomed: impl Fn(&RouteMessage) -> bool) -> Result<()> {
        for route in self.routes()?.into_iter().filter(|route| doomed(route)) {
            self.runtime
                .block_on(self.handle.route().del(route).execute())
                .doing(|| "delete a route")?;
        }
        Ok(())
    }

    /// Takes the routes to 127.0.0.0/8 away, so that such packets can be sent elsewhere.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn delete_loopback_routes(&self) -> Result<()> {
        self.delete_routes(|route| {
            route.attributes.iter().any(|attribute| {
                matches!(attribute, RouteAttribute::Destination(RouteAddress::Inet(v4)) if v4.is_loopback())
            })
        })
    }
}

impl std::fmt::Debug for Rtnl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rtnl").finish_non_exhaustive()
    }
}

/// The address with its prefix that a message describes.
pub(crate) fn network(message: &AddressMessage) -> Option<IpNetwork> {
    let mut address = None;
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Local(local) => address = Some(*local),
            AddressAttribute::Address(far) if address.is_none() => address = Some(*far),
            _ => {}
        }
    }
    IpNetwork::new(address?, message.header.prefix_len).ok()
}
