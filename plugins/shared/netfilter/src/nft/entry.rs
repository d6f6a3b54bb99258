//! Elements of our sets and maps.

use std::net::IpAddr;

use super::expr::write_verdict;
use super::matches::octets;
use super::sets::{Field, SetId, TABLE};
use crate::intent::Protocol;
use crate::nfnl::consts::{LIST_ELEM, data, elem, flag, msg, verdict};
use crate::nfnl::{Data, Element, Request, Verdict, udata_with_comment};

/// What a map gives for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Fields(Vec<u8>),
    Jump(String),
    Goto(String),
}

impl Value {
    /// Whether the kernel's data is this.
    pub fn is(&self, found: Option<&Data>) -> bool {
        let verdict = |code, chain: &String| {
            Data::Verdict(Verdict {
                code,
                chain: Some(chain.clone()),
            })
        };
        found
            == Some(&match self {
                Self::Fields(bytes) => Data::Value(bytes.clone()),
                Self::Jump(chain) => verdict(verdict::JUMP, chain),
                Self::Goto(chain) => verdict(verdict::GOTO, chain),
            })
    }
}

/// Names an element: a set and a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Slot {
    pub set: SetId,
    /// Every component padded to a multiple of four, as in registers.
    pub key: Vec<u8>,
}

impl Slot {
    /// The message that deletes the element.
    pub fn delete(&self) -> Request {
        self.request(msg::DELSETELEM, 0, |_| {})
    }

    /// The message that asks the kernel to add the element.
    pub fn add(&self, flags: u16, userdata: &[u8], value: Option<&Value>) -> Request {
        self.request(msg::NEWSETELEM, flag::CREATE | flags, |w| {
            if let Some(value) = value {
                w.nest(elem::DATA, |w| match value {
                    Value::Fields(bytes) => {
                        w.bytes(data::VALUE, bytes);
                    }
                    Value::Jump(chain) => write_verdict(w, verdict::JUMP, Some(chain)),
                    Value::Goto(chain) => write_verdict(w, verdict::GOTO, Some(chain)),
                });
            }
            if !userdata.is_empty() {
                w.bytes(elem::USERDATA, userdata);
            }
        })
    }

    fn request(
        &self,
        kind: u8,
        flags: u16,
        fill: impl FnOnce(&mut crate::nfnl::Writer),
    ) -> Request {
        Request::nftables(kind, self.set.family(), flags).with(|w| {
            w.text(elem::LIST_TABLE, TABLE)
                .text(elem::LIST_SET, self.set.name());
            w.nest(elem::LIST_ELEMENTS, |w| {
                w.nest(LIST_ELEM, |w| {
                    w.nest(elem::KEY, |w| {
                        w.bytes(data::VALUE, &self.key);
                    });
                    fill(w);
                });
            });
        })
    }

    /// The key without padding.
    pub fn compact(&self) -> Vec<u8> {
        let mut rest = self.key.as_slice();
        let mut compact = Vec::new();
        for field in self.set.key() {
            let (component, after) = rest.split_at_checked(field.padded()).unwrap_or((rest, &[]));
            compact.extend(component.iter().take(field.width()));
            rest = after;
        }
        compact
    }

    /// Takes a key without padding off the bytes.
    pub fn from_compact(set: SetId, bytes: &mut &[u8]) -> Option<Self> {
        let mut key = Vec::new();
        for field in set.key() {
            let (component, after) = bytes.split_at_checked(field.width())?;
            *bytes = after;
            push(&mut key, component);
        }
        Some(Self { set, key })
    }
}

impl std::fmt::Display for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut rest = self.key.as_slice();
        write!(f, "element {{ ")?;
        for (index, field) in self.set.key().iter().enumerate() {
            let (component, after) = rest.split_at_checked(field.padded()).unwrap_or((rest, &[]));
            rest = after;
            let dot = if index == 0 { "" } else { " . " };
            write!(f, "{dot}{}", component_text(*field, component))?;
        }
        write!(
            f,
            " }} of {} {TABLE} {}",
            self.set.family().name(),
            self.set.name()
        )
    }
}

fn component_text(field: Field, bytes: &[u8]) -> String {
    let text = match field {
        Field::Ip4 => bytes
            .first_chunk::<4>()
            .map(|octets| IpAddr::from(*octets).to_string()),
        Field::Ip6 => bytes
            .first_chunk::<16>()
            .map(|octets| IpAddr::from(*octets).to_string()),
        Field::Port => bytes
            .first_chunk::<2>()
            .map(|port| u16::from_be_bytes(*port).to_string()),
        Field::Proto => bytes
            .first()
            .and_then(|number| Protocol::from_number(*number))
            .map(|p| p.to_string()),
        Field::Name => {
            let end = bytes
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(bytes.len());
            Some(format!(
                "{:?}",
                String::from_utf8_lossy(bytes.get(..end).unwrap_or_default())
            ))
        }
        Field::Ether => {
            let hex: Vec<_> = bytes
                .iter()
                .take(6)
                .map(|byte| format!("{byte:02x}"))
                .collect();
            Some(hex.join(":"))
        }
    };
    text.unwrap_or_else(|| "?".into())
}

/// An element we want: its place and, in a map, its value. The comment is the owner's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub slot: Slot,
    pub value: Option<Value>,
}

impl Entry {
    pub fn new(set: SetId, key: Key, value: Option<Value>) -> Self {
        Self {
            slot: Slot { set, key: key.0 },
            value,
        }
    }

    /// The message that adds it, failing if the key is taken.
    pub fn claim(&self, comment: &str) -> Request {
        self.slot.add(
            flag::EXCL,
            &udata_with_comment(comment),
            self.value.as_ref(),
        )
    }

    /// Whether the kernel's element has our value.
    pub fn is(&self, found: &Element) -> bool {
        match &self.value {
            None => true,
            Some(value) => value.is(found.data.as_ref()),
        }
    }
}

/// Builds a key, component by component.
#[derive(Debug, Clone, Default)]
pub(crate) struct Key(pub Vec<u8>);

impl Key {
    pub fn name(name: &str) -> Self {
        Self::default().and_name(name)
    }

    pub fn address(address: IpAddr) -> Self {
        Self::default().and_address(address)
    }

    pub fn port(protocol: Protocol, port: u16) -> Self {
        Self::default().and_port(protocol, port)
    }

    pub fn and_name(mut self, name: &str) -> Self {
        push(&mut self.0, &super::matches::ifname(name));
        self
    }

    pub fn and_address(mut self, address: IpAddr) -> Self {
        push(&mut self.0, &octets(address));
        self
    }

    pub fn and_port(mut self, protocol: Protocol, port: u16) -> Self {
        push(&mut self.0, &[protocol.number()]);
        push(&mut self.0, &port.to_be_bytes());
        self
    }

    pub fn and_ether(mut self, mac: [u8; 6]) -> Self {
        push(&mut self.0, &mac);
        self
    }
}

/// Appends a component and pads it.
fn push(key: &mut Vec<u8>, component: &[u8]) {
    key.extend_from_slice(component);
    key.resize(key.len().next_multiple_of(4), 0);
}

/// Address and port as a map of ours gives them.
pub(crate) fn destination(address: IpAddr, port: u16) -> Value {
    let mut bytes = Vec::new();
    push(&mut bytes, &octets(address));
    push(&mut bytes, &port.to_be_bytes());
    Value::Fields(bytes)
}

/// The address in such a value.
pub(crate) fn destination_address(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        8 => value.first_chunk::<4>().map(|octets| IpAddr::from(*octets)),
        20 => value
            .first_chunk::<16>()
            .map(|octets| IpAddr::from(*octets)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_keys_read_back() {
        let slots = [
            Slot {
                set: SetId::Hairpin4,
                key: Key::port(Protocol::Udp, 53)
                    .and_address([10, 1, 2, 3].into())
                    .0,
            },
            Slot {
                set: SetId::Allowed,
                key: Key::name("veth0").and_ether([2, 0, 0, 0, 0, 1]).0,
            },
        ];
        for slot in slots {
            let compact = slot.compact();
            assert!(compact.len() < slot.key.len());
            assert_eq!(
                Slot::from_compact(slot.set, &mut compact.as_slice()),
                Some(slot)
            );
        }
        assert_eq!(
            Slot::from_compact(SetId::Admit6, &mut [1, 2, 3].as_slice()),
            None
        );
    }

    #[test]
    fn slots_print_as_nft_would() {
        let slot = Slot {
            set: SetId::PublishAt4,
            key: Key::address([192, 0, 2, 1].into())
                .and_port(Protocol::Tcp, 80)
                .0,
        };
        assert_eq!(
            slot.to_string(),
            "element { 192.0.2.1 . tcp . 80 } of inet ferrule publish_at4"
        );
        let slot = Slot {
            set: SetId::Allowed,
            key: Key::name("veth0").and_ether([2, 0, 0, 0, 0, 0xab]).0,
        };
        assert_eq!(
            slot.to_string(),
            "element { \"veth0\" . 02:00:00:00:00:ab } of bridge ferrule allowed"
        );
    }
}
