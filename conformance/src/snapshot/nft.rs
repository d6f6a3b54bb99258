//! The nftables ruleset of the thread's namespace, straight from the kernel.
//!
//! Attribute and message numbers are those of `linux/netfilter/nf_tables.h`.

use std::io;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer,
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};

use super::item::Item;
use super::nla::{attributes, find, number, plain, show, text};
use crate::error::{Context, Error, Result};

const NFTABLES: u16 = 10 << 8;
const GETTABLE: u16 = NFTABLES | 1;
const GETCHAIN: u16 = NFTABLES | 4;
const GETRULE: u16 = NFTABLES | 7;
const GETSET: u16 = NFTABLES | 10;
const GETSETELEM: u16 = NFTABLES | 13;
const GETOBJ: u16 = NFTABLES | 19;

const EOPNOTSUPP: i32 = 95;

/// One object of a dump: its address family and its attributes.
struct Object {
    family: u8,
    attributes: Vec<u8>,
}

pub(super) fn read() -> Result<Vec<Item>> {
    let socket = open()?;
    // A writer in between makes the kernel flag the dump; what is read must be of one moment.
    loop {
        if let Some(items) = read_once(&socket)? {
            return Ok(items);
        }
    }
}

fn open() -> Result<Socket> {
    let mut socket = Socket::new(NETLINK_NETFILTER).doing(|| "open a netfilter socket")?;
    socket.bind_auto().doing(|| "bind a netfilter socket")?;
    Ok(socket)
}

/// `None` when a writer came in between.
fn read_once(socket: &Socket) -> Result<Option<Vec<Item>>> {
    let mut items = Vec::new();
    for (request, describe) in [
        (GETTABLE, table as fn(&Object) -> Item),
        (GETCHAIN, chain),
        (GETRULE, rule),
        (GETOBJ, object),
    ] {
        let Some(found) = dump(socket, request, 0, &[])? else {
            return Ok(None);
        };
        items.extend(found.iter().map(describe));
    }
    let Some(sets) = dump(socket, GETSET, 0, &[])? else {
        return Ok(None);
    };
    for set in &sets {
        let Some(elements) = elements(socket, set)? else {
            return Ok(None);
        };
        items.push(set_item(set));
        items.extend(elements);
    }
    Ok(Some(items))
}

fn table_name(object: &Object, attribute: u16) -> String {
    let family = match object.family {
        1 => "inet",
        2 => "ip",
        3 => "arp",
        5 => "netdev",
        7 => "bridge",
        10 => "ip6",
        _ => "unknown",
    };
    format!("{family} {}", text(&object.attributes, attribute))
}

fn table(object: &Object) -> Item {
    Item::Table(table_name(object, 1))
}

fn chain(object: &Object) -> Item {
    let bytes = &object.attributes;
    let hook = find(bytes, 4).map(|hook| {
        let priority = number(hook, 2).unwrap_or_default().cast_signed();
        let policy = if number(bytes, 5) == Some(0) {
            "drop"
        } else {
            "accept"
        };
        let place = number(hook, 1).unwrap_or_default();
        format!(
            "{} hook {place} priority {priority}; policy {policy}",
            text(bytes, 7)
        )
    });
    Item::Chain {
        table: table_name(object, 1),
        name: text(bytes, 3),
        hook: hook.unwrap_or_default(),
    }
}

fn rule(object: &Object) -> Item {
    let bytes = &object.attributes;
    let mut words: Vec<String> = find(bytes, 4)
        .into_iter()
        .flat_map(attributes)
        .map(|(_, expression)| expression_text(expression))
        .collect();
    words.extend(find(bytes, 7).map(|comment| format!("comment {}", user_data(comment))));
    Item::Rule {
        table: table_name(object, 1),
        chain: text(bytes, 2),
        text: words.join(" "),
    }
}

fn object(object: &Object) -> Item {
    let kind = number(&object.attributes, 3).unwrap_or_default();
    let name = text(&object.attributes, 2);
    Item::Object {
        table: table_name(object, 1),
        name: format!("{name} (type {kind})"),
    }
}

fn set_item(object: &Object) -> Item {
    Item::Set {
        table: table_name(object, 1),
        name: set_name(object),
    }
}

/// The kernel numbers anonymous sets anew for every rule.
fn set_name(object: &Object) -> String {
    let name = text(&object.attributes, 2);
    let anonymous = number(&object.attributes, 3).is_some_and(|flags| flags & 1 != 0);
    if anonymous {
        name.trim_end_matches(|c: char| c.is_ascii_digit())
            .to_owned()
    } else {
        name
    }
}

fn elements(socket: &Socket, set: &Object) -> Result<Option<Vec<Item>>> {
    let mut request = Vec::new();
    for (kind, attribute) in [(1, 1), (2, 2)] {
        push(
            &mut request,
            kind,
            find(&set.attributes, attribute).unwrap_or_default(),
        );
    }
    let Some(found) = dump(socket, GETSETELEM, set.family, &request)? else {
        return Ok(None);
    };
    let lists = found
        .iter()
        .filter_map(|object| find(&object.attributes, 3));
    let item = |(_, element): (u16, &[u8])| Item::Element {
        table: table_name(set, 1),
        set: set_name(set),
        text: element_text(element),
    };
    Ok(Some(lists.flat_map(attributes).map(item).collect()))
}

fn element_text(element: &[u8]) -> String {
    let mut words = Vec::new();
    for (kind, value) in attributes(element) {
        match kind {
            1 => words.push(format!("key {}", data(value))),
            2 => words.push(format!(": {}", data(value))),
            3 => words.push(format!("flags {}", show(value))),
            6 => words.push(format!("comment {}", user_data(value))),
            10 => words.push(format!("to {}", data(value))),
            // Timers, counters, handles.
            _ => {}
        }
    }
    words.join(" ")
}

/// A data attribute: a plain value or a verdict.
fn data(bytes: &[u8]) -> String {
    attributes(bytes)
        .map(|(kind, value)| match kind {
            1 => value.iter().map(|byte| format!("{byte:02x}")).collect(),
            _ => verdict(value),
        })
        .collect::<Vec<String>>()
        .join(" ")
}

fn verdict(bytes: &[u8]) -> String {
    let code = number(bytes, 1).unwrap_or_default().cast_signed();
    let name = match code {
        0 => "drop",
        1 => "accept",
        -1 => "continue",
        -3 => "jump",
        -4 => "goto",
        -5 => "return",
        _ => "verdict",
    };
    [name.to_owned(), text(bytes, 2)]
        .join(" ")
        .trim_end()
        .to_owned()
}

/// Comments are stored as a list of one-byte kind, one-byte length and value.
fn user_data(bytes: &[u8]) -> String {
    match bytes {
        [0, length, value @ ..] => plain(value.get(..usize::from(*length)).unwrap_or(value)),
        // The compatibility layer of iptables writes the bare text.
        other => show(other),
    }
}

fn expression_text(expression: &[u8]) -> String {
    let name = text(expression, 1);
    let body = find(expression, 2).unwrap_or_default();
    if name == "counter" {
        return name;
    }
    let mut words = vec![name.clone()];
    for (kind, value) in attributes(body) {
        let shown = match (name.as_str(), kind) {
            ("lookup", 1) => plain(value)
                .trim_end_matches(|c: char| c.is_ascii_digit())
                .to_owned(),
            ("immediate", 2) | ("cmp", 3) | ("bitwise", 4 | 5) => data(value),
            _ => show(value),
        };
        words.push(if shown.is_empty() {
            format!("{kind}")
        } else {
            format!("{kind}={shown}")
        });
    }
    format!("[{}]", words.join(" "))
}

fn push(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(value.len() + 4).unwrap_or(u16::MAX);
    message.extend_from_slice(&length.to_ne_bytes());
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

/// Asks for every object of a kind; `None` when a writer came in between.
fn dump(socket: &Socket, kind: u16, family: u8, body: &[u8]) -> Result<Option<Vec<Object>>> {
    let asking = || format!("dump nftables objects ({kind:#x})");
    // nfgenmsg: family, version, resource.
    let mut payload = vec![family, 0, 0, 0];
    payload.extend_from_slice(body);
    let length = u32::try_from(16 + payload.len()).unwrap_or(u32::MAX);
    let mut message = length.to_ne_bytes().to_vec();
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(&payload);
    socket
        .send_to(&message, &SocketAddr::new(0, 0), 0)
        .doing(asking)?;

    let mut objects = Vec::new();
    let mut interrupted = false;
    loop {
        let (datagram, _) = socket.recv_from_full().doing(asking)?;
        let mut rest = datagram.as_slice();
        while !rest.is_empty() {
            let header = NetlinkBuffer::new_checked(rest).map_err(|error| Error::Malformed {
                what: format!("{}: {error}", asking()),
            })?;
            interrupted |= header.flags() & NLM_F_DUMP_INTR != 0;
            match header.message_type() {
                NLMSG_DONE => return Ok((!interrupted).then_some(objects)),
                NLMSG_ERROR => return refused(header.payload(), objects).doing(asking),
                _ => objects.extend(object_of(header.payload())),
            }
            let step = usize::try_from(header.length())
                .unwrap_or(usize::MAX)
                .next_multiple_of(4);
            rest = rest.get(step..).unwrap_or_default();
        }
    }
}

fn object_of(payload: &[u8]) -> Option<Object> {
    Some(Object {
        family: *payload.first()?,
        attributes: payload.get(4..)?.to_vec(),
    })
}

/// A kernel without nf_tables has no rules; any other refusal is a failure.
fn refused(payload: &[u8], objects: Vec<Object>) -> io::Result<Option<Vec<Object>>> {
    let code = payload
        .first_chunk()
        .map_or(0, |bytes| i32::from_ne_bytes(*bytes));
    match -code {
        EOPNOTSUPP => Ok(Some(objects)),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}
