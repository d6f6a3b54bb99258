//! Chains of others that drop forwarded packets whatever our own accept.

use crate::nfnl::consts::hook;
use crate::nfnl::{Chain, Family, Socket};
use crate::nft::TABLE;

/// `NF_DROP` as a chain's policy.
const DROP: u32 = 0;

/// The base chains of nf_tables that drop what is forwarded and not accepted by their own rules, but for ours and for
/// iptables' FORWARD, to which rules can be added. A listing that fails names none.
pub(crate) fn chains(socket: &mut Socket) -> Vec<String> {
    let families = [Family::Inet, Family::Ip, Family::Ip6];
    let all = families
        .into_iter()
        .flat_map(|family| socket.chains(family, None).unwrap_or_default());
    all.filter(is_obstacle)
        .map(|chain| format!("{} {} {}", chain.family.name(), chain.table, chain.name))
        .collect()
}

fn is_obstacle(chain: &Chain) -> bool {
    let drops =
        chain.policy == Some(DROP) && chain.hook.is_some_and(|at| at.number == hook::FORWARD);
    let is_iptables =
        chain.family != Family::Inet && chain.table == "filter" && chain.name == "FORWARD";
    drops && chain.table != TABLE && !is_iptables
}
