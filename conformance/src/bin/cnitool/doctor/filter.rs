//! Other people's packet filters.

use conformance::snapshot::Item;

use super::{Finding, Host, text};

/// `NF_INET_FORWARD` of `linux/netfilter.h`, as snapshots print it.
const FORWARD_HOOK: &str = "hook 2 ";
/// Our own tables.
const OWN: [&str; 2] = ["inet ferrule", "bridge ferrule"];

pub fn examine(host: &Host) -> Vec<Finding> {
    let mut findings = closed(host);
    findings.extend(by_itself(host));
    findings.extend(mixed(host));
    findings
}

/// Whether iptables filters what this host forwards, so that the firewall plugin takes its chains.
pub fn host_uses_iptables(host: &Host) -> bool {
    host.items.iter().any(|item| match item {
        Item::Chain { table, name, hook } => {
            table == "ip filter" && name == "FORWARD" && !hook.is_empty()
        }
        Item::Xtables { table, .. } => table == "ip filter",
        _ => false,
    })
}

/// Which backend `firewall` takes where a list names none: another plugin's iptables rules may change it.
fn by_itself(host: &Host) -> Option<Finding> {
    let lists: Vec<&str> = host
        .lists()
        .filter(|list| {
            let mut plugins = list.plugins.iter();
            plugins.any(|one| one.plugin_type == "firewall" && text(one, "backend").is_none())
        })
        .map(|list| list.name.as_str())
        .collect();
    if lists.is_empty() || !host_uses_iptables(host) {
        return None;
    }
    Some(Finding::note(
        "firewall",
        format!(
            "takes its iptables backend in {} (unless firewalld runs), because this host has an iptables FORWARD chain; \
             \"backend\" decides otherwise",
            lists.join(", ")
        ),
    ))
}

/// A drop in one table cannot be lifted in another.
fn closed(host: &Host) -> Vec<Finding> {
    let mut findings = Vec::new();
    for item in &host.items {
        match item {
            Item::Chain { table, name, hook } if hook.contains(FORWARD_HOOK) => {
                findings.extend(closed_chain(host, table, name, hook));
            }
            Item::Xtables { table, line } if line.starts_with(":FORWARD DROP") => {
                findings.push(closed_iptables(host, &format!("legacy {table}")));
            }
            _ => {}
        }
    }
    findings
}

fn closed_chain(host: &Host, table: &str, name: &str, hook: &str) -> Option<Finding> {
    let by_policy = hook.ends_with("policy drop");
    if OWN.contains(&table) || !(by_policy || ends_in_drop(host, table, name)) {
        return None;
    }
    if (table == "ip filter" || table == "ip6 filter") && name == "FORWARD" {
        return Some(closed_iptables(host, table));
    }
    let how = if by_policy {
        "by its policy"
    } else {
        "by its last rule"
    };
    Some(Finding::fault(
        format!("nft table {table}"),
        format!(
            "its chain {name} drops forwarded packets {how}, and no plugin can lift a drop of another table"
        ),
        format!(
            "accept the containers' traffic there, for instance: nft insert rule {table} {name} iifname \"cni*\" accept; \
             and ct mark and 0x20000000 == 0x20000000 accept for published ports"
        ),
    ))
}

/// A FORWARD chain of iptables is where the firewall plugin can put its accepts, if it is asked to.
fn closed_iptables(host: &Host, table: &str) -> Finding {
    let admitted = host.items.iter().any(|item| match item {
        Item::Chain { name, .. } => name == "CNI-FORWARD",
        Item::Xtables { line, .. } => line.starts_with(":CNI-FORWARD "),
        _ => false,
    });
    let lists: Vec<&str> = host
        .lists()
        .filter(|list| {
            let mut plugins = list.plugins.iter();
            !plugins.any(|plugin| plugin.plugin_type == "firewall")
        })
        .map(|list| list.name.as_str())
        .collect();
    let subject = format!("iptables table {table}");
    if lists.is_empty() && admitted {
        return Finding::note(
            subject,
            "FORWARD drops what nobody accepts; firewall accepts containers in CNI-FORWARD",
        );
    }
    let problem = "the policy of FORWARD is DROP";
    if lists.is_empty() {
        return Finding::note(
            subject,
            format!("{problem}; firewall accepts containers in CNI-FORWARD when they come"),
        );
    }
    Finding::fault(
        subject,
        format!(
            "{problem}, and no plugin lets containers through in the networks {}",
            lists.join(", ")
        ),
        "add {\"type\": \"firewall\"} to the list, or accept the containers' traffic there",
    )
}

/// Whether the last rule of a chain drops whatever comes to it.
fn ends_in_drop(host: &Host, table: &str, chain: &str) -> bool {
    let mut rules = host.items.iter().filter_map(|item| match item {
        Item::Rule {
            table: of,
            chain: in_chain,
            text,
        } if of == table && in_chain == chain => Some(text),
        _ => None,
    });
    rules.next_back().is_some_and(|text| {
        let plain = text.replace("counter", "");
        let plain = plain.trim();
        plain.starts_with("[immediate") && plain.contains("drop") && plain.matches('[').count() == 1
    })
}

/// Rules of legacy iptables and of nf_tables are both obeyed, each without knowledge of the other.
fn mixed(host: &Host) -> Vec<Finding> {
    let mut legacy: Vec<&str> = host
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Xtables { table, line } if line.starts_with("-A ") => Some(table.as_str()),
            Item::Xtables { table, line } if line.starts_with(':') && line.contains(" DROP") => {
                Some(table.as_str())
            }
            _ => None,
        })
        .collect();
    legacy.dedup();
    let nft: Vec<&str> = host
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Table(name) => Some(name.as_str()),
            _ => None,
        })
        .collect();
    if legacy.is_empty() || nft.is_empty() {
        return Vec::new();
    }
    vec![Finding::fault(
        "legacy iptables",
        format!(
            "there are rules of legacy xtables (tables {}) beside those of nftables (tables {}): a packet must pass both, \
             and port conflicts between them are not seen",
            legacy.join(", "),
            nft.join(", ")
        ),
        "move to one of them: iptables-legacy-save shows what is there, update-alternatives --set iptables \
         /usr/sbin/iptables-nft makes the tools agree; then flush the legacy tables",
    )]
}
