//! What people and machines read of a run.

mod json;
mod junit;
mod table;
mod text;

use std::path::Path;

pub use json::json;
pub use junit::junit;
pub use text::text;

use super::case::Case;
use super::known::Known;

/// A run that is over.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The directory that was judged.
    pub directory: &'a Path,
    /// The cases, in their order.
    pub cases: &'a [Case],
    /// Faults that are expected.
    pub known: &'a Known,
}

/// The command that plays a case alone.
#[must_use]
pub fn repeat(directory: &Path, case: &Case) -> String {
    let spec = if case.version.is_empty() {
        String::new()
    } else {
        format!(" --spec {}", case.version)
    };
    format!(
        "conformance run --cni-path {} --plugin {} --only {}{spec}",
        directory.display(),
        case.plugin,
        case.check
    )
}
