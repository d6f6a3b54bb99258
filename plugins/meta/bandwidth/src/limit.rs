//! One direction's limit, and the token bucket filter that keeps it.

use std::fmt;

use netlink::tc::{TICKS_PER_MICROSECOND, Tbf};

use crate::error::Error;

/// Bits in a byte.
const BYTE: u64 = 8;

/// How long a packet may wait for tokens before the queue is full, in microseconds, as in the reference set.
const LATENCY: f64 = 25_000.0;

const MICROSECONDS: f64 = 1_000_000.0;

/// Which way traffic goes, seen from the container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the container.
    Ingress,
    /// From the container.
    Egress,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        })
    }
}

/// A rate and a burst that the kernel can keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Bytes a second, at least 1.
    rate: u64,
    /// Bytes that may pass at once, at least 1.
    burst: u32,
}

impl Limit {
    /// The limit of a rate in bits a second and a burst in bits; none if both are 0.
    ///
    /// # Errors
    /// If one of them comes alone, or is less than a byte, or the burst is 4 GiB or more.
    pub fn new(direction: Direction, rate: u64, burst: u64) -> Result<Option<Self>, Error> {
        match (rate, burst) {
            (0, 0) => return Ok(None),
            (_, 0) => return Err(Error::NoBurst(direction)),
            (0, _) => return Err(Error::NoRate(direction)),
            _ => {}
        }
        if rate < BYTE {
            return Err(Error::RateTooSmall { direction, rate });
        }
        if burst < BYTE {
            return Err(Error::BurstTooSmall { direction, burst });
        }
        let bytes = u32::try_from(burst / BYTE).ok().filter(|b| *b < u32::MAX);
        Ok(Some(Self {
            rate: rate / BYTE,
            burst: bytes.ok_or(Error::BurstTooLarge { direction, burst })?,
        }))
    }

    /// The bytes that may pass at once. A single packet that is larger never passes.
    pub fn burst(self) -> u32 {
        self.burst
    }

    /// The filter's settings, to the last digit as the reference set computes them, so that either side's CHECK knows the
    /// other's. Where its sums leave the 32 bits of a field, or a whole bucket takes no tick, the bucket's size in bytes
    /// says what they cannot.
    pub fn tbf(self) -> Tbf {
        // `as` between these types cuts the fraction off and stays within the bounds.
        let rate = self.rate as f64;
        let microseconds = (f64::from(self.burst) * MICROSECONDS / rate).trunc();
        let ticks = (microseconds * TICKS_PER_MICROSECOND).trunc();
        let exact = (1.0..=f64::from(u32::MAX)).contains(&ticks);
        let waiting = (rate * LATENCY / MICROSECONDS) as u32;
        Tbf {
            rate: self.rate,
            limit: waiting.saturating_add(self.burst),
            buffer: ticks.max(1.0) as u32,
            burst: (!exact).then_some(self.burst),
        }
    }

    /// Whether a filter that the kernel reports keeps this limit. A bucket that was given in bytes is not reported in a way
    /// that could be compared.
    pub fn is_kept_by(self, found: &Tbf) -> bool {
        let wanted = self.tbf();
        (found.rate, found.limit) == (wanted.rate, wanted.limit)
            && (wanted.burst.is_some() || found.buffer == wanted.buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(rate: u64, burst: u64) -> Limit {
        Limit::new(Direction::Ingress, rate, burst)
            .unwrap()
            .unwrap()
    }

    #[test]
    fn the_sums_are_those_of_the_reference_set() {
        let tbf = limit(1_000_000, 1_000_000).tbf();
        assert_eq!(
            (tbf.rate, tbf.buffer, tbf.limit, tbf.burst),
            (125_000, 15_625_000, 128_125, None)
        );
    }

    #[test]
    fn no_sum_wraps() {
        // The reference set made a bucket of 35 bytes of this.
        let slow = limit(8, 80_000);
        assert_eq!(slow.tbf().burst, Some(10_000));
        assert_eq!(slow.tbf().buffer, u32::MAX);
        let runtime = limit(1_000_000, u64::from(u32::MAX));
        assert_eq!(runtime.tbf().burst, Some(u32::MAX / 8));
        let fast = limit(u64::MAX, 80_000);
        assert_eq!(
            (fast.tbf().rate, fast.tbf().limit, fast.tbf().burst),
            (u64::MAX / 8, u32::MAX, Some(10_000))
        );
        assert!(fast.is_kept_by(&Tbf {
            burst: None,
            buffer: 7,
            ..fast.tbf()
        }));
        let plain = limit(1_000_000, 1_000_000);
        assert!(!plain.is_kept_by(&Tbf {
            buffer: 7,
            ..plain.tbf()
        }));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let new = |rate, burst| Limit::new(Direction::Egress, rate, burst);
        assert_eq!(new(0, 0).unwrap(), None);
        for (rate, burst) in [
            (1000, 0),
            (0, 1000),
            (7, 80),
            (80, 7),
            (8, 8 * u64::from(u32::MAX)),
            (8, u64::MAX),
        ] {
            new(rate, burst).unwrap_err();
        }
        new(8, 8 * u64::from(u32::MAX) - 1).unwrap();
    }
}
