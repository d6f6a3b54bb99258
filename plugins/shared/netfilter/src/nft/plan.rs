//! From intents to elements and the chains they lead to.

use std::net::IpAddr;

use ipnetwork::IpNetwork;

use super::chain::ChainSpec;
use super::condition;
use super::entry::{Entry, Key, Slot, Value, destination};
use super::matches::Ip;
use super::record::owner_key;
use super::sets::SetId;
use super::subnet;
use crate::error::{Error, Result};
use crate::intent::{Intent, Kinds, Policy, Protocol, Snat};
use crate::nfnl::Family;
use crate::owner::Owner;

/// What an owner is to have.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Elements by kind.
    pub parts: Vec<Part>,
    /// Chains the elements jump to.
    pub chains: Vec<ChainSpec>,
    /// Elements that exist as long as one of the chains does, with the chain's index.
    pub shared: Vec<Entry>,
}

/// The elements of one kind.
#[derive(Debug)]
pub(crate) struct Part {
    pub kind: Kinds,
    pub entries: Vec<Entry>,
    /// Names of the chains they use.
    pub chains: Vec<String>,
}

impl Plan {
    /// Works out what the intents need; fails where they cannot be carried out.
    pub fn of(owner: &Owner, intents: &[Intent]) -> Result<Self> {
        let mut plan = Self::default();
        for intent in intents {
            match intent {
                Intent::Masquerade { source, except } => plan.masquerade(*source, except),
                Intent::Publish {
                    host_ip,
                    host_port,
                    protocol,
                    to,
                    to_port,
                    snat,
                    conditions,
                    ..
                } => {
                    let host = Host {
                        ip: *host_ip,
                        port: nonzero("host port", *host_port)?,
                        protocol: *protocol,
                        conditions,
                    };
                    plan.publish(&host, *to, nonzero("container port", *to_port)?, *snat)?;
                }
                Intent::Admit { address, .. } => {
                    let set = if address.is_ipv4() {
                        SetId::Admit4
                    } else {
                        SetId::Admit6
                    };
                    plan.add(
                        Kinds::ADMIT,
                        Entry::new(set, Key::address(*address), None),
                        None,
                    )?;
                }
                Intent::Confine {
                    bridge,
                    port,
                    policy,
                } => plan.confine(owner, bridge, port.as_deref(), *policy)?,
                Intent::GuardMac { port, mac } => {
                    check_name("interface", port)?;
                    plan.add(
                        Kinds::GUARD_MAC,
                        Entry::new(SetId::Guarded, Key::name(port), None),
                        None,
                    )?;
                    let allowed = Entry::new(SetId::Allowed, Key::name(port).and_ether(*mac), None);
                    plan.add(Kinds::GUARD_MAC, allowed, None)?;
                }
            }
        }
        Ok(plan)
    }

    /// Marks the connections that these addresses open, for a backend that admits them.
    pub fn knowing(addresses: &[IpAddr]) -> Result<Self> {
        let mut plan = Self::default();
        for address in addresses {
            let set = match address {
                IpAddr::V4(_) => SetId::Known4,
                IpAddr::V6(_) => SetId::Known6,
            };
            let entry = Entry::new(set, Key::address(*address), None);
            plan.add(Kinds::ADMIT, entry, None)?;
        }
        Ok(plan)
    }

    /// All elements that carry the owner.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.parts.iter().flat_map(|part| &part.entries)
    }

    /// The families whose tables are needed. The owners' records are in the inet table.
    pub fn families(&self) -> Vec<Family> {
        let bridge = self
            .entries()
            .any(|entry| entry.slot.set.family() == Family::Bridge);
        if bridge {
            vec![Family::Inet, Family::Bridge]
        } else {
            vec![Family::Inet]
        }
    }

    fn masquerade(&mut self, source: IpNetwork, except: &[IpNetwork]) {
        let chain = subnet::masquerade(source, except);
        let set = if source.is_ipv4() {
            SetId::Masquerade4
        } else {
            SetId::Masquerade6
        };
        let entry = Entry::new(
            set,
            Key::address(source.ip()),
            Some(Value::Goto(chain.name.clone())),
        );
        // The same address twice, or with two prefixes: the last word counts.
        if let Some(part) = self.part(Kinds::MASQUERADE) {
            part.entries.retain(|known| known.slot != entry.slot);
        }
        self.put(Kinds::MASQUERADE, entry, Some(chain));
    }

    fn publish(&mut self, host: &Host<'_>, to: IpNetwork, to_port: u16, snat: Snat) -> Result<()> {
        let ip = Ip::of(to.ip());
        if host.ip.is_some_and(|host| Ip::of(host) != ip) {
            return Ok(());
        }
        self.forward(host, ip, destination(to.ip(), to_port))?;
        let (hairpins, published) = match ip {
            Ip::V4 => (SetId::Hairpin4, SetId::Published4),
            Ip::V6 => (SetId::Hairpin6, SetId::Published6),
        };
        let forwarded = || Key::port(host.protocol, to_port).and_address(to.ip());
        self.add(
            Kinds::PUBLISH,
            Entry::new(published, forwarded(), None),
            None,
        )?;
        let Some(chain) = subnet::hairpin(to, snat) else {
            return Ok(());
        };
        let entry = Entry::new(hairpins, forwarded(), Some(Value::Jump(chain.name.clone())));
        self.add(Kinds::PUBLISH, entry, Some(chain))
    }

    /// The claim on the host's port. One under conditions leads to a chain, and the destination is in a map of its own.
    fn forward(&mut self, host: &Host<'_>, ip: Ip, target: Value) -> Result<()> {
        let (any, at, on_condition, then) = match ip {
            Ip::V4 => (
                SetId::Publish4,
                SetId::PublishAt4,
                SetId::PublishIf4,
                SetId::PublishThen4,
            ),
            Ip::V6 => (
                SetId::Publish6,
                SetId::PublishAt6,
                SetId::PublishIf6,
                SetId::PublishThen6,
            ),
        };
        let port = Key::port(host.protocol, host.port);
        let single = host.ip.filter(|ip| !ip.is_unspecified());
        if let Some(chain) = condition::chain(ip, host.conditions, single)? {
            let verdict = Some(Value::Jump(chain.name.clone()));
            self.claim(host, Entry::new(then, port.clone(), Some(target)))?;
            return self.add(
                Kinds::PUBLISH,
                Entry::new(on_condition, port, verdict),
                Some(chain),
            );
        }
        let entry = match single {
            Some(address) => {
                let key = Key::address(address).and_port(host.protocol, host.port);
                Entry::new(at, key, Some(target))
            }
            None => Entry::new(any, port, Some(target)),
        };
        self.claim(host, entry)
    }

    fn claim(&mut self, host: &Host<'_>, entry: Entry) -> Result<()> {
        self.refuse_overlap(&entry, host)?;
        self.add(Kinds::PUBLISH, entry, None)
    }

    /// Two mappings of one request may not claim the same port, unless they say the same.
    fn refuse_overlap(&mut self, claim: &Entry, host: &Host<'_>) -> Result<()> {
        let overlaps = |known: &&Entry| {
            let value = |entry: &Entry| entry.value.clone();
            super::claims::overlap(&known.slot, &claim.slot) && value(known) != value(claim)
        };
        match self
            .part(Kinds::PUBLISH)
            .and_then(|part| part.entries.iter().find(overlaps))
        {
            Some(_) => Err(Error::PortRepeated {
                port: host.port,
                protocol: host.protocol,
            }),
            None => Ok(()),
        }
    }

    fn confine(
        &mut self,
        owner: &Owner,
        bridge: &str,
        port: Option<&str>,
        policy: Policy,
    ) -> Result<()> {
        check_name("bridge", bridge)?;
        let chain = subnet::confine(bridge, policy);
        let map = match policy {
            Policy::SameBridge => SetId::Confine,
            Policy::Isolated => SetId::Isolate,
        };
        self.shared.push(Entry::new(
            map,
            Key::name(bridge),
            Some(Value::Jump(chain.name.clone())),
        ));
        self.shared
            .push(Entry::new(SetId::Policed, Key::name(bridge), None));
        let confined = Entry::new(
            SetId::Confined,
            owner_key(owner),
            Some(Value::Jump(chain.name.clone())),
        );
        self.add(Kinds::CONFINE, confined, Some(chain))?;
        let Some(port) = port.filter(|_| policy == Policy::Isolated) else {
            return Ok(());
        };
        check_name("interface", port)?;
        self.add(
            Kinds::CONFINE,
            Entry::new(SetId::Isolated, Key::name(port), None),
            None,
        )
    }

    /// Adds an element; the same again is nothing new, the same key with another value is refused.
    fn add(&mut self, kind: Kinds, entry: Entry, chain: Option<ChainSpec>) -> Result<()> {
        let known = self
            .part(kind)
            .and_then(|part| part.entries.iter().find(|known| known.slot == entry.slot));
        match known {
            Some(known) if known.value == entry.value => Ok(()),
            Some(_) => Err(Error::Invalid {
                what: entry.slot.to_string(),
                reason: "asked for twice, differently".into(),
            }),
            None => {
                self.put(kind, entry, chain);
                Ok(())
            }
        }
    }

    fn put(&mut self, kind: Kinds, entry: Entry, chain: Option<ChainSpec>) {
        if self.part(kind).is_none() {
            self.parts.push(Part {
                kind,
                entries: Vec::new(),
                chains: Vec::new(),
            });
        }
        let name = chain.as_ref().map(|chain| chain.name.clone());
        if let Some(part) = self.part(kind) {
            part.entries.push(entry);
            part.chains
                .extend(name.filter(|name| !part.chains.contains(name)));
        }
        self.chains
            .extend(chain.filter(|chain| self.chains.iter().all(|known| known.name != chain.name)));
    }

    fn part(&mut self, kind: Kinds) -> Option<&mut Part> {
        self.parts.iter_mut().find(|part| part.kind == kind)
    }
}

/// The host's side of a published port.
struct Host<'a> {
    ip: Option<IpAddr>,
    port: u16,
    protocol: Protocol,
    conditions: &'a [String],
}

/// Whether an element is a claim on a host port.
pub(crate) fn is_claim(slot: &Slot) -> bool {
    use SetId::{Publish4, Publish6, PublishAt4, PublishAt6, PublishThen4, PublishThen6};
    matches!(
        slot.set,
        Publish4 | Publish6 | PublishAt4 | PublishAt6 | PublishThen4 | PublishThen6
    )
}

/// Whether an element is part of publishing a host port.
pub(crate) fn is_port(slot: &Slot) -> bool {
    is_claim(slot) || matches!(slot.set, SetId::PublishIf4 | SetId::PublishIf6)
}

fn nonzero(what: &str, port: u16) -> Result<u16> {
    if port == 0 {
        return Err(Error::Invalid {
            what: what.into(),
            reason: "0 is no port".into(),
        });
    }
    Ok(port)
}

fn check_name(what: &str, name: &str) -> Result<()> {
    if name.is_empty() || name.len() > 15 || name.contains(['/', '\0']) {
        return Err(Error::Invalid {
            what: format!("{what} {name:?}"),
            reason: "no interface can have this name".into(),
        });
    }
    Ok(())
}
