//! SELinux contexts.

use std::fs;
use std::io;

use skel::log;

use crate::error::Error;

/// The context of the calling thread.
const CURRENT: &str = "/proc/thread-self/attr/current";

/// Runs `body` under an SELinux context, which is what a tap made meanwhile gets; none if it is empty.
///
/// # Errors
/// [`Error::Selinux`] if the context cannot be taken; `body` has not run then.
pub fn under<T>(context: &str, body: impl FnOnce() -> T) -> Result<T, Error> {
    if context.is_empty() {
        return Ok(body());
    }
    let refused = |source: io::Error| Error::Selinux {
        context: context.to_owned(),
        source,
    };
    let before = fs::read(CURRENT).map_err(refused)?;
    fs::write(CURRENT, context).map_err(refused)?;
    let value = body();
    if let Err(error) = fs::write(CURRENT, before) {
        log::warn(format_args!(
            "tap: cannot give up the SELinux context {context:?} again: {error}"
        ));
    }
    Ok(value)
}
