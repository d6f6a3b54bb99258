//! Cycles of ADD, CHECK and DEL in this sandbox.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::chain::{Attachment, Network, Runtime, find_tool, standard_path};
use crate::error::{Context, Result};
use crate::lists::nomad_ports;
use crate::net::{Host, Netns};

/// What is measured.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The plugins' directory.
    pub plugins: PathBuf,
    /// The list's text.
    pub list: String,
    /// How many cycles.
    pub cycles: u32,
    /// How many other containers are attached meanwhile.
    pub others: u32,
}

/// The commands of one cycle.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Cycle {
    /// The ADD.
    pub add: Lap,
    /// The CHECK.
    pub check: Lap,
    /// The DEL.
    pub del: Lap,
}

/// One command along a list.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Lap {
    /// How long it took.
    pub took: Duration,
    /// Whether every plugin reported success.
    pub ok: bool,
    /// Programs started, plugins included; zero where nobody counted.
    pub processes: usize,
}

/// Runs cycles on the host of this sandbox, after one that does not count.
///
/// # Errors
/// When the sandbox cannot be furnished; a plugin that fails shows in the lap.
pub fn cycles(setting: &Setting) -> Result<Vec<Cycle>> {
    let host = Host::new()?;
    let network = Network::parse(&setting.list)?;
    let runtime = Runtime::new(&setting.plugins);
    // The others stay attached until the sandbox ends.
    let mut others = Vec::new();
    for number in 0..setting.others {
        let (netns, mut attachment) = container(&host, &format!("other{number}"), 20_000 + number)?;
        runtime.add(&network, &mut attachment)?;
        others.push(netns);
    }
    let mut laps = Vec::new();
    for number in 0..=setting.cycles {
        let (_netns, mut attachment) = container(&host, &format!("c{number}"), 8080)?;
        let add = time(|| runtime.add(&network, &mut attachment).is_ok());
        let check = time(|| runtime.check(&network, &attachment).is_ok());
        let del = time(|| runtime.del(&network, &attachment).is_ok());
        if number > 0 {
            laps.push(Cycle { add, check, del });
        }
    }
    Ok(laps)
}

/// Counts the programs that one cycle on a used host starts; `None` without a tracer.
///
/// # Errors
/// When the sandbox cannot be furnished or the tracer's file cannot be read.
pub fn process_counts(setting: &Setting) -> Result<Option<Cycle>> {
    let Some(tracer) = find_tool("strace", &standard_path()) else {
        return Ok(None);
    };
    let trace = Path::new(crate::sandbox::PRIVATE_TMP).join("trace");
    let mut wrapper: Vec<OsString> = vec![tracer.into()];
    wrapper.extend(["-f", "-qq", "-A", "-e", "trace=execve", "-o"].map(OsString::from));
    wrapper.push(trace.clone().into());

    let host = Host::new()?;
    let network = Network::parse(&setting.list)?;
    let plain = Runtime::new(&setting.plugins);
    let (_first, mut used) = container(&host, "first", 8080)?;
    plain.add(&network, &mut used)?;
    plain.del(&network, &used)?;

    let traced = plain.under(&wrapper);
    let (_netns, mut attachment) = container(&host, "counted", 8080)?;
    let count = |ok: bool| -> Result<Lap> {
        let text = std::fs::read_to_string(&trace).doing(|| "read the trace")?;
        std::fs::remove_file(&trace).doing(|| "remove the trace")?;
        let started = |line: &&str| super::scale::started(line);
        Ok(Lap {
            took: Duration::ZERO,
            ok,
            processes: text.lines().filter(started).count(),
        })
    };
    let add = count(traced.add(&network, &mut attachment).is_ok())?;
    let check = count(traced.check(&network, &attachment).is_ok())?;
    let del = count(traced.del(&network, &attachment).is_ok())?;
    Ok(Some(Cycle { add, check, del }))
}

fn container(host: &Host, name: &str, port: u32) -> Result<(Netns, Attachment)> {
    let netns = host.container(name)?;
    let port = u16::try_from(port).unwrap_or(u16::MAX);
    let attachment = Attachment::new(&format!("5d3c0ff3-{name}"), netns.path())
        .capability("portMappings", nomad_ports(port, 80));
    Ok((netns, attachment))
}

fn time(work: impl FnOnce() -> bool) -> Lap {
    let started = Instant::now();
    let ok = work();
    Lap {
        took: started.elapsed(),
        ok,
        processes: 0,
    }
}
