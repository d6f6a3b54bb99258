//! Trying a transaction until it goes through: what a refusal teaches, and when to give up.

use std::time::{Duration, Instant};

use super::entry::Slot;
use crate::error::{Error, Result};
use crate::lock::Lock;
use crate::nfnl::{Batch, Refusal};

/// Refusals that mean "others were faster": the ruleset moved on, a lock was held, a module was being loaded.
const PASSING: [i32; 4] = [
    85, /* ERESTART */
    11, /* EAGAIN */
    4,  /* EINTR */
    16, /* EBUSY */
];
const ENOENT: i32 = 2;
const EEXIST: i32 = 17;
/// More surprises than this are no bad luck.
const SURPRISES_MAX: u32 = 64;

/// What earlier refusals of one transaction have taught.
#[derive(Debug)]
pub(super) struct Attempt {
    until: Instant,
    timeout: Duration,
    surprises: u32,
    /// Something we jump to or add to is missing: write the fixed part of the tables.
    pub layout: bool,
    /// Elements that a record lists but that are not there any more; somebody deleted them by hand.
    gone: Vec<Slot>,
    /// Held as long as the attempt lasts.
    _turn: Option<Lock>,
}

/// The deletions in a batch: the index of each message and what it deletes.
pub(super) type Deletions = Vec<(usize, Slot)>;

impl Attempt {
    /// The first try. Our own writers take turns, so that many of them do not refuse one another; who cannot have the
    /// lock gets along without it.
    pub fn in_turn(timeout: Duration) -> Self {
        let attempt = Self::new(timeout);
        let turn = Lock::take("nftables", timeout / 2).ok();
        Self {
            _turn: turn,
            ..attempt
        }
    }

    /// The first try of something that only others can disturb.
    pub fn new(timeout: Duration) -> Self {
        let until = Instant::now() + timeout;
        Self {
            until,
            timeout,
            surprises: 0,
            layout: false,
            gone: Vec::new(),
            _turn: None,
        }
    }

    /// Adds the deletion of these elements to a batch, except of those that turned out to be gone.
    pub fn delete(&self, batch: &mut Batch, slots: &[Slot]) -> Deletions {
        let present = slots.iter().filter(|slot| !self.gone.contains(slot));
        present
            .map(|slot| (batch.push(slot.delete()), slot.clone()))
            .collect()
    }

    /// Learns from a refusal; an error if trying again makes no sense.
    pub fn learn(&mut self, mut refusal: Refusal, what: &str, deletions: &Deletions) -> Result<()> {
        let gone = |index: &Option<usize>, errno: &i32| {
            let found = deletions.iter().find(|(number, _)| Some(*number) == *index);
            found
                .filter(|_| *errno == ENOENT)
                .map(|(_, slot)| slot.clone())
        };
        let before = self.gone.len();
        self.gone.extend(
            refusal
                .errors
                .iter()
                .filter_map(|(index, errno, _)| gone(index, errno)),
        );
        if self.gone.len() > before {
            refusal
                .errors
                .retain(|(index, errno, _)| gone(index, errno).is_none());
        }
        if refusal
            .errors
            .iter()
            .all(|(_, errno, _)| PASSING.contains(errno))
        {
            return self.again(what);
        }
        let expected = |errno: &i32| [EEXIST, ENOENT].contains(errno) || PASSING.contains(errno);
        if self.surprises >= SURPRISES_MAX
            || !refusal.errors.iter().all(|(_, errno, _)| expected(errno))
        {
            return Err(unavailable(refusal, what));
        }
        self.surprises += 1;
        self.layout |= refusal.has(ENOENT);
        self.again(what)
    }

    fn again(&self, what: &str) -> Result<()> {
        if Instant::now() < self.until {
            return Ok(());
        }
        let reason = format!(
            "other programs kept changing the ruleset for {:?}",
            self.timeout
        );
        Err(Error::Busy {
            what: what.into(),
            reason,
        })
    }
}

/// A refusal that will not pass. Missing permission and missing kernel parts are told apart from plain errors.
pub(super) fn unavailable(refusal: Refusal, what: &str) -> Error {
    const EPERM: i32 = 1;
    const UNSUPPORTED: [i32; 4] = [
        95, /* EOPNOTSUPP */
        93, /* EPROTONOSUPPORT */
        97, /* EAFNOSUPPORT */
        38, /* ENOSYS */
    ];
    let (errno, _) = refusal.first();
    if errno == EPERM {
        return Error::no_permission();
    }
    if UNSUPPORTED.contains(&errno) {
        let reason = format!("the kernel lacks a part of nf_tables needed to {what} ({refusal})");
        return Error::Unavailable {
            what: "nftables".into(),
            reason,
        };
    }
    refusal.into_error(what)
}
