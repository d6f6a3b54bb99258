//! A small machine of its own: user, network, mount and process namespaces.
//!
//! Everything here that makes links, rules or files runs inside one. A sandbox is a process tree:
//! when its first process ends, the kernel takes the namespaces away and with them every link,
//! rule, mount and leftover process, so nothing can stay behind on the real machine. Its files are
//! read-only in there but for private ones, because a plugin writes wherever a configuration tells
//! it to; directories named in `SANDBOX_WRITABLE` (separated by colons) are left alone. It works
//! for root and, through a user namespace, for an ordinary user.
//!
//! The `sandbox` binary is the door: `sandbox COMMAND [ARGUMENT…]`. [`Launcher`] calls it,
//! [`Sandbox::require`] proves from the inside that we came through it.

mod enter;
mod launch;
mod marker;
mod mounts;
mod protect;

pub use enter::{INNER, enter, finish};
pub use launch::Launcher;
pub use marker::{PRIVATE_TMP, Sandbox};
