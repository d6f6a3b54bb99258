//! Netlink messages on their way between a process and the kernel.
//!
//! A refusal by the kernel is made real: the type of the message is changed to one that does not
//! exist before the kernel sees it, so nothing of it is carried out, and the error in the kernel's
//! answer is changed to the one that was asked for.

use std::io;

use nix::errno::Errno;
use nix::libc;
use nix::unistd::Pid;

use super::registers::Frame;
use super::tracee;

/// Length of `struct nlmsghdr` of `linux/netlink.h`.
const HEADER: usize = 16;
/// `NLMSG_ERROR`.
const ERROR: u16 = 2;
/// Shorter messages of the types 16 and 17 are the brackets of an nf_tables batch
/// (`NFNL_MSG_BATCH_BEGIN` and `_END`), longer ones are `RTM_NEWLINK` and `RTM_DELLINK`.
const BRACKET: usize = 32;

/// A message in the memory of a process.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Where its header is.
    address: u64,
    /// `nlmsg_type`.
    pub kind: u16,
    /// `nlmsg_seq`.
    pub sequence: u32,
    length: usize,
}

/// The messages that a call sends, if that is what it does; brackets of batches are left out.
pub fn sent(pid: Pid, frame: &Frame) -> Vec<Message> {
    let [_, first, second, ..] = frame.arguments;
    let buffers = match frame.number {
        libc::SYS_sendto => vec![(first, second)],
        libc::SYS_sendmsg => vectors(pid, first).unwrap_or_default(),
        _ => Vec::new(),
    };
    let all = buffers
        .into_iter()
        .flat_map(|(address, length)| walk(pid, address, length));
    all.filter(|one| !(matches!(one.kind, 16 | 17) && one.length < BRACKET))
        .collect()
}

/// Makes a message one that the kernel does not know, within its subsystem.
pub fn spoil(pid: Pid, message: &Message) -> io::Result<()> {
    let kind = message.kind | 0xff;
    tracee::write(pid, message.address + 4, &kind.to_ne_bytes())
}

/// Changes the error in the kernel's answer to the message of this sequence number, if the call
/// has just received it.
pub fn answer(pid: Pid, frame: &Frame, got: i64, sequence: u32, errno: Errno) -> io::Result<()> {
    let [_, first, ..] = frame.arguments;
    let Ok(got) = u64::try_from(got) else {
        return Ok(());
    };
    let buffers = match frame.number {
        libc::SYS_recvfrom => vec![(first, got)],
        libc::SYS_recvmsg => vectors(pid, first)?
            .into_iter()
            .map(|(address, length)| (address, length.min(got)))
            .collect(),
        _ => return Ok(()),
    };
    for (address, length) in buffers {
        for one in walk(pid, address, length) {
            if one.kind == ERROR && one.sequence == sequence {
                let refusal = -(errno as i32);
                tracee::write(pid, one.address + HEADER as u64, &refusal.to_ne_bytes())?;
            }
        }
    }
    Ok(())
}

/// The buffers of a `struct msghdr`.
fn vectors(pid: Pid, header: u64) -> io::Result<Vec<(u64, u64)>> {
    let list = tracee::word(pid, header + 16)?;
    let count = tracee::word(pid, header + 24)?.min(64);
    (0..count)
        .map(|i| {
            Ok((
                tracee::word(pid, list + i * 16)?,
                tracee::word(pid, list + i * 16 + 8)?,
            ))
        })
        .collect()
}

/// The messages in a buffer; none if it holds anything else.
fn walk(pid: Pid, address: u64, length: u64) -> Vec<Message> {
    let Ok(bytes) = tracee::read(pid, address, usize::try_from(length).unwrap_or(0)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(header) = bytes.get(at..at + HEADER) {
        let number = |from: usize| {
            let four = header
                .get(from..from + 4)
                .and_then(|part| part.try_into().ok());
            u32::from_ne_bytes(four.unwrap_or_default())
        };
        let length = number(0) as usize;
        if length < HEADER || at + length > bytes.len() {
            return Vec::new();
        }
        found.push(Message {
            address: address + at as u64,
            kind: (number(4) & 0xffff) as u16,
            sequence: number(8),
            length,
        });
        at += length.next_multiple_of(4);
    }
    found
}
