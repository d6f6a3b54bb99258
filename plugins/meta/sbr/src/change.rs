//! Changes of rules and routes, each with its reverse.

use netlink::{ExactRoute, Handle, Locked, NewRoute, NewRule, Request};
use skel::{Transaction, log};

use crate::error::Error;

/// One change and how to take it back.
#[derive(Debug, Clone)]
pub struct Change {
    request: Request,
    reverse: Request,
}

impl Change {
    /// Adds a rule.
    pub fn add_rule(rule: &NewRule) -> Self {
        Self {
            request: rule.request(),
            reverse: rule.delete_request(),
        }
    }

    /// Adds a route as the kernel has told of it.
    pub fn add_exact(route: &ExactRoute) -> Self {
        Self {
            request: route.request(),
            reverse: route.delete_request(),
        }
    }

    /// Adds a route of our own.
    pub fn add_route(route: &NewRoute) -> Self {
        Self {
            request: route.request(),
            reverse: route.delete_request(),
        }
    }

    /// Deletes a route; one that was tried before all others to its destination comes back in that place.
    pub fn remove_exact(route: &ExactRoute, was_first: bool) -> Self {
        Self {
            request: route.delete_request(),
            reverse: if was_first {
                route.request_before()
            } else {
                route.request()
            },
        }
    }

    /// Puts a route in the place of another.
    pub fn replace_exact(old: &ExactRoute, new: &ExactRoute) -> Self {
        Self {
            request: new.replace_request(),
            reverse: old.replace_request(),
        }
    }

    /// The change that takes this one back.
    pub fn reversed(self) -> Self {
        Self {
            request: self.reverse,
            reverse: self.request,
        }
    }

    /// Makes the change as a part of an ADD.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn make(self, transaction: &mut Transaction<Locked>) -> Result<(), Error> {
        let Self { request, reverse } = self;
        let made = transaction.execute(&request);
        // What the kernel has refused is not to be taken back: there may be one of somebody else's.
        if let Err(refusal @ netlink::Error::Kernel { .. }) = made {
            return Err(refusal.into());
        }
        transaction.on_failure(
            "take a rule or route back",
            move |container: &mut Locked| tolerant(container, &reverse),
        );
        Ok(made?)
    }

    /// As [`make`](Self::make), for a change that may be made already, or that cannot be made and need not be.
    ///
    /// # Errors
    /// If the kernel could not be asked.
    pub fn try_to_make(self, transaction: &mut Transaction<Locked>) -> Result<(), Error> {
        match self.make(transaction) {
            Err(Error::Netlink(error @ netlink::Error::Kernel { .. })) => {
                log::info(format_args!("{error}"));
                Ok(())
            }
            other => other,
        }
    }

    /// Makes the change unless it is made already.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn make_for_good(&self, container: &Handle) -> Result<(), Error> {
        Ok(tolerant(container, &self.request)?)
    }
}

/// What is gone need not be removed, and what is there need not be made.
fn tolerant(container: &Handle, request: &Request) -> netlink::Result<()> {
    match container.execute(request) {
        Err(error) if error.is_not_found() || error.is_exists() => {
            log::debug(format_args!("{error}"));
            Ok(())
        }
        other => other,
    }
}
