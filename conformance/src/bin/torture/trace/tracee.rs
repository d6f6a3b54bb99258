//! Looking into, and writing to, the memory of a stopped process.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

use nix::unistd::Pid;

/// Longest text that is read of a process.
const TEXT: usize = 256;

/// Reads bytes of a stopped process.
pub fn read(pid: Pid, address: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    File::open(format!("/proc/{pid}/mem"))?.read_exact_at(&mut bytes, address)?;
    Ok(bytes)
}

/// Writes bytes into a stopped process.
pub fn write(pid: Pid, address: u64, bytes: &[u8]) -> io::Result<()> {
    fs::OpenOptions::new()
        .write(true)
        .open(format!("/proc/{pid}/mem"))?
        .write_all_at(bytes, address)
}

/// A number of the process's own byte order.
pub fn word(pid: Pid, address: u64) -> io::Result<u64> {
    let bytes = read(pid, address, 8)?;
    Ok(bytes.try_into().map(u64::from_ne_bytes).unwrap_or_default())
}

/// A text that ends with a zero byte; empty when it cannot be read.
pub fn text(pid: Pid, address: u64) -> String {
    let mut bytes = vec![0; TEXT];
    let got =
        File::open(format!("/proc/{pid}/mem")).and_then(|file| file.read_at(&mut bytes, address));
    bytes.truncate(got.unwrap_or(0));
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    bytes.truncate(end);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What a descriptor of the process stands for.
pub fn descriptor(pid: Pid, number: u64) -> String {
    fs::read_link(format!("/proc/{pid}/fd/{number}"))
        .map(|path| path.display().to_string())
        .unwrap_or_default()
}

/// File name of the program that the process runs.
pub fn program(pid: Pid) -> String {
    fs::read_link(format!("/proc/{pid}/exe"))
        .ok()
        .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .unwrap_or_default()
}
