//! Chain names and rule comments of the iptables layout.
//!
//! They are an interface: the reference set recomputes them when it deletes, and Nomad's
//! clean-up reads the masquerade comment out of `iptables -S`.

use sha2::{Digest, Sha512};

/// Longest comment the kernel's `comment` match stores, in bytes, without its NUL.
const COMMENT_LIMIT: usize = 255;

/// Chain that FORWARD jumps to; holds the accept rules of single containers.
pub(crate) const FORWARD_CHAIN: &str = "CNI-FORWARD";
/// First of the two chains that keep policed bridges apart.
pub(crate) const ISOLATION_STAGE_1: &str = "CNI-ISOLATION-STAGE-1";
/// Second of the two chains that keep policed bridges apart.
pub(crate) const ISOLATION_STAGE_2: &str = "CNI-ISOLATION-STAGE-2";
/// Chain with one entry rule per container that publishes ports.
pub(crate) const HOSTPORT_DNAT: &str = "CNI-HOSTPORT-DNAT";
/// Chain that puts the masquerade mark on a packet.
pub(crate) const HOSTPORT_SETMARK: &str = "CNI-HOSTPORT-SETMARK";
/// Chain that masquerades marked packets.
pub(crate) const HOSTPORT_MASQ: &str = "CNI-HOSTPORT-MASQ";
/// Chain of entry rules that only very old releases wrote.
pub(crate) const HOSTPORT_SNAT: &str = "CNI-HOSTPORT-SNAT";

/// Comment of the FORWARD jump.
pub(crate) const FORWARD_COMMENT: &str = "CNI firewall plugin rules";
/// Comment of the jump to the administrator's chain.
pub(crate) const ADMIN_COMMENT: &str = "CNI firewall plugin admin overrides";
/// Comment of the rule that accepts connections with our mark.
pub(crate) const KNOWN_COMMENT: &str = "CNI firewall plugin known connections";
/// Comment of the isolation rules that all bridges share.
pub(crate) const ISOLATION_SHARED_COMMENT: &str =
    "CNI firewall plugin rules (ingressPolicy: same-bridge|isolated)";
/// Comment of the isolation rules of a bridge with policy `same-bridge`.
pub(crate) const SAME_BRIDGE_COMMENT: &str =
    "CNI firewall plugin rules (ingressPolicy: same-bridge)";
/// Comment of the isolation rules of a bridge with policy `isolated`.
pub(crate) const ISOLATED_COMMENT: &str = "CNI firewall plugin rules (ingressPolicy: isolated)";
/// Comment of the rule that sets the masquerade mark.
pub(crate) const SETMARK_COMMENT: &str = "CNI portfwd masquerade mark";
/// Comment of the POSTROUTING jump for marked packets.
pub(crate) const MASQ_COMMENT: &str = "CNI portfwd requiring masquerade";

const MASQ_PREFIX: &str = "CNI-";
const DNAT_PREFIX: &str = "CNI-DN-";
const SNAT_PREFIX: &str = "CNI-SN-";
/// Longest chain name all iptables variants accept.
const CHAIN_LENGTH: usize = 28;

/// Chain that masquerades the addresses of one container on one network.
pub(crate) fn masquerade_chain(network: &str, container_id: &str) -> String {
    hashed(MASQ_PREFIX, network, container_id)
}

/// Chain that forwards the published ports of one container on one network.
pub(crate) fn dnat_chain(network: &str, container_id: &str) -> String {
    hashed(DNAT_PREFIX, network, container_id)
}

/// Chain that only very old releases wrote next to [`dnat_chain`].
pub(crate) fn old_snat_chain(network: &str, container_id: &str) -> String {
    hashed(SNAT_PREFIX, network, container_id)
}

fn hashed(prefix: &str, network: &str, container_id: &str) -> String {
    let mut hash = Sha512::new();
    hash.update(network.as_bytes());
    hash.update(container_id.as_bytes());
    let mut name = String::from(prefix);
    for byte in hash.finalize() {
        name.push_str(&format!("{byte:02x}"));
    }
    name.truncate(CHAIN_LENGTH);
    name
}

/// Whether a chain name can be that of a [`masquerade_chain`].
pub(crate) fn is_masquerade_chain(name: &str) -> bool {
    is_hashed(name, MASQ_PREFIX)
}

/// Whether a chain name can be that of a [`dnat_chain`].
pub(crate) fn is_dnat_chain(name: &str) -> bool {
    is_hashed(name, DNAT_PREFIX)
}

fn is_hashed(name: &str, prefix: &str) -> bool {
    name.len() == CHAIN_LENGTH
        && name
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
}

/// Comment on each masquerade rule of one container on one network.
pub(crate) fn masquerade_comment(network: &str, container_id: &str) -> String {
    cut(format!(
        "name: {} id: {}",
        go_quoted(network),
        go_quoted(container_id)
    ))
}

/// Comment on the entry rules of one container that publishes ports.
pub(crate) fn dnat_comment(network: &str, container_id: &str) -> String {
    let whole = format!(
        "dnat name: {} id: {}",
        go_quoted(network),
        go_quoted(container_id)
    );
    if whole.len() <= COMMENT_LIMIT {
        return whole;
    }
    // The reference set cuts to 253 bytes and appends three dots, of which the kernel keeps two.
    let mut short = whole;
    truncate(&mut short, COMMENT_LIMIT - 2);
    short.push_str("..");
    short
}

fn cut(mut comment: String) -> String {
    truncate(&mut comment, COMMENT_LIMIT);
    comment
}

fn truncate(text: &mut String, limit: usize) {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
}

/// Network and container id in a comment made by [`masquerade_comment`] or [`dnat_comment`].
///
/// The id is `None` when the comment was cut inside it.
pub(crate) fn parse_comment(comment: &str) -> Option<(String, Option<String>)> {
    let rest = comment.strip_prefix("dnat ").unwrap_or(comment);
    let (network, rest) = unquoted(rest.strip_prefix("name: ")?)?;
    let id = rest
        .strip_prefix(" id: ")
        .and_then(unquoted)
        .map(|(id, _)| id);
    Some((network, id))
}

/// The text between double quotes with Go's escapes.
fn go_quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Undoes [`go_quoted`] for a leading quoted text; returns what follows it too.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.strip_prefix('"')?.chars();
    loop {
        match chars.next()? {
            '"' => return Some((out, chars.as_str())),
            '\\' => out.push(unescaped(&mut chars)?),
            c => out.push(c),
        }
    }
}

fn unescaped(chars: &mut std::str::Chars<'_>) -> Option<char> {
    Some(match chars.next()? {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'x' => {
            let digits: String = chars.by_ref().take(2).collect();
            char::from(u8::from_str_radix(&digits, 16).ok()?)
        }
        c => c,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chain_names_are_those_of_the_reference_set() {
        assert_eq!(
            masquerade_chain("test", "1234"),
            "CNI-2bbe0c48b91a7d1b8a6753a8"
        );
        assert_eq!(
            masquerade_chain("net1", "c1"),
            "CNI-c2d892b58e87e28a12fe6479"
        );
        assert_eq!(
            masquerade_chain("testalongnamethatdoesnotmakesense", "1234"),
            "CNI-374f33fe84ab0ed84dcdebe3"
        );
        assert_eq!(dnat_chain("pmnet", "ctrA"), "CNI-DN-200274210e915d5940e1a");
        assert_eq!(
            old_snat_chain("pmnet", "ctrA"),
            "CNI-SN-200274210e915d5940e1a"
        );
    }

    #[test]
    fn hashed_names_are_told_from_fixed_ones() {
        assert!(is_masquerade_chain("CNI-2bbe0c48b91a7d1b8a6753a8"));
        assert!(is_dnat_chain("CNI-DN-200274210e915d5940e1a"));
        for fixed in [
            FORWARD_CHAIN,
            HOSTPORT_DNAT,
            ISOLATION_STAGE_1,
            "CNI-DN-x",
            "CNI-",
        ] {
            assert!(
                !is_masquerade_chain(fixed) && !is_dnat_chain(fixed),
                "{fixed}"
            );
        }
        assert!(!is_masquerade_chain("CNI-DN-200274210e915d5940e1a"));
    }

    #[test]
    fn comments_round_trip() {
        assert_eq!(masquerade_comment("net1", "c1"), r#"name: "net1" id: "c1""#);
        assert_eq!(
            dnat_comment("pmnet", "ctrA"),
            r#"dnat name: "pmnet" id: "ctrA""#
        );
        for (network, id) in [
            ("net1", "c1"),
            ("a\"b\\", "tab\there\nline\u{1}"),
            ("ü", "é"),
        ] {
            let both = (network.to_owned(), Some(id.to_owned()));
            assert_eq!(
                parse_comment(&masquerade_comment(network, id)),
                Some(both.clone())
            );
            assert_eq!(parse_comment(&dnat_comment(network, id)), Some(both));
        }
        assert_eq!(parse_comment("something else"), None);
    }

    #[test]
    fn long_comments_are_cut_as_the_kernel_stores_them() {
        let id = "i".repeat(300);
        let dnat = dnat_comment("net", &id);
        assert_eq!(dnat.len(), 255);
        assert!(dnat.ends_with("ii.."));
        assert_eq!(masquerade_comment("net", &id).len(), 255);
        assert_eq!(parse_comment(&dnat), Some(("net".to_owned(), None)));
        assert!(dnat_comment(&"ü".repeat(300), "x").len() <= 255);
    }
}
