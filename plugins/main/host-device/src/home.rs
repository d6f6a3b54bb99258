//! The name that an interface had on the host: it is the interface's alias while the interface is in a container, as in
//! the reference set.
//!
//! When a container's namespace dies, the kernel destroys virtual interfaces and gives hardware back to the initial
//! namespace: down, under the name that it had in the container or, if that is taken, as `dev` and a number. The alias
//! stays. An administrator may write aliases, too, so an alias alone says nothing about an interface of the host.

use netlink::{Handle, Link, LinkChange};
use skel::log;

use crate::error::Error;

/// How the kernel names what comes back while its name is taken (`default_device_exit_net`).
const FALLBACK: &str = "dev";

/// The name that the alias gives, if it can be one. Other plugins write other things there.
pub fn of(link: &Link) -> Option<&str> {
    let alias = link.alias.as_deref()?;
    netlink::check_name(alias).is_ok().then_some(alias)
}

/// The name that an interface of the host lost, if its alias is one that nobody else has by now.
pub fn lost(host: &Handle, link: &Link) -> Result<Option<String>, Error> {
    let Some(home) = of(link).filter(|home| *home != link.name) else {
        return Ok(None);
    };
    match host.find_link(home)? {
        Some(_) => Ok(None),
        None => Ok(Some(home.to_owned())),
    }
}

/// Whether the kernel made the interface's name up, which it does for nothing else than what a dead container leaves.
pub fn has_fallback_name(link: &Link) -> bool {
    is_fallback(&link.name)
}

fn is_fallback(name: &str) -> bool {
    name.strip_prefix(FALLBACK)
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Gives an interface of the host its name back. What cannot be done is logged: it is on the host, after all.
pub fn restore(host: &Handle, link: &Link, home: &str) {
    let change = LinkChange::new().name(home).alias("");
    match host.change_link(link, &change) {
        Ok(()) => log::info(format_args!("{} is {home} again", link.name)),
        Err(error) => log::warn(format_args!("{error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_kernel_makes_up() {
        for name in ["dev0", "dev12"] {
            assert!(is_fallback(name), "{name}");
        }
        for name in ["dev", "device1", "eth0", "dev1x"] {
            assert!(!is_fallback(name), "{name}");
        }
    }
}
