//! Range sets: one address is handed out of each.

use std::fmt;
use std::net::IpAddr;

use thiserror::Error;

use crate::range::{Range, RangeError, RangeSpec};

/// What is wrong with a range set, or with several of them together.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetError {
    /// There is no set at all.
    #[error("no IP ranges specified")]
    None,
    /// One set is invalid.
    #[error("invalid range set {index}: {error}")]
    Invalid {
        /// Place of the set in the merged list.
        index: usize,
        /// What is wrong with it.
        error: Box<SetError>,
    },
    /// A set without ranges.
    #[error("empty range set")]
    Empty,
    /// One range of the set is invalid.
    #[error(transparent)]
    Range(#[from] RangeError),
    /// IPv4 and IPv6 in one set.
    #[error("mixed address families: {0} and {1}")]
    MixedFamilies(String, String),
    /// Two ranges of one set share addresses.
    #[error("subnets {0} and {1} overlap")]
    RangesOverlap(String, String),
    /// Two sets share addresses.
    #[error("range set {0} overlaps with {1}")]
    SetsOverlap(usize, usize),
}

/// A non-empty list of ranges of one family that do not overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeSet {
    ranges: Vec<Range>,
}

impl RangeSet {
    /// Checks each range and the set as a whole.
    ///
    /// # Errors
    /// See [`SetError`].
    pub fn new(specs: Vec<RangeSpec>) -> Result<Self, SetError> {
        let mut ranges: Vec<Range> = Vec::with_capacity(specs.len());
        for spec in &specs {
            let range = Range::new(spec)?;
            if let Some(first) = ranges.first()
                && first.is_ipv4() != range.is_ipv4()
            {
                return Err(SetError::MixedFamilies(
                    first.subnet().to_string(),
                    range.subnet().to_string(),
                ));
            }
            if let Some(other) = ranges.iter().find(|other| other.overlaps(&range)) {
                return Err(SetError::RangesOverlap(
                    other.to_string(),
                    range.to_string(),
                ));
            }
            ranges.push(range);
        }
        if ranges.is_empty() {
            return Err(SetError::Empty);
        }
        Ok(Self { ranges })
    }

    /// The ranges in the order they were given.
    #[must_use]
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// Whether the set hands out IPv4 addresses.
    #[must_use]
    pub fn is_ipv4(&self) -> bool {
        self.ranges.first().is_some_and(Range::is_ipv4)
    }

    /// The range that holds `address`.
    #[must_use]
    pub fn range_of(&self, address: IpAddr) -> Option<&Range> {
        self.ranges.iter().find(|range| range.contains(address))
    }

    /// Whether any range of one set shares an address with a range of the other.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.ranges
            .iter()
            .any(|a| other.ranges.iter().any(|b| a.overlaps(b)))
    }
}

impl fmt::Display for RangeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, range) in self.ranges.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{range}")?;
        }
        Ok(())
    }
}

/// Builds all sets of one network and checks them against each other.
///
/// # Errors
/// [`SetError::None`] for an empty list, [`SetError::Invalid`] with the set's index, [`SetError::SetsOverlap`].
pub fn parse_sets(specs: Vec<Vec<RangeSpec>>) -> Result<Vec<RangeSet>, SetError> {
    let mut sets: Vec<RangeSet> = Vec::with_capacity(specs.len());
    for (index, specs) in specs.into_iter().enumerate() {
        let set = RangeSet::new(specs).map_err(|error| SetError::Invalid {
            index,
            error: Box::new(error),
        })?;
        sets.push(set);
    }
    for (i, a) in sets.iter().enumerate() {
        for (j, b) in sets.iter().enumerate().skip(i + 1) {
            if a.overlaps(b) {
                return Err(SetError::SetsOverlap(i, j));
            }
        }
    }
    if sets.is_empty() {
        return Err(SetError::None);
    }
    Ok(sets)
}
