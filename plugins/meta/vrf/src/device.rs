//! The VRF itself: choosing its table, making it, and taking it away when nobody is in it any more.

use std::collections::BTreeSet;

use netlink::{Handle, Link, LinkChange, Locked, MacAddr, NewKind, NewLink, TABLE_LOCAL};
use skel::Transaction;

use crate::config::Wanted;
use crate::error::Error;

/// The alias of a VRF that this plugin made.
const MADE: &str = "cni vrf: goes with its last interface";
/// The alias of one that was there before, and had none.
const FOUND: &str = "cni vrf: was here before, and stays";
/// What the MAC address of a VRF begins with that this plugin made: it gets its alias only in a second request. No frame
/// ever carries it.
const MAC: [u8; 4] = [0x02, b'v', b'r', b'f'];
/// `RT_TABLE_DEFAULT`, the first of the three that every namespace has.
const TABLE_DEFAULT: u32 = 253;

/// Where the interface is to go.
#[derive(Debug)]
pub enum Choice {
    /// A VRF that is there.
    Existing(Link),
    /// One that has to be made.
    New {
        /// Its name.
        name: String,
        /// Its table.
        table: u32,
    },
}

/// Looks whether the VRF is there, and fit; else chooses its table.
///
/// # Errors
/// When the name is taken by something else, or by a VRF with another table.
pub fn choose(container: &Handle, wanted: &Wanted) -> Result<Choice, Error> {
    let name = wanted.name.clone();
    if let Some(link) = container.find_link(&name)? {
        require_table(&link, wanted)?;
        return Ok(Choice::Existing(link));
    }
    let table = match wanted.table {
        Some(table) => table,
        None => free_table(&used_tables(container)?).ok_or_else(|| Error::NoTable(name.clone()))?,
    };
    Ok(Choice::New { name, table })
}

/// The table of a link, which must be a VRF, and have the wanted one.
///
/// # Errors
/// [`Error::NotVrf`], [`Error::OtherTable`].
pub fn require_table(link: &Link, wanted: &Wanted) -> Result<u32, Error> {
    let found = link.vrf_table().ok_or_else(|| Error::NotVrf {
        name: link.name.clone(),
        kind: link
            .kind
            .clone()
            .unwrap_or_else(|| "no virtual link".to_owned()),
    })?;
    match wanted.table.filter(|table| *table != found) {
        Some(table) => Err(Error::OtherTable {
            name: link.name.clone(),
            found,
            wanted: table,
        }),
        None => Ok(found),
    }
}

/// The tables that somebody uses: VRFs, rules, routes of either family, and the three that every namespace has.
fn used_tables(container: &Handle) -> Result<BTreeSet<u32>, Error> {
    let mut used: BTreeSet<u32> = (TABLE_DEFAULT..=TABLE_LOCAL).collect();
    used.extend(container.links()?.iter().filter_map(Link::vrf_table));
    used.extend(container.routes()?.iter().map(|route| route.table));
    for ipv6 in [false, true] {
        used.extend(container.rules(ipv6)?.iter().map(|rule| rule.table));
    }
    Ok(used)
}

fn free_table(used: &BTreeSet<u32>) -> Option<u32> {
    (1..=u32::MAX).find(|table| !used.contains(table))
}

impl Choice {
    /// The VRF, up; made or set up if need be, and marked.
    ///
    /// # Errors
    /// [`Error::NoVrf`], or the kernel's refusal.
    pub fn realise(self, transaction: &mut Transaction<Locked>) -> Result<Link, Error> {
        match self {
            Self::Existing(link) => {
                adopt(transaction, &link)?;
                Ok(link)
            }
            Self::New { name, table } => make(transaction, name, table),
        }
    }
}

fn make(transaction: &mut Transaction<Locked>, name: String, table: u32) -> Result<Link, Error> {
    let link = NewLink {
        name,
        kind: NewKind::Vrf { table },
        mtu: None,
        mac: Some(mac(table)),
    };
    match transaction.create_link(&link, transaction) {
        Err(error) if error.is_unsupported() => return Err(Error::NoVrf),
        // What the kernel has refused is not to be taken back: the name may be somebody else's by now.
        Err(refusal @ netlink::Error::Kernel { .. }) => return Err(refusal.into()),
        made => {
            let name = link.name.clone();
            transaction.on_failure(
                format!("remove VRF {name}"),
                move |container| match container.find_link(&name)? {
                    Some(link) => container.remove_link(&link),
                    None => Ok(()),
                },
            );
            made?;
        }
    }
    let vrf = transaction.link(&link.name)?;
    transaction.change_link(&vrf, &LinkChange::new().alias(MADE).up(true))?;
    Ok(vrf)
}

/// Sets up a VRF that was there before, and notes that it is not to go with its last interface. One of ours that an ADD
/// began and did not finish becomes whole.
fn adopt(transaction: &mut Transaction<Locked>, vrf: &Link) -> Result<(), Error> {
    let mut change = LinkChange::new().up(true);
    let mut reverse = LinkChange::new().up(vrf.up);
    if vrf.alias.is_none() {
        change = change.alias(if is_unfinished(vrf) { MADE } else { FOUND });
        reverse = reverse.alias("");
    } else if vrf.up {
        return Ok(());
    }
    let index = vrf.index;
    transaction.on_failure(
        format!("leave VRF {} as it was", vrf.name),
        move |container| container.change_link(&index, &reverse),
    );
    Ok(transaction.change_link(vrf, &change)?)
}

fn mac(table: u32) -> MacAddr {
    let [a, b, c, d] = MAC;
    let [.., high, low] = table.to_be_bytes();
    MacAddr::new([a, b, c, d, high, low])
}

/// Whether this plugin has put a mark on a VRF: it made it, or put an interface into it.
pub fn is_marked(vrf: &Link) -> bool {
    let alias = vrf.alias.as_deref();
    vrf.vrf_table().is_some() && (matches!(alias, Some(MADE | FOUND)) || is_unfinished(vrf))
}

/// Whether it was made by an ADD that was killed.
fn is_unfinished(vrf: &Link) -> bool {
    let mac = vrf.mac.map(MacAddr::octets);
    vrf.alias.is_none() && !vrf.up && mac.is_some_and(|mac| mac.starts_with(&MAC))
}

/// Takes away the VRFs that nobody is in any more: those that this plugin made, and the one without a mark that an
/// interface was just taken out of, which only the reference set can have made. Those that were there before lose
/// the mark.
///
/// # Errors
/// What the kernel refuses; the others are gone on with.
pub fn collect(container: &Handle, released: Option<&Link>) -> Result<(), Error> {
    let links = container.links()?;
    let is_empty = |vrf: &&Link| links.iter().all(|link| link.master != Some(vrf.index));
    let vrfs = links.iter().filter(|link| link.vrf_table().is_some());
    let outcomes = vrfs.filter(is_empty).map(|vrf| match vrf.alias.as_deref() {
        Some(MADE) => container.remove_link(vrf),
        Some(FOUND) => container.change_link(vrf, &LinkChange::new().alias("")),
        None if is_unfinished(vrf) => container.remove_link(vrf),
        None if released.is_some_and(|link| link.index == vrf.index) => container.remove_link(vrf),
        _ => Ok(()),
    });
    Error::join(outcomes.filter_map(Result::err).map(Error::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_table_that_is_free() {
        let reserved: BTreeSet<u32> = (TABLE_DEFAULT..=TABLE_LOCAL).collect();
        let with = |more: &mut dyn Iterator<Item = u32>| {
            let mut used = reserved.clone();
            used.extend(more);
            free_table(&used)
        };
        assert_eq!(with(&mut [].into_iter()), Some(1));
        assert_eq!(with(&mut [1, 2, 4].into_iter()), Some(3));
        assert_eq!(with(&mut [2].into_iter()), Some(1));
        // Those that every namespace has are never chosen.
        assert_eq!(with(&mut (1..253)), Some(256));
        assert_eq!(with(&mut (1..1000)), Some(1000));
    }
}
