//! nf_tables objects that the reference set's plugins leave for an attachment, found by their comments.

use super::attempt::Attempt;
use super::remove::TIMEOUT;
use crate::error::Result;
use crate::intent::Kinds;
use crate::nfnl::{Batch, Family, Rule, Socket};
use crate::owner::{Holder, Owner};

/// The table of masquerade rules, and the chain with one rule per address.
const MASQUERADE: (Family, &str, &str) = (Family::Inet, "cni_plugins_masquerade", "masq_checks");
/// The table of forwarded ports, and the chains with rules of containers.
const HOSTPORTS: &str = "cni_hostport";
const HOSTPORT_CHAINS: [&str; 3] = ["hostports", "hostip_hostports", "masquerading"];
/// The table and the chain that jumps to the checks of a container's MAC.
const SPOOF_TABLE: &str = "nat";
const SPOOF_CHAIN: &str = "PREROUTING";

/// Removes what the reference set made for the owner. Its tables and base chains stay, as it leaves them itself.
pub(super) fn remove(socket: &mut Socket, owner: &Owner, kinds: Kinds) -> Result<()> {
    if kinds.contains(Kinds::MASQUERADE) {
        let (family, table, chain) = MASQUERADE;
        let ours = |rule: &Rule| holder(rule).is_some_and(|holder| holder.is(owner));
        delete(socket, family, table, |rule| {
            rule.chain == chain && ours(rule)
        })?;
    }
    if kinds.contains(Kinds::PUBLISH) {
        for family in [Family::Ip, Family::Ip6] {
            // Its comments hold nothing but the container's id.
            let ours = |rule: &Rule| rule.comment().as_deref() == Some(owner.container_id.as_str());
            let chain = |rule: &Rule| HOSTPORT_CHAINS.contains(&rule.chain.as_str());
            delete(socket, family, HOSTPORTS, |rule| chain(rule) && ours(rule))?;
        }
    }
    if kinds.contains(Kinds::GUARD_MAC) {
        remove_spoof_check(socket, owner)?;
    }
    Ok(())
}

/// Removes the reference set's masquerade rules of a network's lost attachments. Its other rules do not name their
/// network, so nobody can tell whose they are.
pub(super) fn collect(
    socket: &mut Socket,
    network: &str,
    valid: &[Owner],
    kinds: Kinds,
) -> Result<()> {
    if !kinds.contains(Kinds::MASQUERADE) {
        return Ok(());
    }
    let (family, table, chain) = MASQUERADE;
    delete(socket, family, table, |rule| {
        let stale = |holder: Holder| {
            holder.of_network(network) && !valid.iter().any(|owner| holder.is(owner))
        };
        rule.chain == chain && holder(rule).is_some_and(stale)
    })
}

fn holder(rule: &Rule) -> Option<Holder> {
    Holder::parse(&rule.comment()?)
}

/// Deletes the rules of a table that `is_doomed` picks.
fn delete(
    socket: &mut Socket,
    family: Family,
    table: &str,
    is_doomed: impl Fn(&Rule) -> bool,
) -> Result<()> {
    until_gone(socket, table, |batch, socket| {
        for rule in socket
            .rules(family, table, None)?
            .iter()
            .filter(|rule| is_doomed(rule))
        {
            batch.delete_rule(family, table, &rule.chain, rule.handle);
        }
        Ok(())
    })
}

fn remove_spoof_check(socket: &mut Socket, owner: &Owner) -> Result<()> {
    let reference = format!("{}-{}", owner.container_id, owner.ifname);
    let chain = format!("cni-br-iface-{reference}");
    let comment = format!("macspoofchk-{reference}");
    until_gone(socket, SPOOF_TABLE, |batch, socket| {
        let family = Family::Bridge;
        for rule in socket.rules(family, SPOOF_TABLE, Some(SPOOF_CHAIN))? {
            if rule.comment().as_deref() == Some(comment.as_str()) {
                batch.delete_rule(family, SPOOF_TABLE, SPOOF_CHAIN, rule.handle);
            }
        }
        // The first jumps to the second, so they go in this order.
        for name in [chain.clone(), format!("{chain}-mac")] {
            if socket.chain(family, SPOOF_TABLE, &name)?.is_some() {
                batch.delete_chain(family, SPOOF_TABLE, &name);
            }
        }
        Ok(())
    })
}

/// Reads and deletes until nothing is in the way: somebody else may delete the same rules meanwhile.
fn until_gone(
    socket: &mut Socket,
    table: &str,
    fill: impl Fn(&mut Batch, &mut Socket) -> Result<()>,
) -> Result<()> {
    let what = format!("remove rules of the reference set from table {table}");
    let mut attempt = Attempt::new(TIMEOUT);
    loop {
        let mut batch = Batch::new();
        fill(&mut batch, socket)?;
        match socket.commit(batch) {
            Ok(()) => return Ok(()),
            Err(refusal) => attempt.learn(refusal, &what, &Vec::new())?,
        }
    }
}
