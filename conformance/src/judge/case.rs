//! One verdict, as it travels out of the sandbox and into the reports.

use serde::{Deserialize, Serialize};

/// How a check ended.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The clause is kept.
    Pass,
    /// It is broken.
    Fail,
    /// It could not be tried.
    NotApplicable,
    /// The suite failed.
    Error,
}

/// One call of a plugin within a check.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Step {
    /// The call, as a shell would make it.
    pub command: String,
    /// What it read.
    pub stdin: String,
    /// How it ended, and what it printed.
    pub seen: String,
}

/// One check of one plugin in one version.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Case {
    /// The plugin's name.
    pub plugin: String,
    /// The check's id.
    pub check: String,
    /// The version of the configuration.
    pub version: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Why, unless it passed.
    pub reason: String,
    /// What was run and seen.
    pub steps: Vec<Step>,
    /// How long it took, in milliseconds.
    pub milliseconds: u64,
}
