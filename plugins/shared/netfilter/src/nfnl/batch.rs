//! A transaction: messages the kernel carries out together or not at all.

use std::fmt;
use std::io;

use super::attr::Writer;
use super::consts::{LIST_ELEM, NFNL_SUBSYS_NFTABLES, chain, expr, flag, msg, rule};
use super::message::{Family, Request};
use super::objects::{Expr, Rule};
use super::socket::Ack;
use super::trace::request_text;
use crate::error::Error;

const BATCH_BEGIN: u8 = 0x10;
const BATCH_END: u8 = 0x11;
/// NFNL_BATCH_GENID.
const GENERATION: u16 = 1;

impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.dry_run { "trial" } else { "transaction" };
        let messages: Vec<String> = self.requests.iter().map(request_text).collect();
        write!(f, "{kind} of {}: {}", messages.len(), messages.join("; "))
    }
}

/// Collects the messages of one transaction.
#[derive(Debug, Default, Clone)]
pub struct Batch {
    generation: Option<u32>,
    requests: Vec<Request>,
    dry_run: bool,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty batch that is refused (ERESTART) unless the ruleset is still of this generation.
    pub fn at_generation(generation: u32) -> Self {
        Self {
            generation: Some(generation),
            ..Self::default()
        }
    }

    /// An empty batch that the kernel checks as if it were to be carried out, and then forgets.
    pub fn dry_run() -> Self {
        Self {
            dry_run: true,
            ..Self::default()
        }
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Number of messages.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Adds a message and returns its index, which [`Refusal`] refers to.
    pub fn push(&mut self, request: Request) -> usize {
        self.requests.push(request);
        self.requests.len() - 1
    }

    /// Deletes a rule.
    pub fn delete_rule(&mut self, family: Family, table: &str, chain: &str, handle: u64) -> usize {
        self.push(Request::nftables(msg::DELRULE, family, 0).with(|w| {
            w.text(rule::TABLE, table)
                .text(rule::CHAIN, chain)
                .u64(rule::HANDLE, handle);
        }))
    }

    /// Adds a rule at the end of a chain.
    pub fn append_rule(
        &mut self,
        family: Family,
        (table, chain): (&str, &str),
        exprs: &[Expr],
        userdata: &[u8],
    ) -> usize {
        let flags = flag::CREATE | flag::APPEND;
        self.push(Request::nftables(msg::NEWRULE, family, flags).with(|w| {
            w.text(rule::TABLE, table).text(rule::CHAIN, chain);
            write_exprs(w, exprs);
            if !userdata.is_empty() {
                w.bytes(rule::USERDATA, userdata);
            }
        }))
    }

    /// Puts a rule with other userdata in the place of one that was read, with the same expressions.
    pub fn retag_rule(&mut self, old: &Rule, userdata: &[u8]) -> usize {
        let flags = flag::REPLACE;
        self.push(
            Request::nftables(msg::NEWRULE, old.family, flags).with(|w| {
                w.text(rule::TABLE, &old.table)
                    .text(rule::CHAIN, &old.chain)
                    .u64(rule::HANDLE, old.handle);
                write_exprs(w, &old.exprs);
                w.bytes(rule::USERDATA, userdata);
            }),
        )
    }

    /// Deletes all rules of a chain.
    pub fn flush_chain(&mut self, family: Family, table: &str, chain: &str) -> usize {
        self.push(Request::nftables(msg::DELRULE, family, 0).with(|w| {
            w.text(rule::TABLE, table).text(rule::CHAIN, chain);
        }))
    }

    /// Deletes a chain, which must be empty of rules by then and not be jumped to.
    pub fn delete_chain(&mut self, family: Family, table: &str, name: &str) -> usize {
        self.push(Request::nftables(msg::DELCHAIN, family, 0).with(|w| {
            w.text(chain::TABLE, table).text(chain::NAME, name);
        }))
    }

    /// The bytes of the whole batch, its messages numbered from `first`, and how many there are.
    pub(super) fn encode(self, first: u32) -> Option<(Vec<u8>, u32)> {
        let mut begin = frame(BATCH_BEGIN);
        if let Some(generation) = self.generation {
            begin.attrs.u32(GENERATION, generation);
        }
        let mut bytes = Vec::new();
        let mut sequence = first;
        // A batch without its end is undone.
        let end = (!self.dry_run).then(|| frame(BATCH_END));
        for request in std::iter::once(begin).chain(self.requests).chain(end) {
            bytes.extend(request.encode(sequence)?);
            sequence = sequence.wrapping_add(1);
        }
        Some((bytes, sequence.wrapping_sub(first)))
    }
}

fn write_exprs(w: &mut Writer, exprs: &[Expr]) {
    w.nest(rule::EXPRESSIONS, |list| {
        for one in exprs {
            list.nest(LIST_ELEM, |w| {
                w.text(expr::NAME, &one.name).nest(expr::DATA, |w| {
                    w.append(&Writer::after(one.data.clone()));
                });
            });
        }
    });
}

fn frame(kind: u8) -> Request {
    let mut request = Request::of(0, kind, Family::Unspec, flag::REQUEST);
    request.resource = u16::from(NFNL_SUBSYS_NFTABLES);
    request
}

/// Why the kernel refused a batch. Nothing of it was carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Each refused message: its index (`None`: the batch as a whole), the error number and the kernel's words.
    pub errors: Vec<(Option<usize>, i32, Option<String>)>,
}

impl Refusal {
    /// The batch as a whole failed with this error number.
    pub(super) fn of(errno: i32) -> Self {
        Self {
            errors: vec![(None, errno, None)],
        }
    }

    /// Sorts acknowledgements by message; no errors are success.
    pub(super) fn from_acks(first: u32, acks: Vec<Ack>) -> Result<(), Self> {
        let index = |ack: &Ack| {
            usize::try_from(ack.sequence.wrapping_sub(first))
                .ok()?
                .checked_sub(1)
        };
        let errors: Vec<_> = acks
            .into_iter()
            .map(|ack| (index(&ack), ack.errno, ack.text))
            .collect();
        if errors.is_empty() {
            Ok(())
        } else {
            Err(Self { errors })
        }
    }

    /// Whether any message was refused with this error number.
    pub fn has(&self, errno: i32) -> bool {
        self.errors.iter().any(|(_, number, _)| *number == errno)
    }

    /// The error number and words of the first refused message.
    pub fn first(&self) -> (i32, Option<&str>) {
        self.errors
            .first()
            .map_or((0, None), |(_, errno, text)| (*errno, text.as_deref()))
    }

    /// As this crate's error.
    pub fn into_error(self, what: impl Into<String>) -> Error {
        let (errno, detail) = self
            .errors
            .into_iter()
            .next()
            .map_or((0, None), |(_, errno, text)| (errno, text));
        Error::Kernel {
            what: what.into(),
            source: io::Error::from_raw_os_error(errno),
            detail,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (errno, _) = self.first();
        write!(f, "{}", io::Error::from_raw_os_error(errno))
    }
}
