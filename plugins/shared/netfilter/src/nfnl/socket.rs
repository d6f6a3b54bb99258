//! A blocking netlink socket of the netfilter family.

use std::io;

use netlink_sys::Socket as Raw;
use netlink_sys::protocols::NETLINK_NETFILTER;
use nix::sys::socket::{setsockopt, sockopt};

use super::attr::Reader;
use super::batch::{Batch, Refusal};
use super::consts::{flag, generation, msg};
use super::message::{Family, Message, NLMSG_HEADER, Request};
use super::trace;
use crate::error::{Error, Result};

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// NLM_F_ACK_TLVS: extended acknowledgement attributes follow.
const ACK_TLVS: u16 = 0x200;
/// NLM_F_CAPPED: the request is not repeated in the acknowledgement.
const CAPPED: u16 = 0x100;
/// NLMSGERR_ATTR_MSG.
const ERROR_TEXT: u16 = 1;
/// MSG_DONTWAIT.
const DONT_WAIT: i32 = 0x40;
/// Kernel replies fit into this: it sizes dump messages by it.
const BUFFER: usize = 128 * 1024;
/// What is asked of the kernel for both directions; by default it grants 416 KiB.
const BUFFERS: usize = 4 << 20;
/// How often a dump that a writer disturbed is repeated before we give up.
const DUMP_TRIES: u32 = 200;

/// A socket of the network namespace in which it was opened.
pub struct Socket {
    raw: Raw,
    sequence: u32,
    buffer: Vec<u8>,
}

/// An acknowledgement or error of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ack {
    pub sequence: u32,
    pub errno: i32,
    pub text: Option<String>,
}

impl Socket {
    /// Opens a socket in the calling thread's network namespace.
    pub fn open() -> Result<Self> {
        let what = "open a netfilter netlink socket";
        let io = |source| Error::Io {
            what: what.into(),
            source,
        };
        let mut raw = Raw::new(NETLINK_NETFILTER).map_err(io)?;
        raw.bind_auto().map_err(io)?;
        // Both only make errors shorter or clearer; a kernel without them works as well.
        let _ = raw.set_cap_ack(true);
        let _ = raw.set_ext_ack(true);
        let _ = setsockopt(&raw, sockopt::RcvBuf, &BUFFERS);
        // A batch is one datagram. Beyond the host's limit only the system's root may go.
        let _ = setsockopt(&raw, sockopt::SndBuf, &BUFFERS);
        let _ = setsockopt(&raw, sockopt::SndBufForce, &BUFFERS);
        Ok(Self {
            raw,
            sequence: 1,
            buffer: Vec::with_capacity(BUFFER),
        })
    }

    /// Sends a question with at most one answer. `None` if the object does not exist.
    pub fn get<T>(
        &mut self,
        request: Request,
        what: &str,
        read: impl Fn(Family, &[u8]) -> Option<T>,
    ) -> Result<Option<T>> {
        let found = self.ask(request, what, |family, body, found: &mut Vec<T>| {
            let object =
                read(family, body).ok_or_else(|| Error::Malformed { what: what.into() })?;
            found.push(object);
            Ok(())
        });
        match found {
            Ok(found) => Ok(found.into_iter().next()),
            Err(error) if error.errno() == Some(ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Dumps all objects; repeated when a concurrent change disturbed it. What does not exist is empty.
    pub fn dump<T>(
        &mut self,
        request: &Request,
        what: &str,
        read: impl Fn(Family, &[u8]) -> Option<T>,
    ) -> Result<Vec<T>> {
        for _ in 0..DUMP_TRIES {
            let mut request = request.clone();
            request.flags |= flag::DUMP;
            let dumped = self.ask(request, what, |family, body, found: &mut Vec<T>| {
                found.extend(read(family, body));
                Ok(())
            });
            match dumped {
                Err(error) if error.errno() == Some(ENOENT) => return Ok(Vec::new()),
                Err(error)
                    if error
                        .errno()
                        .is_some_and(|errno| [EINTR, EAGAIN, ENOBUFS].contains(&errno)) => {}
                other => return other,
            }
        }
        Err(Error::Busy {
            what: what.into(),
            reason: format!("{DUMP_TRIES} readings in a row were disturbed by changes"),
        })
    }

    /// The number of the present ruleset generation of this namespace.
    pub fn generation(&mut self) -> Result<u32> {
        let request = Request::nftables(msg::GETGEN, Family::Unspec, 0);
        let found = self.get(request, "ruleset generation", |_, body| {
            Reader::new(body).get(generation::ID)?.u32()
        })?;
        found.ok_or_else(|| Error::Malformed {
            what: "ruleset generation".into(),
        })
    }

    /// Carries out a batch: all of it or nothing.
    pub fn commit(&mut self, batch: Batch) -> std::result::Result<(), Refusal> {
        if batch.is_empty() {
            return Ok(());
        }
        let first = self.sequence;
        trace::tell(|| format!("nftables: {batch}"));
        let (bytes, count) = batch.encode(first).ok_or_else(|| Refusal::of(EMSGSIZE))?;
        self.sequence = self.sequence.wrapping_add(count);
        let number = |error: io::Error| Refusal::of(error.raw_os_error().unwrap_or(EIO));
        self.raw.send(&bytes, 0).map_err(number)?;
        // The kernel has worked through the batch when send returns, so every answer is already in our queue.
        let mut acks = Vec::new();
        while self.receive(DONT_WAIT).map_err(number)? {
            let mut rest = self.buffer.as_slice();
            while let Some(message) = Message::split_off(&mut rest) {
                acks.extend(
                    Ack::read(&message)
                        .filter(|ack| ack.errno != 0 && ack.sequence.wrapping_sub(first) < count),
                );
            }
        }
        let outcome = Refusal::from_acks(first, acks);
        trace::tell(|| match &outcome {
            Ok(()) => "nftables: carried out".to_owned(),
            Err(refusal) => format!("nftables: refused: {refusal:?}"),
        });
        outcome
    }

    /// Sends a request and feeds every answer to `read` until the kernel says it is done.
    fn ask<T>(
        &mut self,
        mut request: Request,
        what: &str,
        mut read: impl FnMut(Family, &[u8], &mut Vec<T>) -> Result<()>,
    ) -> Result<Vec<T>> {
        if request.flags & flag::DUMP != flag::DUMP {
            request.flags |= flag::ACK;
        }
        let sequence = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        let bytes = request
            .encode(sequence)
            .ok_or_else(|| Error::Malformed { what: what.into() })?;
        let io = |source| Error::Io {
            what: format!("read the {what}"),
            source,
        };
        self.raw.send(&bytes, 0).map_err(io)?;
        let (mut found, mut disturbed, mut failed) = (Vec::new(), false, None);
        loop {
            self.receive(0).map_err(io)?;
            let mut rest = self.buffer.as_slice();
            while let Some(message) = Message::split_off(&mut rest) {
                if message.sequence != sequence {
                    continue;
                }
                disturbed |= message.flags & flag::DUMP_INTR != 0;
                if let Some(ack) = Ack::read(&message) {
                    return match (ack.errno, disturbed, failed) {
                        (0, false, None) => Ok(found),
                        (0, false, Some(error)) => Err(error),
                        (0, true, _) => Err(Error::kernel(format!("read the {what}"), EINTR)),
                        (errno, _, _) => Err(ack.into_error(format!("read the {what}"), errno)),
                    };
                }
                if let Some((family, attrs)) = message.body()
                    && let Err(error) = read(family, attrs, &mut found)
                {
                    failed.get_or_insert(error);
                }
            }
        }
    }

    /// Receives one datagram into the buffer. False if there is none and `flags` say not to wait.
    fn receive(&mut self, flags: i32) -> io::Result<bool> {
        loop {
            self.buffer.clear();
            match self.raw.recv(&mut self.buffer, flags) {
                Ok(_) => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if flags == DONT_WAIT && error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Ack {
    /// Reads an acknowledgement, an error or the end of a dump; `None` for any other message.
    fn read(message: &Message<'_>) -> Option<Self> {
        if message.kind != NLMSG_ERROR && message.kind != NLMSG_DONE {
            return None;
        }
        let errno = message
            .payload
            .first_chunk::<4>()
            .map_or(0, |bytes| i32::from_ne_bytes(*bytes));
        let text = (message.flags & ACK_TLVS != 0)
            .then(|| ack_text(message))
            .flatten();
        Some(Self {
            sequence: message.sequence,
            errno: errno.checked_neg().unwrap_or(EIO),
            text,
        })
    }

    fn into_error(self, what: String, errno: i32) -> Error {
        if errno == EPERM {
            return Error::no_permission();
        }
        Error::Kernel {
            what,
            source: io::Error::from_raw_os_error(errno),
            detail: self.text,
        }
    }
}

/// The kernel's words in an extended acknowledgement.
fn ack_text(message: &Message<'_>) -> Option<String> {
    let after_errno = message.payload.get(4..)?;
    let attrs = if message.kind == NLMSG_DONE {
        after_errno
    } else {
        let length = usize::try_from(u32::from_ne_bytes(*after_errno.first_chunk::<4>()?)).ok()?;
        let skip = if message.flags & CAPPED != 0 {
            NLMSG_HEADER
        } else {
            length.next_multiple_of(4)
        };
        after_errno.get(skip..)?
    };
    Reader::new(attrs).get(ERROR_TEXT).map(|attr| attr.text())
}

const EPERM: i32 = 1;
pub(super) const ENOENT: i32 = 2;
pub(super) const EINTR: i32 = 4;
pub(super) const EIO: i32 = 5;
pub(super) const EAGAIN: i32 = 11;
pub(super) const EMSGSIZE: i32 = 90;
pub(super) const ENOBUFS: i32 = 105;
