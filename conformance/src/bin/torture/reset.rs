//! Making a host as fresh as it was, whatever a network has left on it.

use std::fs;
use std::path::Path;

use conformance::error::Context;
use conformance::net::{Host, UPLINK};
use conformance::snapshot::{Item, Snapshot};
use conformance::{Error, Result};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};

/// Removes links, packet filter tables and files, and sets the settings of `fresh` again.
///
/// # Errors
/// When the host is not the same as `fresh` then.
pub fn reset(host: &Host, fresh: &Snapshot) -> Result<()> {
    // The end of a pair goes with the other, so every removal may come too late.
    loop {
        let links = host.rtnl().links()?;
        let other = links
            .iter()
            .find(|link| link.name != "lo" && link.name != UPLINK);
        let Some(link) = other else { break };
        host.rtnl().delete_link(&link.name)?;
    }
    flush_tables()?;
    remove_files(host, fresh)?;
    // A switch for all interfaces sets others with it, so the second round may find some changed.
    for _ in 0..2 {
        restore_settings(host, fresh)?;
    }
    let left = fresh.diff(&Snapshot::take(host)?);
    if left.is_empty() {
        Ok(())
    } else {
        Err(Error::unexpected("a fresh host", format!("\n{left}")))
    }
}

fn restore_settings(host: &Host, fresh: &Snapshot) -> Result<()> {
    for item in &fresh.diff(&Snapshot::take(host)?).removed {
        if let Item::Sysctl { key, value } = item {
            host.sysctl(key, value)?;
        }
    }
    Ok(())
}

/// Removes what `fresh` did not have, the deepest first.
fn remove_files(host: &Host, fresh: &Snapshot) -> Result<()> {
    for item in fresh.diff(&Snapshot::take(host)?).added.iter().rev() {
        let Item::File { path, .. } = item else {
            continue;
        };
        let path = Path::new(path);
        let removed = if path.is_dir() {
            fs::remove_dir(path)
        } else {
            fs::remove_file(path)
        };
        removed.doing(|| format!("remove {}", path.display()))?;
    }
    Ok(())
}

/// Removes every table of every family: `NFT_MSG_DELTABLE` without a name, in a batch
/// (`linux/netfilter/nfnetlink.h`, `nf_tables.h`).
fn flush_tables() -> Result<()> {
    const BATCH_BEGIN: u16 = 16;
    const BATCH_END: u16 = 17;
    const NFTABLES: u16 = 10;
    const DELTABLE: u16 = NFTABLES << 8 | 2;
    let flushing = || "remove all tables of nf_tables";
    let mut socket = Socket::new(NETLINK_NETFILTER).doing(flushing)?;
    socket.bind_auto().doing(flushing)?;
    let mut batch = message(BATCH_BEGIN, 1, 1, NFTABLES);
    batch.extend(message(DELTABLE, 1 | 4, 2, 0));
    batch.extend(message(BATCH_END, 1, 3, NFTABLES));
    socket
        .send_to(&batch, &SocketAddr::new(0, 0), 0)
        .doing(flushing)?;
    let (answer, _) = socket.recv_from_full().doing(flushing)?;
    // An error of 0 acknowledges.
    match answer.get(16..20) {
        Some([0, 0, 0, 0]) => Ok(()),
        _ => Err(Error::unexpected(
            "an acknowledgement",
            format!("{answer:?}"),
        )),
    }
}

/// `struct nlmsghdr` and `struct nfgenmsg`.
fn message(kind: u16, flags: u16, sequence: u32, resource: u16) -> Vec<u8> {
    let mut bytes = 20_u32.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend([0, 0]);
    bytes.extend(resource.to_be_bytes());
    bytes
}
