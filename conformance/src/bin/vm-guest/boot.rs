//! The first process of the machine.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use conformance::error::{Context, Result};
use nix::kmod::{ModuleInitFlags, finit_module};
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};

use crate::checks;
use crate::report::Report;

/// The second serial line: the first is the kernel's.
const OUTPUT: &str = "/dev/ttyS1";

/// The lists of the demo, each of them a check.
const DEMO_LISTS: [&str; 4] = ["a", "b", "c", "d"];

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
    let words = selection()?;
    let chosen =
        |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    for check in checks::all().filter(|check| chosen(check.name)) {
        report.check(
            check.name,
            &["/bin/sandbox", "/bin/vm-guest", "--check", check.name],
        )?;
    }
    for list in DEMO_LISTS {
        let name = format!("demo_{list}");
        if chosen(&name) {
            report.check(&name, &["/bin/demo", "--plugins", "/opt/cni/bin", list])?;
        }
    }
    for program in files("/tests")? {
        report.program(&program)?;
    }
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

/// The words behind `ferrule.select=` on the kernel's command line.
fn selection() -> Result<Vec<String>> {
    let line = fs::read_to_string("/proc/cmdline").doing(|| "read the kernel's command line")?;
    let words = line
        .split_whitespace()
        .find_map(|word| word.strip_prefix("ferrule.select="))
        .unwrap_or_default();
    Ok(words
        .split(',')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect())
}
