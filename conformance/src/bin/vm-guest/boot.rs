//! The first process of the machine.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use conformance::error::{Context, Result};
use nix::kmod::{ModuleInitFlags, finit_module};
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};

use crate::jobs;
use crate::report::Report;

/// The second serial line: the first is the kernel's.
const OUTPUT: &str = "/dev/ttyS1";

/// Never returns in a machine: it ends by a restart, which QEMU was told to take for the end.
pub fn first_process() -> ExitCode {
    if let Err(error) = run() {
        // The kernel's console is all there is if the machine could not be got ready.
        eprintln!("vm-guest: {error}");
    }
    nix::unistd::sync();
    let _ = reboot(RebootMode::RB_AUTOBOOT);
    ExitCode::FAILURE
}

fn run() -> Result<()> {
    mount_all()?;
    load_modules()?;
    let output = File::options()
        .write(true)
        .open(OUTPUT)
        .doing(|| format!("open {OUTPUT}"))?;
    let mut report = Report::new(output);
    report.line(&format!("Linux {}", kernel_release()?))?;
    let orders = fs::read_to_string("/proc/cmdline").doing(|| "read the kernel's command line")?;
    let every = order(&orders, "every").unwrap_or("1");
    let words: Vec<&str> = order(&orders, "select")
        .unwrap_or_default()
        .split(',')
        .filter(|word| !word.is_empty())
        .collect();
    let jobs = jobs::all(every);
    let (chosen, others): (Vec<_>, Vec<_>) = jobs
        .iter()
        .partition(|job| words.is_empty() || words.iter().any(|word| job.name.contains(word)));
    for job in chosen {
        report.check(&job.name, &job.command, job.shown)?;
    }
    for program in files("/tests")? {
        report.program(&program)?;
    }
    let others: Vec<&str> = others.iter().map(|job| job.name.as_str()).collect();
    report.skip(&others)?;
    report.summary()
}

fn mount_all() -> Result<()> {
    for (kind, at) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/run"),
        ("tmpfs", "/tmp"),
    ] {
        mount(Some(kind), at, Some(kind), MsFlags::empty(), None::<&str>)
            .doing(|| format!("mount {at}"))?;
    }
    Ok(())
}

/// The modules are numbered in the order in which they can be loaded.
fn load_modules() -> Result<()> {
    for path in files("/modules")? {
        let file = File::open(&path).doing(|| format!("open {}", path.display()))?;
        finit_module(&file, c"", ModuleInitFlags::empty())
            .doing(|| format!("load {}", path.display()))?;
    }
    Ok(())
}

fn files(directory: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).doing(|| format!("list {directory}"))?;
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.map(|e| e.path()))
        .collect::<io::Result<_>>()
        .doing(|| format!("list {directory}"))?;
    paths.sort();
    Ok(paths)
}

fn kernel_release() -> Result<String> {
    let file = Path::new("/proc/sys/kernel/osrelease");
    Ok(fs::read_to_string(file)
        .doing(|| format!("read {}", file.display()))?
        .trim()
        .to_owned())
}

/// What stands behind `ferrule.KEY=` on the kernel's command line.
fn order<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split_whitespace()
        .filter_map(|word| word.strip_prefix("ferrule."))
        .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}
