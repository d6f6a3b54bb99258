//! Connection tracking entries.
