//! Requests in readable form, for the log of whoever asks.

use std::fmt::{Arguments, Write};
use std::sync::OnceLock;

use netlink_packet_core::NLA_TYPE_MASK;

use crate::nla::attributes;
use crate::request::Request;
use crate::socket::Verdict;

/// Takes a line about a message.
type Hook = fn(Arguments<'_>);

static HOOK: OnceLock<Hook> = OnceLock::new();

/// Longer values are cut.
const SHOWN: usize = 32;
/// The netlink header in front of a message, in bytes.
const HEADER: usize = 16;

/// From now on every request of this process is told to `hook`, with the kernel's verdict. Only the first call counts.
pub fn on_message(hook: fn(Arguments<'_>)) {
    let _ = HOOK.set(hook);
}

/// Tells of a request that the kernel has judged.
pub(crate) fn tell(request: &Request, verdict: Option<&Verdict>) {
    let Some(hook) = HOOK.get() else {
        return;
    };
    let mut bytes = Vec::new();
    request.encode(0, &mut bytes);
    let end = match verdict {
        None => "ok".to_owned(),
        Some(verdict) => match &verdict.message {
            Some(text) => format!("{} ({text})", verdict.errno),
            None => verdict.errno.to_string(),
        },
    };
    hook(format_args!(
        "netlink: {} {}: {} -> {end}",
        request.what,
        request.object,
        message_text(&bytes)
    ));
}

/// Type, flags and attributes of a message in wire form.
fn message_text(bytes: &[u8]) -> String {
    let number = |at: usize| {
        let pair = bytes.get(at..at + 2).and_then(|two| two.first_chunk::<2>());
        pair.map_or(0, |two| u16::from_ne_bytes(*two))
    };
    let kind = number(4);
    let (name, header) = type_of(kind);
    let body = bytes.get(HEADER + header..).unwrap_or_default();
    let mut text = format!("{name} flags={:#x}", number(6));
    if kind / 4 == 4 {
        // ifinfomsg: the index stands behind family, padding and device type.
        let index = bytes.get(HEADER + 4..).and_then(|rest| rest.first_chunk());
        let index = index.map_or(0, |four| i32::from_ne_bytes(*four));
        if index != 0 {
            // Writing to a string cannot fail.
            let _ = write!(text, " index={index}");
        }
    }
    let names = if kind / 4 == 4 { &LINK[..] } else { &[][..] };
    attributes_text(body, names, &mut text);
    text
}

/// Attributes of links that one wants to know by name.
const LINK: [(u16, &str); 8] = [
    (1, "address"),
    (3, "name"),
    (4, "mtu"),
    (5, "link"),
    (10, "master"),
    (18, "info"),
    (20, "alias"),
    (28, "netns_fd"),
];

/// Name of a message type, and the bytes between the netlink header and the attributes.
fn type_of(kind: u16) -> (String, usize) {
    let verb = ["NEW", "DEL", "GET", "SET"];
    let verb = verb.get(usize::from(kind % 4)).copied().unwrap_or_default();
    let (object, header) = match kind / 4 {
        4 => ("LINK", 16),
        5 => ("ADDR", 8),
        6 => ("ROUTE", 12),
        7 => ("NEIGH", 12),
        8 => ("RULE", 12),
        9 => ("QDISC", 20),
        10 => ("TCLASS", 20),
        11 => ("TFILTER", 20),
        20 => ("NETCONF", 4),
        _ => return (format!("type {kind}"), 0),
    };
    (format!("RTM_{verb}{object}"), header)
}

fn attributes_text(bytes: &[u8], names: &[(u16, &str)], text: &mut String) {
    for (kind, value) in attributes(bytes) {
        let name = names
            .iter()
            .find(|(known, _)| *known == kind & NLA_TYPE_MASK);
        let name = name.map_or_else(|| kind.to_string(), |(_, name)| (*name).to_owned());
        let _ = write!(text, " {name}=");
        if is_nested(value) {
            text.push('{');
            attributes_text(value, &[], text);
            text.push_str(" }");
        } else {
            text.push_str(&value_text(value));
        }
    }
}

/// Whether a value is made of attributes from its first byte to its last. Not every nest is marked as one.
fn is_nested(mut value: &[u8]) -> bool {
    if value.len() < 8 {
        return false;
    }
    while let Some([l0, l1, k0, k1]) = value.first_chunk::<4>() {
        let length = usize::from(u16::from_ne_bytes([*l0, *l1]));
        let kind = u16::from_ne_bytes([*k0, *k1]) & NLA_TYPE_MASK;
        if length < 4 || length > value.len() || kind > 255 {
            return false;
        }
        value = value.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    value.is_empty()
}

/// Text in quotes, an address as one writes it, else hexadecimal digits.
fn value_text(value: &[u8]) -> String {
    let text = value.strip_suffix(&[0]).unwrap_or(value);
    let printable = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
    if text.len() > 1 && text.iter().all(printable) {
        return format!("{:?}", String::from_utf8_lossy(text));
    }
    let shown = value.get(..SHOWN).unwrap_or(value);
    let mut hex: String = shown.iter().map(|byte| format!("{byte:02x}")).collect();
    if shown.len() < value.len() {
        hex.push_str("..");
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_can_be_read() {
        let mut bytes = vec![0, 0, 0, 0, 16, 0, 5, 6, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend([9, 0, 3, 0, b'e', b't', b'h', b'0', 0, 0, 0, 0]);
        bytes.extend([16, 0, 18, 0, 9, 0, 1, 0, b'v', b'e', b't', b'h', 0, 0, 0, 0]);
        bytes.extend([8, 0, 4, 0, 120, 5, 0, 0]);
        assert_eq!(
            message_text(&bytes),
            "RTM_NEWLINK flags=0x605 index=7 name=\"eth0\" info={ 1=\"veth\" } mtu=78050000"
        );
        // Nothing in it may stop it.
        for end in 0..bytes.len() {
            let _ = message_text(bytes.get(..end).unwrap_or_default());
        }
    }
}
