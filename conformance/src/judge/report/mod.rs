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
    /// The file with the plugin's configuration, if one was given.
    pub config: Option<&'a Path>,
}

/// The command that plays a case alone.
#[must_use]
pub fn repeat(run: &Run<'_>, case: &Case) -> String {
    let config = run
        .config
        .map(|file| format!(" --config {}", file.display()))
        .unwrap_or_default();
    let spec = if case.version.is_empty() {
        String::new()
    } else {
        format!(" --spec {}", case.version)
    };
    format!(
        "conformance run --cni-path {} --plugin {} --only {}{spec}{config}",
        run.directory.display(),
        case.plugin,
        case.check
    )
}
