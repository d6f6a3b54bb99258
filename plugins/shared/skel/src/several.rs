//! Errors of steps that were all tried, each while the others were gone on with.

use std::fmt::Display;

/// Nothing if the list is empty, the error if it is one, else what `several` makes of all of them.
///
/// # Errors
/// When there are any.
pub fn join<E>(mut errors: Vec<E>, several: impl FnOnce(Vec<E>) -> E) -> Result<(), E> {
    match errors.len() {
        0 => Ok(()),
        1 => errors.pop().map_or(Ok(()), Err),
        _ => Err(several(errors)),
    }
}

/// The texts of several errors, in a line.
pub fn listed<E: Display>(errors: &[E]) -> String {
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    texts.join("; ")
}
