//! What the verbs of a plugin can fail with, in terms of what the plugin itself can fail with.

use skel::{DelegateError, PluginError};

/// What the verbs of a plugin can fail with.
#[derive(Debug, thiserror::Error)]
pub enum Failure<E: PluginError> {
    /// One thing.
    #[error(transparent)]
    One(E),
    /// STATUS: an ADD would fail, and this is how.
    #[error(transparent)]
    NotReady(E),
    /// Several things; a DEL goes on past each.
    #[error("{}", skel::listed(.0))]
    Several(Vec<E>),
}

impl<E: PluginError> From<E> for Failure<E> {
    fn from(error: E) -> Self {
        Self::One(error)
    }
}

impl<E: PluginError> Failure<E> {
    /// Nothing if the list is empty, the error if it is one, else all of them together.
    pub(super) fn join(mut errors: Vec<E>) -> Result<(), Self> {
        match errors.len() {
            0 => Ok(()),
            1 => errors.pop().map_or(Ok(()), |error| Err(Self::One(error))),
            _ => Err(Self::Several(errors)),
        }
    }
}

impl<E: PluginError> PluginError for Failure<E> {
    fn code(&self) -> u32 {
        match self {
            Self::One(error) => error.code(),
            Self::NotReady(_) => cni_types::code::PLUGIN_NOT_AVAILABLE,
            Self::Several(_) => cni_types::code::INTERNAL,
        }
    }

    fn details(&self) -> String {
        match self {
            Self::One(error) | Self::NotReady(error) => error.details(),
            Self::Several(_) => String::new(),
        }
    }

    fn delegated(&self) -> Option<&DelegateError> {
        match self {
            Self::One(error) => error.delegated(),
            Self::NotReady(_) | Self::Several(_) => None,
        }
    }
}
