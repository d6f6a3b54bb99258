//! What is counted rather than timed: programs, memory, bytes on disk.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::crowd::Crowd;
use crate::chain::{find_tool, standard_path};
use crate::error::{Context, Error, Result};
use crate::sandbox::PRIVATE_TMP;

/// Where plugins keep what they must remember.
const STATE: [&str; 2] = ["/var/lib/cni", "/run"];

/// Counts of one command along a list.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Count {
    /// Programs started.
    pub programs: usize,
    /// System calls of all of them.
    pub calls: usize,
}

/// What one container more costs besides time.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Counts {
    /// Of the ADD.
    pub add: Count,
    /// Of the CHECK.
    pub check: Count,
    /// Of the DEL.
    pub del: Count,
    /// Largest resident size of each program in the ADD and DEL, in KiB.
    pub memory: BTreeMap<String, u64>,
    /// Bytes on disk of everything plugins remember, in blocks as allocated.
    pub disk: u64,
    /// Files and directories that this is in.
    pub files: u64,
}

impl Crowd<'_> {
    /// Counts while one more container comes and goes. `peak` is the program that reports the memory of the
    /// one it runs.
    ///
    /// # Errors
    /// Without `strace`, or when what it wrote cannot be read.
    pub fn counts(&mut self, peak: &Path) -> Result<Counts> {
        let tracer = find_tool("strace", &standard_path()).ok_or_else(|| Error::Missing {
            what: "strace (install the package of that name)".into(),
        })?;
        let trace = Path::new(PRIVATE_TMP).join("trace");
        let words = ["-f", "-qq", "-A", "-o"].map(OsString::from);
        let mut wrapper: Vec<OsString> = vec![tracer.into()];
        wrapper.extend(words);
        wrapper.push(trace.clone().into());
        let traced = self.runtime.clone().under(&wrapper);
        let mut one = self.newcomer()?;
        traced.add(&self.network, &mut one.attachment)?;
        let add = count(&trace)?;
        traced.check(&self.network, &one.attachment).ok();
        let check = count(&trace)?;
        let (disk, files) = on_disk()?;
        traced.del(&self.network, &one.attachment)?;
        let del = count(&trace)?;
        Ok(Counts {
            add,
            check,
            del,
            memory: self.memory(peak)?,
            disk,
            files,
        })
    }

    fn memory(&mut self, peak: &Path) -> Result<BTreeMap<String, u64>> {
        let report = Path::new(PRIVATE_TMP).join("peak");
        let wrapper = [peak.into(), report.clone().into()];
        let measured = self.runtime.clone().under(&wrapper);
        let mut one = self.newcomer()?;
        measured.add(&self.network, &mut one.attachment)?;
        measured.del(&self.network, &one.attachment)?;
        let text = fs::read_to_string(&report).doing(|| "read the memory report")?;
        let mut largest = BTreeMap::new();
        for line in text.lines() {
            let mut words = line.split(' ');
            let (Some(name), Some(kib)) = (words.next(), words.next()) else {
                continue;
            };
            let entry = largest.entry(name.to_owned()).or_insert(0);
            *entry = kib.parse().unwrap_or(0).max(*entry);
        }
        Ok(largest)
    }
}

/// Whether a line of a trace is the start of a program.
pub(in crate::bench) fn started(line: &str) -> bool {
    let execve = line.contains("execve(") || line.contains("<... execve resumed>");
    execve && line.ends_with("= 0")
}

/// Reads and removes a trace.
fn count(trace: &Path) -> Result<Count> {
    let text = fs::read_to_string(trace).doing(|| "read the trace")?;
    fs::remove_file(trace).doing(|| "remove the trace")?;
    // A call that another process interrupts has two lines, the second of which says "resumed" and how it ended.
    let call = |line: &&str| line.contains('(') && !line.contains("<... ");
    Ok(Count {
        programs: text.lines().filter(|line| started(line)).count(),
        calls: text.lines().filter(call).count(),
    })
}

fn on_disk() -> Result<(u64, u64)> {
    let mut sum = (0, 0);
    for place in STATE {
        walk(Path::new(place), &mut sum)?;
    }
    Ok(sum)
}

fn walk(directory: &Path, sum: &mut (u64, u64)) -> Result<()> {
    // The sandbox's own furniture.
    if [Path::new("/run/netns"), Path::new("/run/sandbox")].contains(&directory) {
        return Ok(());
    }
    let listing = || format!("list {}", directory.display());
    for entry in fs::read_dir(directory).doing(listing)? {
        let path = entry.doing(listing)?.path();
        let meta = fs::symlink_metadata(&path).doing(|| format!("look at {}", path.display()))?;
        sum.0 += meta.blocks() * 512;
        sum.1 += 1;
        if meta.is_dir() {
            walk(&path, sum)?;
        }
    }
    Ok(())
}
