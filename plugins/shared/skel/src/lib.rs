//! The plugin side of the CNI protocol.
//!
//! A plugin implements [`Plugin`]; its `main` is [`run`]. Between them lie the environment and its checks,
//! the configuration and its versions, the network namespace guard, delegation to the IPAM plugin
//! ([`Delegate`]), the undo log that makes an ADD a transaction ([`Transaction`]), and the one place where
//! an error becomes a CNI error object ([`PluginError`]). [`serve`] is the same without a process around
//! it, for tests.

pub mod date;
mod delegate;
mod dispatch;
mod env;
mod error;
pub mod log;
mod misspelt;
mod plugin;
mod request;
mod run;
mod several;
mod undo;

pub use delegate::{Delegate, DelegateError};
pub use dispatch::{Reply, serve};
pub use env::{Attachment, Environment};
pub use error::PluginError;
pub use plugin::{Added, Plugin};
pub use request::{DelRequest, NetworkRequest, Request};
pub use run::run;
pub use several::{join, listed};
pub use undo::{Commit, Transaction};
