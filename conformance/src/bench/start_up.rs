//! What it costs that a plugin is a program.

use std::path::Path;
use std::time::Duration;

use super::median;
use crate::error::Result;
use crate::plugin::{Call, find};

/// Start-up times of one plugin, by its VERSION command.
#[derive(Clone, Debug)]
pub struct StartUp {
    /// The plugin.
    pub name: String,
    /// Ours.
    pub ours: Duration,
    /// The other directory's, where it has this plugin.
    pub theirs: Option<Duration>,
    /// Size of our file in bytes.
    pub size: u64,
    /// Size of theirs, where they have this plugin.
    pub their_size: Option<u64>,
}

/// Measures plugins and an empty program, taking turns; the empty program's time comes first.
///
/// # Errors
/// When one of our programs is missing or cannot be started.
pub fn start_up(
    names: &[&str],
    ours: &Path,
    theirs: &Path,
    rounds: u32,
) -> Result<(Duration, Vec<StartUp>)> {
    let empty = Call::new(find("noop", &[ours.to_owned()])?);
    let mut empty_times = Vec::new();
    let mut rows = Vec::new();
    for name in names {
        let program = find(name, &[ours.to_owned()])?;
        let size = |program: &Path| std::fs::metadata(program).map_or(0, |meta| meta.len());
        let own = version(&program);
        let their_program = find(name, &[theirs.to_owned()]).ok();
        let other = their_program.as_deref().map(version);
        let (mut own_times, mut other_times) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            empty_times.push(empty.run()?.took);
            own_times.push(own.run()?.took);
            if let Some(other) = &other {
                other_times.push(other.run()?.took);
            }
        }
        rows.push(StartUp {
            name: (*name).to_owned(),
            ours: median(&own_times),
            theirs: other.map(|_| median(&other_times)),
            size: size(&program),
            their_size: their_program.as_deref().map(size),
        });
    }
    Ok((median(&empty_times), rows))
}

fn version(program: &Path) -> Call {
    Call::new(program).env("CNI_COMMAND", "VERSION")
}
