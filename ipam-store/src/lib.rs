//! Addresses on disk: ranges, allocation order and leases.
//!
//! A *store* is one directory, usually `/var/lib/cni/networks/<network>`. Each lease is a file in it whose name is the
//! address and whose content is its [`Owner`]; the files are the truth and are byte-compatible with what the reference
//! set's host-local reads and writes, its lock included, so both may work on one directory.
//!
//! ```
//! use ipam_store::{Options, Owner, RangeSet, RangeSpec, Store};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let set = RangeSet::new(vec![RangeSpec::subnet("10.1.2.0/24".parse()?)])?;
//! let owner = Owner::new("container-1", "eth0");
//! let mut store = Store::open(dir.path(), &Options::default())?;
//! let leases = store.allocate(&owner, &[set], &[])?;
//! assert_eq!(leases[0].address.to_string(), "10.1.2.2/24"); // .1 is the gateway
//! assert_eq!(store.release(&owner)?.len(), 1);
//! # Ok(()) }
//! ```
//!
//! Limits: the lock is `flock(2)`, so a directory shared between machines needs a file system that passes it on.
//! Knows nothing of CNI or netlink.

mod boot;
mod error;
mod files;
mod index;
mod lease;
mod leases;
mod lock;
mod order;
mod range;
mod rangeset;
mod snapshot;
mod store;

pub use boot::Boot;
pub use error::Error;
pub use files::check_writable;
pub use flock::Holder as LockHolder;
pub use lease::{Holder, Owner};
pub use range::{Range, RangeError, RangeSpec};
pub use rangeset::{RangeSet, SetError, parse_sets};
pub use store::{Allocation, Options, Store, Usage};
