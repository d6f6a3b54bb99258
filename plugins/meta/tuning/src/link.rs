//! Settings of the container's interface.

use cni_types::result::CniResult;
use netlink::{Handle, Link, LinkChange, MacAddr, Request, sysctl};
use skel::log;

use crate::backup::Originals;
use crate::error::Error;

/// What is asked of the interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkSettings {
    /// Its MAC address.
    pub mac: Option<MacAddr>,
    /// Its MTU, in bytes.
    pub mtu: Option<u32>,
    /// Switch promiscuous mode on.
    pub promisc: bool,
    /// Switch the reception of all multicast frames on or off.
    pub all_multicast: Option<bool>,
    /// The length of its transmit queue, in packets.
    pub tx_queue_len: Option<u32>,
}

impl LinkSettings {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What the link has where something is asked for.
    ///
    /// # Errors
    /// [`Error::NoMac`] if a MAC address is asked for and the link has none.
    pub fn originals(&self, link: &Link) -> Result<Originals, Error> {
        let mac = match self.mac {
            None => String::new(),
            Some(_) => link
                .mac
                .ok_or_else(|| Error::NoMac(link.name.clone()))?
                .to_string(),
        };
        Ok(Originals {
            mac,
            // Not how many want it: a sniffer that runs now would leave it on for ever.
            promisc: self.promisc.then_some(link.promisc),
            mtu: self.mtu.map(|_| link.mtu.into()),
            allmulti: self.all_multicast.map(|_| link.all_multicast),
            tx_queue_len: self.tx_queue_len.map(|_| link.tx_queue_len.into()),
        })
    }

    /// Makes the changes.
    ///
    /// # Errors
    /// The first that the kernel refuses, after all were tried.
    pub fn apply(&self, container: &Handle, link: &Link) -> Result<(), Error> {
        if let Some(mac) = self.mac {
            let change = LinkChange::new().mac(mac);
            announcing(container, link, || container.change_link(link, &change))??;
        }
        let mut changes = Vec::new();
        if self.promisc {
            changes.push(LinkChange::new().promisc(true));
        }
        changes.extend(self.mtu.map(|mtu| LinkChange::new().mtu(mtu)));
        changes.extend(
            self.all_multicast
                .map(|on| LinkChange::new().all_multicast(on)),
        );
        changes.extend(self.tx_queue_len.map(|n| LinkChange::new().tx_queue_len(n)));
        let requests: Vec<Request> = changes
            .iter()
            .map(|change| change.request(link))
            .collect::<Result<_, _>>()?;
        Ok(container.execute_all(&requests)?)
    }

    /// Fails for the first setting that is not as asked for.
    ///
    /// # Errors
    /// [`Error::Check`].
    pub fn verify(&self, link: &Link) -> Result<(), Error> {
        let differs = |what: &str, found: String, wanted: String| {
            Err(Error::Check(format!(
                "{what} of interface {} is {found}, not {wanted}",
                link.name
            )))
        };
        if let Some(mac) = self.mac.filter(|mac| link.mac != Some(*mac)) {
            let found = link.mac.map(|mac| mac.to_string()).unwrap_or_default();
            return differs("MAC address", found, mac.to_string());
        }
        if self.promisc && !link.promisc {
            return differs("promiscuous mode", "off".into(), "on".into());
        }
        if let Some(mtu) = self.mtu.filter(|mtu| link.mtu != *mtu) {
            return differs("MTU", link.mtu.to_string(), mtu.to_string());
        }
        if let Some(on) = self.all_multicast.filter(|on| link.all_multicast != *on) {
            return differs("allmulti", link.all_multicast.to_string(), on.to_string());
        }
        if let Some(len) = self.tx_queue_len.filter(|len| link.tx_queue_len != *len) {
            let found = link.tx_queue_len.to_string();
            return differs("transmit queue length", found, len.to_string());
        }
        Ok(())
    }

    /// Tells the plugins behind this one, and the runtime, what has changed.
    pub fn describe(&self, result: &mut CniResult, ifname: &str) {
        let has_name = |i: &cni_types::result::Interface| i.name == ifname;
        // One of that name on the host is another; but not every plugin says where its interface is.
        let placed = result
            .interfaces
            .iter()
            .any(|i| has_name(i) && !i.sandbox.is_empty());
        for interface in &mut result.interfaces {
            if !has_name(interface) || (placed && interface.sandbox.is_empty()) {
                continue;
            }
            if let Some(mac) = self.mac {
                interface.mac = mac.to_string();
            }
            if let Some(mtu) = self.mtu {
                interface.mtu = mtu.into();
            }
        }
    }
}

impl Originals {
    /// The changes that bring them back, with what to call each in a message.
    pub fn restoring(&self) -> Vec<LinkChange> {
        let mut changes = Vec::new();
        let number = |number: Option<i64>| number.and_then(|n| u32::try_from(n).ok());
        changes.extend(number(self.mtu).map(|mtu| LinkChange::new().mtu(mtu)));
        match self.mac.parse() {
            Ok(mac) => changes.push(LinkChange::new().mac(mac)),
            Err(error) if !self.mac.is_empty() => {
                log::warn(format_args!("tuning: backup: {error}"))
            }
            Err(_) => {}
        }
        changes.extend(self.promisc.map(|on| LinkChange::new().promisc(on)));
        changes.extend(self.allmulti.map(|on| LinkChange::new().all_multicast(on)));
        changes.extend(number(self.tx_queue_len).map(|n| LinkChange::new().tx_queue_len(n)));
        changes
    }

    /// Brings all of them back that the kernel takes.
    ///
    /// # Errors
    /// If the kernel could not be asked; and each refusal.
    pub fn restore(&self, container: &Handle, link: &Link) -> netlink::Result<Vec<netlink::Error>> {
        let requests: Vec<Request> = self
            .restoring()
            .iter()
            .map(|change| change.request(link))
            .collect::<Result<_, _>>()?;
        let verdicts = container.execute_each(&requests)?;
        Ok(verdicts.into_iter().filter_map(Result::err).collect())
    }
}

/// Makes a change of the MAC address, of which the kernel tells the neighbours: they know the interface's addresses
/// under another one, because the plugin that made it has announced them.
fn announcing<T>(
    container: &Handle,
    link: &Link,
    change: impl FnOnce() -> T,
) -> netlink::Result<T> {
    container.inside(|| {
        let switches = [("ipv4", "arp_notify"), ("ipv6", "ndisc_notify")];
        let on: Vec<_> = switches
            .into_iter()
            .filter_map(|(family, key)| switch_on(family, &link.name, key))
            .collect();
        let outcome = change();
        for (path, before) in on {
            if let Err(error) = sysctl::write(&path, &before) {
                log::debug(format_args!("{error}"));
            }
        }
        outcome
    })
}

/// Switches a setting of the interface on; where it was not, its file and what it was.
fn switch_on(family: &str, link: &str, key: &str) -> Option<(std::path::PathBuf, String)> {
    let path = sysctl::conf(family, link, key).ok()?;
    let switched = sysctl::read(&path).and_then(|before| {
        sysctl::write(&path, "1")?;
        Ok(before)
    });
    match switched {
        Ok(before) => Some((path, before)).filter(|(_, before)| before != "1"),
        Err(error) => {
            log::debug(format_args!("{error}"));
            None
        }
    }
}
