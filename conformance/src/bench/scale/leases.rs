//! host-local alone, with many leases there already.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::cycle::{Cycle, cost};
use crate::chain::{Attachment, Runtime};
use crate::error::{Context, Result};
use crate::sandbox::{PRIVATE_TMP, Sandbox};

/// First address of the range: 10.64.0.2 in a /15, so that 60,000 leases and more fit.
const FIRST: u32 = 0x0a40_0002;

/// How the leases lie in the range.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Filling {
    /// Behind the last one everything is free.
    Fresh,
    /// One address is free, and the search for it begins right behind it.
    NearlyFull,
}

/// ADD, CHECK and DEL of host-local in a directory with so many leases, by each of the plugin directories in
/// turn. The directories are written as the reference set leaves them.
///
/// # Errors
/// Outside a sandbox, or when the directories cannot be made.
pub fn leases(
    plugins: &[PathBuf],
    count: u32,
    filling: Filling,
    rounds: u32,
) -> Result<Vec<Vec<Cycle>>> {
    let _sandbox = Sandbox::require()?;
    let mut places = Vec::new();
    for (number, directory) in plugins.iter().enumerate() {
        let data = Path::new(PRIVATE_TMP).join(format!("leases-{count}-{filling:?}-{number}"));
        fill(&data.join("net"), count, filling)?;
        places.push((
            Runtime::new(directory),
            config(&data, count, filling),
            data,
            Vec::new(),
        ));
    }
    for round in 0..=rounds {
        for (runtime, config, _, cycles) in &mut places {
            let cycle = cycle(runtime, config, round)?;
            // The first one may build an index; whoever made the directory did not.
            if round > 0 {
                cycles.push(cycle);
            }
        }
    }
    for (.., data, _) in &places {
        fs::remove_dir_all(data).doing(|| format!("remove {}", data.display()))?;
    }
    Ok(places.into_iter().map(|(.., cycles)| cycles).collect())
}

/// Writes lease files, and the file of the last address given.
fn fill(directory: &Path, count: u32, filling: Filling) -> Result<()> {
    let writing = || format!("write leases to {}", directory.display());
    fs::create_dir_all(directory).doing(writing)?;
    let free = match filling {
        Filling::Fresh => None,
        // In the middle, so that it is neither first nor last of anything.
        Filling::NearlyFull => Some(count / 2),
    };
    for number in 0..=count {
        let taken = match free {
            None => number < count,
            Some(free) => number != free,
        };
        if taken {
            let text = format!("other-{number}\r\neth0");
            fs::write(directory.join(address(number)), text).doing(writing)?;
        }
    }
    let last = address(free.unwrap_or(count.saturating_sub(1)));
    fs::write(directory.join("last_reserved_ip.0"), last).doing(writing)?;
    fs::write(directory.join("lock"), "").doing(writing)
}

fn address(number: u32) -> String {
    Ipv4Addr::from(FIRST + number).to_string()
}

fn config(data: &Path, count: u32, filling: Filling) -> Value {
    let end = match filling {
        Filling::Fresh => FIRST + 120_000,
        Filling::NearlyFull => FIRST + count,
    };
    json!({"cniVersion": "1.0.0", "name": "net", "ipam": {"type": "host-local", "dataDir": data,
        "ranges": [[{"subnet": "10.64.0.0/15", "rangeStart": address(0), "rangeEnd": Ipv4Addr::from(end).to_string()}]]}})
}

fn cycle(runtime: &Runtime, config: &Value, round: u32) -> Result<Cycle> {
    let attachment = Attachment::new(&format!("lease-{round}"), Path::new("/run/netns/none"));
    let mut config = config.clone();
    let mut result = None;
    let run = |verb: &str, config: &Value| {
        let call = runtime.call("host-local", verb, &attachment)?;
        call.stdin(config.to_string()).run()
    };
    let add = cost(|| match run("ADD", &config) {
        Ok(answer) => {
            result = answer.json();
            answer.ok()
        }
        Err(_) => false,
    })?;
    if let (Some(object), Some(result)) = (config.as_object_mut(), result) {
        object.insert("prevResult".into(), result);
    }
    let check = cost(|| run("CHECK", &config).is_ok_and(|answer| answer.ok()))?;
    let del = cost(|| run("DEL", &config).is_ok_and(|answer| answer.ok()))?;
    Ok(Cycle { add, check, del })
}
