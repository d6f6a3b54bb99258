//! What is done to the packet filter, in readable form, for the log of whoever asks.

use std::fmt::Arguments;
use std::sync::OnceLock;

use super::consts::NFNL_SUBSYS_NFTABLES;
use super::message::{Family, Request};

/// Takes a line about a message.
type Hook = fn(Arguments<'_>);

static HOOK: OnceLock<Hook> = OnceLock::new();

/// Names of the nf_tables messages, by number (`linux/netfilter/nf_tables.h`).
const NAMES: [&str; 15] = [
    "NEWTABLE",
    "GETTABLE",
    "DELTABLE",
    "NEWCHAIN",
    "GETCHAIN",
    "DELCHAIN",
    "NEWRULE",
    "GETRULE",
    "DELRULE",
    "NEWSET",
    "GETSET",
    "DELSET",
    "NEWSETELEM",
    "GETSETELEM",
    "DELSETELEM",
];

/// From now on every transaction and every tool of the packet filter is told to `hook`. Only the first call counts.
pub fn on_message(hook: fn(Arguments<'_>)) {
    let _ = HOOK.set(hook);
}

/// Tells something, if anybody listens.
pub(crate) fn tell(text: impl FnOnce() -> String) {
    if let Some(hook) = HOOK.get() {
        hook(format_args!("{}", text()));
    }
}

/// The message's name, and the table and object that it is about.
pub(super) fn request_text(request: &Request) -> String {
    let kind = usize::from(request.kind & 0xff);
    let of_nftables = request.kind >> 8 == u16::from(NFNL_SUBSYS_NFTABLES);
    let name = NAMES.get(kind).copied().filter(|_| of_nftables);
    let Some(name) = name else {
        return format!("type {:#x}", request.kind);
    };
    let family = Family::from_number(request.family).name();
    // Tables, chains, rules, sets and elements: attribute 1 is the table (of a set's message, too), 2 or 3 the name.
    let at = if name.ends_with("CHAIN") { 3 } else { 2 };
    let word = |kind: u16| {
        request
            .attrs
            .reader()
            .get(kind)
            .map(|attribute| attribute.text())
    };
    let mut words = vec![name.to_owned(), family.to_owned()];
    words.extend(word(1));
    if !name.ends_with("TABLE") {
        words.extend(word(at));
    }
    words.join(" ")
}
