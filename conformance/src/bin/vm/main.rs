//! Runs checks on another kernel: boots Debian's in a virtual machine that is emulated, not virtualised, so that neither
//! `/dev/kvm` nor root is needed.
//!
//! `cargo run -p conformance --bin vm -- [SELECTION...]` runs the checks whose names contain one of the words, all of them
//! without any. `--tests CRATE` runs the tests of a workspace crate in there too. The last line is
//! `N passed, N failed, N skipped`; a run without a selection in which anything was skipped has failed, and what this machine
//! or the kernel lacks is an error before the machine starts.

mod cpio;
mod image;
mod kernel;
mod machine;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use conformance::{Error, Result};

/// Runs checks of the plugins on another kernel.
#[derive(Debug, Parser)]
struct Options {
    /// Words; the checks whose names contain one of them run. All run without any.
    selection: Vec<String>,
    /// Runs the tests of this workspace crate as well (may be repeated).
    #[arg(long = "tests", value_name = "CRATE")]
    tests: Vec<String>,
    /// Runs the checks with the plugins of this directory instead of our own.
    #[arg(long, value_name = "DIRECTORY")]
    plugins: Option<PathBuf>,
    /// Debian package of the kernel, or of the newest kernel of its kind.
    #[arg(long, default_value = "linux-image-cloud-amd64")]
    kernel_package: String,
    /// Tortures the plugins that many kernels cannot test at every so many of their calls.
    #[arg(long, value_name = "N", default_value_t = 197)]
    every: usize,
    /// How long the machine may take, in seconds.
    #[arg(long, default_value_t = 3600)]
    limit: u64,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("vm: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether everything passed.
fn run(options: &Options) -> Result<bool> {
    let programs = tools::build()?;
    let kernel = kernel::Kernel::provide(&programs.cache, &options.kernel_package)?;
    let image = image::write(options, &programs, &kernel)?;
    let words = options.selection.join(",");
    let orders = format!("ferrule.select={words} ferrule.every={}", options.every);
    let limit = Duration::from_secs(options.limit);
    let summary = machine::boot(
        &kernel,
        &image,
        &orders,
        &programs.cache.join("kernel.log"),
        limit,
    )?;
    match summary {
        Some(summary) if summary.passed == 0 && summary.failed == 0 => Err(Error::Missing {
            what: format!("a check whose name contains one of {:?}", options.selection),
        }),
        Some(summary) => {
            let whole = options.selection.is_empty();
            Ok(summary.failed == 0 && !(whole && summary.skipped > 0))
        }
        None => Err(Error::Missing {
            what: format!(
                "a summary: the machine ended early; what its kernel said is in {}",
                programs.cache.join("kernel.log").display()
            ),
        }),
    }
}
