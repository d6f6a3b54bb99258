//! What a tracer tells its caller.

use std::fs;
use std::path::Path;

use conformance::error::Context;
use conformance::{Error, Result};
use serde::{Deserialize, Serialize};

use super::calls::Call;

/// What became of a traced program.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Report {
    /// Every call, in order; filled only by a plan that counts.
    pub calls: Vec<Call>,
    /// How many calls were made.
    pub count: usize,
    /// How many netlink messages were sent.
    pub messages: usize,
    /// Where the plan was carried out, in words; `None` when the program ended before that.
    pub fired: Option<String>,
}

impl Report {
    /// Writes the report into a file.
    pub fn write(&self, file: &Path) -> Result<()> {
        let text = serde_json::to_vec(self).unwrap_or_default();
        fs::write(file, text).doing(|| format!("write {}", file.display()))
    }

    /// Reads the report from a file.
    pub fn read(file: &Path) -> Result<Self> {
        let bytes = fs::read(file).doing(|| format!("read {}", file.display()))?;
        serde_json::from_slice(&bytes).map_err(|error| Error::Missing {
            what: format!("a report in {}: {error}", file.display()),
        })
    }
}
