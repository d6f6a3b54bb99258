//! The runtime side of CNI: everything that executes plugin binaries rather than being one.
//!
//! It judges any plugin directory, so it links none of the plugins and none of the crates they are
//! made of: what it knows of namespaces, links and rules it asks the kernel by its own means.
//!
//! * [`sandbox`]: namespaces of our own, in which every test, demo and benchmark runs;
//! * [`net`]: network namespaces, links and the small world around a host;
//! * [`chain`]: runs a network list the way a runtime does;
//! * [`facts`]: what a result says;
//! * [`libcni`]: the library of a runtime, under `cnitool`;
//! * [`probe`]: sends real packets and tells who was seen as the sender;
//! * [`snapshot`]: what a host namespace holds, and how two moments differ;
//! * [`bench`]: what lists cost;
//! * [`demo`]: lists played with real packets, for a person to read;
//! * [`judge`]: says of any plugin directory, clause by clause, where it keeps to the specification;
//! * [`single`]: what a plugin that makes one link must do, on whatever kernel;
//! * [`lists`]: the network lists that real runtimes ship;
//! * [`transcript`]: what real runtimes send to plugins, recorded and played again.

pub mod bench;
pub mod chain;
pub mod demo;
pub mod error;
pub mod facts;
pub mod judge;
pub mod libcni;
pub mod lists;
pub mod net;
pub mod plugin;
pub mod probe;
pub mod sandbox;
pub mod single;
pub mod snapshot;
pub mod transcript;
pub mod workspace;

pub use error::{Error, Result};
