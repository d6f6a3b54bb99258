//! A link, reduced to what a plugin can leave on it.

use netlink_packet_route::link::{
    InfoKind, InfoPortData, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, Prop,
};

/// A link as the kernel reports it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Link {
    /// Interface index.
    pub index: u32,
    /// Interface name.
    pub name: String,
    /// Index of the bridge or other device this link is a port of.
    pub master: Option<u32>,
    /// Everything that describes the link itself.
    pub facts: LinkFacts,
}

/// The properties of a link that stay until somebody changes them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LinkFacts {
    /// Kind such as `bridge` or `veth`; empty for a device of the kernel's own.
    pub kind: String,
    /// MAC address in lower-case colon form.
    pub mac: String,
    /// Largest packet, in bytes.
    pub mtu: u32,
    /// Administratively on.
    pub up: bool,
    /// How many users want promiscuous mode.
    pub promiscuity: u32,
    /// Whether the administrator wants promiscuous mode.
    pub promisc: bool,
    /// Whether the administrator wants all multicast frames.
    pub all_multicast: bool,
    /// Length of the transmit queue, in packets.
    pub tx_queue_len: u32,
    /// Interface alias.
    pub alias: String,
    /// Alternative names.
    pub altnames: Vec<String>,
    /// Settings of this link as a port of a bridge, as the kernel names them.
    pub port: Vec<String>,
}

impl Link {
    /// Reads a link out of a netlink message.
    #[must_use]
    pub fn read(message: &LinkMessage) -> Self {
        let mut link = Self {
            index: message.header.index,
            name: String::new(),
            master: None,
            facts: LinkFacts {
                up: message.header.flags.contains(LinkFlags::Up),
                promisc: message.header.flags.contains(LinkFlags::Promisc),
                all_multicast: message.header.flags.contains(LinkFlags::Allmulti),
                ..LinkFacts::default()
            },
        };
        for attribute in &message.attributes {
            link.take(attribute);
        }
        link
    }

    fn take(&mut self, attribute: &LinkAttribute) {
        let facts = &mut self.facts;
        match attribute {
            LinkAttribute::IfName(name) => self.name.clone_from(name),
            LinkAttribute::Controller(index) => self.master = Some(*index),
            LinkAttribute::Address(mac) => facts.mac = mac_text(mac),
            LinkAttribute::Mtu(mtu) => facts.mtu = *mtu,
            LinkAttribute::TxQueueLen(packets) => facts.tx_queue_len = *packets,
            LinkAttribute::Promiscuity(count) => facts.promiscuity = *count,
            LinkAttribute::IfAlias(alias) => facts.alias.clone_from(alias),
            LinkAttribute::PropList(properties) => {
                facts
                    .altnames
                    .extend(properties.iter().filter_map(|property| match property {
                        Prop::AltIfName(name) => Some(name.clone()),
                        _ => None,
                    }));
            }
            LinkAttribute::LinkInfo(infos) => infos.iter().for_each(|info| facts.take_info(info)),
            _ => {}
        }
    }
}

impl LinkFacts {
    /// Whether a bridge port has this setting, in the form `HairpinMode(true)`.
    #[must_use]
    pub fn port_has(&self, setting: &str) -> bool {
        self.port.iter().any(|line| line == setting)
    }

    fn take_info(&mut self, info: &LinkInfo) {
        match info {
            LinkInfo::Kind(kind) => self.kind = kind_text(kind),
            LinkInfo::PortData(InfoPortData::BridgePort(settings)) => {
                // Timers and per-port numbers change by themselves.
                let lasting = |line: &String| {
                    [
                        "HairpinMode",
                        "Isolated",
                        "Guard",
                        "Protect",
                        "Learning",
                        "UnicastFlood",
                    ]
                    .iter()
                    .any(|name| line.starts_with(name))
                };
                self.port = settings
                    .iter()
                    .map(|one| format!("{one:?}"))
                    .filter(lasting)
                    .collect();
            }
            _ => {}
        }
    }
}

fn kind_text(kind: &InfoKind) -> String {
    kind.to_string()
}

fn mac_text(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .join(":")
}
