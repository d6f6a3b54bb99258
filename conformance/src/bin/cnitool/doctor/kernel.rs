//! The kernel's switches and its version, and the tools that some backends need.

use std::fs;
use std::net::IpAddr;

use conformance::chain::{find_tool, standard_path};
use conformance::facts::addresses;
use conformance::libcni::Cached;
use nix::sys::utsname::uname;

use super::{Finding, Host, text};
use crate::inspect::flag;

/// Plugins that lead a container's packets through the host.
const ROUTED: [&str; 2] = ["bridge", "ptp"];

pub fn examine(host: &Host) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Ok(name) = uname() {
        let release = name.release().to_string_lossy().into_owned();
        findings.push(Finding::note("kernel", release));
    }
    findings.extend(forwarding(host));
    findings.extend(bridge_filtering(host));
    findings.push(tools());
    findings
}

fn setting(path: &str) -> Option<String> {
    let value = fs::read_to_string(format!("/proc/sys/net/{path}")).ok()?;
    Some(value.trim().to_owned())
}

/// ADD switches forwarding on; who switches it off later cuts the containers off.
fn forwarding(host: &Host) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (key, v4) in [
        ("ipv4/ip_forward", true),
        ("ipv6/conf/all/forwarding", false),
    ] {
        if setting(key).is_none_or(|value| value != "0") {
            continue;
        }
        let name = format!("net.{}", key.replace('/', "."));
        let cut = host.live().filter(|cached| is_routed(cached, v4));
        let cut: Vec<String> = cut.map(|one| one.container_id.clone()).collect();
        match cut.first() {
            Some(first) => findings.push(Finding::fault(
                &*name,
                format!(
                    "is 0, so no packet passes between containers and the world ({} attachments, {first} among them)",
                    cut.len()
                ),
                format!("sysctl -w {name}=1, and find out who set it to 0 (sysctl.conf, a firewall's start-up)"),
            )),
            None => findings.push(Finding::note(
                &*name,
                "is 0; the next attachment that needs it switches it on",
            )),
        }
    }
    findings
}

fn is_routed(cached: &Cached, v4: bool) -> bool {
    let has_address = addresses(&cached.result)
        .iter()
        .any(|one| matches!(one.address.ip(), IpAddr::V4(_)) == v4);
    let routed = cached.list().is_some_and(|list| {
        list.plugins.iter().any(|plugin| {
            ROUTED.contains(&plugin.plugin_type.as_str())
                && (plugin.plugin_type == "ptp"
                    || ["isGateway", "isDefaultGateway", "ipMasq"]
                        .iter()
                        .any(|key| flag(plugin, key)))
        })
    });
    has_address && routed
}

/// Rules of iptables see what goes from one port of a bridge to another only with br_netfilter.
fn bridge_filtering(host: &Host) -> Vec<Finding> {
    let isolated = host.plugins().into_iter().find(|plugin| {
        plugin.plugin_type == "firewall"
            && text(plugin, "ingressPolicy").as_deref() == Some("isolated")
            && match text(plugin, "backend").as_deref() {
                Some("iptables") => true,
                Some("nftables" | "firewalld") => false,
                _ => super::filter::host_uses_iptables(host),
            }
    });
    if isolated.is_none() {
        return Vec::new();
    }
    const SUBJECT: &str = "br_netfilter";
    const WHY: &str = "the ingressPolicy \"isolated\" of firewall's iptables backend does not keep neighbours on one bridge apart";
    match setting("bridge/bridge-nf-call-iptables").as_deref() {
        None => vec![Finding::fault(
            SUBJECT,
            format!("is not loaded, so {WHY}"),
            "modprobe br_netfilter, or set \"backend\": \"nftables\"",
        )],
        Some("0") => vec![Finding::fault(
            SUBJECT,
            format!("is off (net.bridge.bridge-nf-call-iptables is 0), so {WHY}"),
            "sysctl -w net.bridge.bridge-nf-call-iptables=1, or set \"backend\": \"nftables\"",
        )],
        Some(_) => Vec::new(),
    }
}

fn tools() -> Finding {
    let path = standard_path();
    let all = [
        "iptables",
        "iptables-nft",
        "iptables-legacy",
        "nft",
        "firewall-cmd",
    ];
    let found: Vec<&str> = all
        .into_iter()
        .filter(|name| find_tool(name, &path).is_some())
        .collect();
    let text = if found.is_empty() {
        "none; the nftables backend needs none".to_owned()
    } else {
        found.join(", ")
    };
    Finding::note("tools", text)
}
