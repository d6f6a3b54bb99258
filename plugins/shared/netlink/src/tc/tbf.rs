//! The token bucket filter (tc-tbf(8)): a queue that sends at a rate, and a burst of it at once.

use netlink_packet_core::DefaultNla;
use netlink_packet_route::tc::TcOption;

use crate::nla::{self, attributes};

/// `TCA_TBF_PARMS`, `TCA_TBF_RATE64` and `TCA_TBF_BURST` (linux/pkt_sched.h).
const PARMS: u16 = 1;
const RATE64: u16 = 4;
const BURST: u16 = 6;

/// Where the fields stand in `struct tc_tbf_qopt`: the rate's last four bytes, then past the peak rate.
const RATE_AT: usize = 8;
const LIMIT_AT: usize = 24;
const BUFFER_AT: usize = 28;
const PARMS_LEN: usize = 36;

/// How many of the kernel's ticks a microsecond has: a tick is 64 ns since Linux 2.6.31 (`/proc/net/psched`).
pub const TICKS_PER_MICROSECOND: f64 = 15.625;

/// The settings of a token bucket filter, as the kernel takes and reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tbf {
    /// Bytes a second.
    pub rate: u64,
    /// The most bytes that wait in the queue.
    pub limit: u32,
    /// How long sending a full bucket takes at that rate, in ticks.
    pub buffer: u32,
    /// The size of the bucket in bytes, which then counts instead of `buffer`. The kernel never reports it.
    pub burst: Option<u32>,
}

impl Tbf {
    pub(super) fn options(&self) -> Vec<TcOption> {
        let low = u32::try_from(self.rate).unwrap_or(u32::MAX);
        let fields = [
            (RATE_AT, low),
            (LIMIT_AT, self.limit),
            (BUFFER_AT, self.buffer),
        ];
        let mut parms = vec![0; PARMS_LEN];
        for (at, value) in fields {
            if let Some(room) = parms.get_mut(at..at + 4) {
                room.copy_from_slice(&value.to_ne_bytes());
            }
        }
        let mut options = vec![DefaultNla::new(PARMS, parms)];
        if self.rate > u64::from(low) {
            options.push(DefaultNla::new(RATE64, self.rate.to_ne_bytes().to_vec()));
        }
        if let Some(burst) = self.burst {
            options.push(DefaultNla::new(BURST, burst.to_ne_bytes().to_vec()));
        }
        options.into_iter().map(TcOption::Other).collect()
    }

    pub(super) fn read(options: &[u8]) -> Option<Self> {
        let find = |wanted| {
            attributes(options)
                .find(|(kind, _)| *kind == wanted)
                .map(|(_, value)| value)
        };
        let parms = find(PARMS)?;
        let field = |at: usize| parms.get(at..).and_then(nla::as_u32);
        let rate = match find(RATE64).and_then(|value| value.first_chunk::<8>()) {
            Some(bytes) => u64::from_ne_bytes(*bytes),
            None => field(RATE_AT)?.into(),
        };
        Some(Self {
            rate,
            limit: field(LIMIT_AT)?,
            buffer: field(BUFFER_AT)?,
            burst: None,
        })
    }
}
