//! The machine itself: QEMU with an emulated processor, the kernel's console in a file, the guest's report on our output.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use conformance::Result;
use conformance::error::{Context, Error};

use crate::kernel::Kernel;

const QEMU: &str = "qemu-system-x86_64";

/// How the guest's last line counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Summary {
    pub passed: u32,
    pub failed: u32,
    pub skipped: u32,
}

/// Boots, shows the guest's report and gives its summary; none if the guest did not get that far.
pub fn boot(
    kernel: &Kernel,
    image: &Path,
    orders: &str,
    log: &Path,
    limit: Duration,
) -> Result<Option<Summary>> {
    let mut command = Command::new(QEMU);
    command
        .args([
            "-accel",
            "tcg",
            "-cpu",
            "max",
            "-smp",
            "2",
            "-m",
            "1024",
            "-no-reboot",
            "-nodefaults",
            "-display",
            "none",
        ])
        .arg("-kernel")
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(image)
        .arg("-append")
        .arg(format!("console=ttyS0 panic=-1 loglevel=6 {orders}"))
        .arg("-serial")
        .arg(format!("file:{}", log.display()))
        .args(["-serial", "stdio"])
        .args(cards())
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut machine = command
        .spawn()
        .doing(|| format!("start {QEMU} (Debian package qemu-system-x86)"))?;
    let (send, lines) = mpsc::channel();
    if let Some(output) = machine.stdout.take() {
        thread::spawn(move || {
            for line in BufReader::new(output)
                .split(b'\n')
                .map_while(std::io::Result::ok)
            {
                if send
                    .send(String::from_utf8_lossy(&line).trim_end().to_owned())
                    .is_err()
                {
                    break;
                }
            }
        });
    }
    let end = Instant::now() + limit;
    let mut summary = None;
    loop {
        match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                println!("{line}");
                summary = read_summary(&line).or(summary);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let _ = machine.kill();
                let _ = machine.wait();
                return Err(Error::Timeout {
                    program: QEMU.into(),
                    limit,
                    state: "its console".to_owned(),
                });
            }
        }
    }
    machine.wait().doing(|| format!("wait for {QEMU}"))?;
    Ok(summary)
}

/// Two network cards on one segment.
fn cards() -> impl Iterator<Item = String> {
    ["01", "02"].into_iter().flat_map(|number| {
        [
            "-netdev".to_owned(),
            format!("hubport,id=card{number},hubid=0"),
            "-device".to_owned(),
            // The machine does not boot from it, and Debian has the program for that in another package.
            format!("virtio-net-pci,netdev=card{number},mac=02:00:00:00:ca:{number},romfile="),
        ]
    })
}

/// Reads `N passed, N failed, N skipped`.
fn read_summary(line: &str) -> Option<Summary> {
    let (passed, rest) = line.split_once(" passed, ")?;
    let (failed, rest) = rest.split_once(" failed, ")?;
    let skipped = rest.strip_suffix(" skipped")?;
    Some(Summary {
        passed: passed.parse().ok()?,
        failed: failed.parse().ok()?,
        skipped: skipped.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_line_is_a_summary() {
        assert_eq!(
            read_summary("12 passed, 3 failed, 0 skipped"),
            Some(Summary {
                passed: 12,
                failed: 3,
                skipped: 0
            })
        );
        for line in [
            "",
            "passed",
            "12 passed",
            "12 passed, 3 failed",
            "x passed, 3 failed, 0 skipped",
            "test result: ok. 3 passed; 0 failed; 0 ignored",
        ] {
            assert_eq!(read_summary(line), None, "{line}");
        }
    }
}
