//! The note that a writer leaves in the lock file while its rules have no owner yet.
//!
//! Rules that admit an address get their owner after `iptables-restore` has made them ([`super::tag`]). A writer that
//! is killed in between would leave rules that nobody can attribute. So it first writes down whose rules they are
//! going to be: one line with the owner's comment, one line per address, and an empty line. Whoever has the lock next,
//! or is about to remove rules of that owner, finishes its work.

use std::net::IpAddr;

use super::BACKEND;
use super::tag::{self, Which};
use crate::carrier::Context;
use crate::error::Result;
use crate::lock::{Lock, peek};
use crate::netfilter::ApplyOptions;
use crate::owner::{Holder, Owner};

/// Whose rules for which addresses are being made.
#[derive(Debug, PartialEq, Eq)]
struct Note {
    comment: String,
    addresses: Vec<IpAddr>,
}

impl Note {
    /// `None` for anything but a whole note.
    fn parse(text: &str) -> Option<Self> {
        let (comment, rest) = text.strip_suffix("\n\n")?.split_once('\n')?;
        let addresses: Option<_> = rest.lines().map(|line| line.parse().ok()).collect();
        Some(Self {
            comment: comment.to_owned(),
            addresses: addresses?,
        })
    }

    fn text(&self) -> String {
        let lines = self.addresses.iter().map(|address| format!("{address}\n"));
        format!("{}\n{}\n", self.comment, lines.collect::<String>())
    }
}

/// Notes down that the owner's rules for these addresses are about to be made.
pub(crate) fn begin(lock: &Lock, owner: &Owner, addresses: &[IpAddr]) -> Result<()> {
    let note = Note {
        comment: owner.comment(),
        addresses: addresses.to_vec(),
    };
    lock.write(&note.text())
}

/// Every rule has its owner, or there is none.
pub(crate) fn end(lock: &Lock) -> Result<()> {
    lock.write("")
}

/// Finishes what the last holder of the lock left undone.
pub(crate) fn finish(context: &mut Context<'_>, lock: &Lock) -> Result<()> {
    let left = lock.read()?;
    if let Some(note) = Note::parse(&left) {
        tag::write(context, &note.comment, &note.addresses, Which::Untagged)?;
    }
    if left.is_empty() { Ok(()) } else { end(lock) }
}

/// The same without the lock, if it was left undone by somebody whose rules the caller is going to remove.
pub(crate) fn finish_for(
    context: &mut Context<'_>,
    concerned: impl Fn(&Holder) -> bool,
) -> Result<()> {
    let holder = Note::parse(&peek(BACKEND)).and_then(|note| Holder::parse(&note.comment));
    if holder.is_some_and(|holder| concerned(&holder)) {
        let lock = Lock::take(BACKEND, ApplyOptions::default().timeout)?;
        finish(context, &lock)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_back_and_half_of_one_is_none() {
        let note = Note {
            comment: Owner::new("net", "c1", "eth0").comment(),
            addresses: vec!["10.1.0.2".parse().unwrap(), "fd00::2".parse().unwrap()],
        };
        let text = note.text();
        for (end, _) in text.char_indices() {
            assert_eq!(Note::parse(&text[..end]), None, "{end}");
        }
        assert_eq!(Note::parse(&text), Some(note));
    }
}
