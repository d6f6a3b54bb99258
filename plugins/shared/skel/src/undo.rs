//! The undo log that makes an ADD a transaction.

use std::fmt::Display;
use std::ops::{Deref, DerefMut};

use crate::log;

type Reverse<W> = Box<dyn FnOnce(&mut W) -> Result<(), Box<dyn Display>>>;

/// The things an ADD works on (`W`: its handles), together with the reverse of every change made so far.
///
/// Dropping a transaction that was not committed runs the reverses, last change first. An error while
/// undoing is logged and the next reverse still runs, so it never hides the error that caused the drop.
pub struct Transaction<W> {
    world: W,
    reverses: Vec<(String, Reverse<W>)>,
}

impl<W> Transaction<W> {
    /// Starts a transaction with nothing to undo.
    pub fn new(world: W) -> Self {
        Self {
            world,
            reverses: Vec::new(),
        }
    }

    /// Records how to take back the change that was just made; `what` names the reverse for the log.
    pub fn on_failure<E: Display + 'static>(
        &mut self,
        what: impl Into<String>,
        reverse: impl FnOnce(&mut W) -> Result<(), E> + 'static,
    ) {
        let boxed: Reverse<W> =
            Box::new(move |world| reverse(world).map_err(|e| Box::new(e) as Box<dyn Display>));
        self.reverses.push((what.into(), boxed));
    }
}

impl<W> Deref for Transaction<W> {
    type Target = W;

    fn deref(&self) -> &W {
        &self.world
    }
}

impl<W> DerefMut for Transaction<W> {
    fn deref_mut(&mut self) -> &mut W {
        &mut self.world
    }
}

impl<W> Drop for Transaction<W> {
    fn drop(&mut self) {
        while let Some((what, reverse)) = self.reverses.pop() {
            log::info(format_args!("undo: {what}"));
            if let Err(error) = reverse(&mut self.world) {
                log::warn(format_args!("undo: {what}: {error}"));
            }
        }
    }
}

/// A transaction whose kind is no longer of interest: it can only be committed or dropped.
pub trait Commit {
    /// Keeps the changes.
    fn commit(self: Box<Self>);
}

impl<W> Commit for Transaction<W> {
    fn commit(mut self: Box<Self>) {
        self.reverses.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    fn recorded(commit: bool) -> Vec<&'static str> {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let mut transaction = Transaction::new(Rc::clone(&seen));
        transaction.on_failure("first", |w| {
            w.borrow_mut().push("first");
            Ok::<(), String>(())
        });
        transaction.on_failure("second", |w| {
            w.borrow_mut().push("second");
            Err("refused".to_owned())
        });
        if commit {
            Commit::commit(Box::new(transaction));
        } else {
            drop(transaction);
        }
        seen.borrow().clone()
    }

    #[test]
    fn a_dropped_transaction_runs_backwards_past_errors() {
        assert_eq!(recorded(false), ["second", "first"]);
    }

    #[test]
    fn a_committed_transaction_undoes_nothing() {
        assert!(recorded(true).is_empty());
    }

    #[test]
    fn a_panic_undoes_too() {
        let seen = std::sync::Arc::new(std::sync::Mutex::new(0));
        let inner = std::sync::Arc::clone(&seen);
        let result = std::panic::catch_unwind(move || {
            let mut transaction = Transaction::new(inner);
            transaction.on_failure("count", |w| {
                *w.lock().unwrap() += 1;
                Ok::<(), String>(())
            });
            panic!("on purpose");
        });
        assert!(result.is_err());
        assert_eq!(*seen.lock().unwrap(), 1);
    }
}
