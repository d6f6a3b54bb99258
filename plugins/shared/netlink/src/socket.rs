//! The blocking `NETLINK_ROUTE` socket and the request-and-answer protocol on it (netlink(7), rtnetlink(7)).

use std::cell::{Cell, RefCell};
use std::io;

use netlink_packet_core::{
    NLM_F_ACK_TLVS, NLM_F_CAPPED, NLM_F_DUMP, NLM_F_DUMP_INTR, NLMSG_ALIGNTO,
};
use netlink_sys::{Socket as RawSocket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};

use crate::error::{Error, Result};
use crate::nla;
use crate::request::Request;
use crate::trace;

/// As much as the kernel puts into one datagram of a dump.
const ANSWER_SIZE: usize = 32 * 1024;

/// How many requests are sent at once: the answers to all of them have to find room in the socket's receive buffer.
const TOGETHER: usize = 64;

/// How often a listing that changed while it was read is read again.
const DUMP_TRIES: u32 = 20;

/// The kernel answers while it takes the request, so an answer that is not there after this long was lost.
const ANSWER_TIMEOUT: i64 = 10;

const HEADER_LEN: usize = 16;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// `NLMSGERR_ATTR_MSG`: the kernel's explanation.
const ATTR_MSG: u16 = 1;

/// How the kernel judged one request: its error, or nothing.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) errno: Errno,
    pub(crate) message: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Socket {
    raw: RawSocket,
    sequence: Cell<u32>,
    outgoing: RefCell<Vec<u8>>,
    incoming: RefCell<Vec<u8>>,
}

/// One message of an answer.
struct Frame<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    payload: &'a [u8],
}

impl Socket {
    /// Opens the socket in the namespace the thread stands in.
    pub(crate) fn open() -> io::Result<Self> {
        let raw = RawSocket::new(NETLINK_ROUTE)?;
        // Each of these is a convenience that older kernels do without.
        let _ = raw.set_ext_ack(true);
        let _ = raw.set_cap_ack(true);
        let _ = raw.set_netlink_get_strict_chk(true);
        setsockopt(
            &raw,
            sockopt::ReceiveTimeout,
            &TimeVal::seconds(ANSWER_TIMEOUT),
        )?;
        Ok(Self {
            raw,
            sequence: Cell::new(0),
            outgoing: RefCell::new(Vec::with_capacity(1024)),
            incoming: RefCell::new(Vec::with_capacity(ANSWER_SIZE)),
        })
    }

    /// Sends one request; what the kernel sends back before its verdict goes through `read`.
    pub(crate) fn exchange<T>(
        &self,
        request: &Request,
        read: impl Fn(u16, &[u8]) -> Option<T>,
    ) -> Result<Vec<T>> {
        let tries = if request.flags & NLM_F_DUMP == NLM_F_DUMP {
            DUMP_TRIES
        } else {
            1
        };
        for _ in 0..tries {
            let (answers, whole) = self.exchange_once(request, &read)?;
            if whole {
                return Ok(answers);
            }
        }
        Err(Error::Restless {
            what: request.what,
            object: request.object.clone(),
            tries,
        })
    }

    fn exchange_once<T>(
        &self,
        request: &Request,
        read: impl Fn(u16, &[u8]) -> Option<T>,
    ) -> Result<(Vec<T>, bool)> {
        let sequence = self
            .send(std::slice::from_ref(request))
            .map_err(|e| io_error(request, e))?;
        let mut answers = Vec::new();
        let mut whole = true;
        let mut verdict = None;
        while verdict.is_none() {
            self.receive(|frame| {
                if frame.sequence != sequence {
                    return;
                }
                whole &= frame.flags & NLM_F_DUMP_INTR == 0;
                match frame.kind {
                    NLMSG_ERROR | NLMSG_DONE => verdict = Some(judge(&frame)),
                    kind => answers.extend(read(kind, frame.payload)),
                }
            })
            .map_err(|e| io_error(request, e))?;
        }
        let verdict = verdict.flatten();
        trace::tell(request, verdict.as_ref());
        match verdict {
            Some(verdict) => Err(refused(request, verdict)),
            None => Ok((answers, whole)),
        }
    }

    /// Sends all requests, many in one datagram. The kernel carries them out in order and goes on after a failure.
    pub(crate) fn exchange_all(&self, requests: &[Request]) -> Result<Vec<Result<()>>> {
        let mut verdicts = Vec::with_capacity(requests.len());
        for some in requests.chunks(TOGETHER) {
            verdicts.extend(self.exchange_together(some)?);
        }
        Ok(verdicts)
    }

    fn exchange_together(&self, requests: &[Request]) -> Result<Vec<Result<()>>> {
        let Some(first) = requests.first() else {
            return Ok(Vec::new());
        };
        let last = self.send(requests).map_err(|e| io_error(first, e))?;
        let start = last
            .wrapping_sub(u32::try_from(requests.len()).unwrap_or(u32::MAX))
            .wrapping_add(1);
        let mut verdicts: Vec<Option<Option<Verdict>>> = requests.iter().map(|_| None).collect();
        while verdicts.iter().any(Option::is_none) {
            self.receive(|frame| {
                let position =
                    usize::try_from(frame.sequence.wrapping_sub(start)).unwrap_or(usize::MAX);
                if let (NLMSG_ERROR, Some(slot)) = (frame.kind, verdicts.get_mut(position)) {
                    *slot = Some(judge(&frame));
                }
            })
            .map_err(|e| io_error(first, e))?;
        }
        Ok(requests
            .iter()
            .zip(verdicts)
            .map(|(request, verdict)| {
                let verdict = verdict.flatten();
                trace::tell(request, verdict.as_ref());
                match verdict {
                    Some(verdict) => Err(refused(request, verdict)),
                    None => Ok(()),
                }
            })
            .collect())
    }

    /// Sends the requests under consecutive sequence numbers and gives back the last.
    fn send(&self, requests: &[Request]) -> io::Result<u32> {
        let mut bytes = self.outgoing.borrow_mut();
        bytes.clear();
        let mut sequence = self.sequence.get();
        for request in requests {
            sequence = sequence.wrapping_add(1);
            request.encode(sequence, &mut bytes);
        }
        self.sequence.set(sequence);
        self.raw.send_to(&bytes, &SocketAddr::new(0, 0), 0)?;
        Ok(sequence)
    }

    /// Takes one datagram from the kernel and shows its messages to `see`.
    fn receive(&self, mut see: impl FnMut(Frame<'_>)) -> io::Result<()> {
        let mut bytes = self.incoming.borrow_mut();
        receive_datagram(&self.raw, &mut bytes)?;
        for frame in frames(&bytes) {
            see(frame);
        }
        Ok(())
    }
}

/// Receives one whole datagram that came from the kernel and nobody else.
pub(crate) fn receive_datagram(socket: &RawSocket, bytes: &mut Vec<u8>) -> io::Result<()> {
    loop {
        bytes.clear();
        match socket.recv_from(bytes, nix::libc::MSG_TRUNC) {
            Ok((length, _)) if length > bytes.len() => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "answer larger than its buffer",
                ));
            }
            Ok((_, from)) if from.port_number() == 0 => return Ok(()),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// The (type, payload) of each message in a datagram.
pub(crate) fn messages(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    frames(bytes).map(|frame| (frame.kind, frame.payload))
}

fn frames(mut bytes: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    std::iter::from_fn(move || {
        let header = bytes.first_chunk::<HEADER_LEN>()?;
        let [l0, l1, l2, l3, k0, k1, f0, f1, s0, s1, s2, s3, ..] = *header;
        let length = usize::try_from(u32::from_ne_bytes([l0, l1, l2, l3])).ok()?;
        let payload = bytes.get(HEADER_LEN..length)?;
        bytes = bytes
            .get(length.next_multiple_of(usize::from(NLMSG_ALIGNTO))..)
            .unwrap_or_default();
        Some(Frame {
            kind: u16::from_ne_bytes([k0, k1]),
            flags: u16::from_ne_bytes([f0, f1]),
            sequence: u32::from_ne_bytes([s0, s1, s2, s3]),
            payload,
        })
    })
}

/// Reads `NLMSG_ERROR` (error number 0 is the acknowledgement) and `NLMSG_DONE`.
fn judge(frame: &Frame<'_>) -> Option<Verdict> {
    let code = nla::as_i32(frame.payload).unwrap_or(0);
    if code >= 0 {
        return None;
    }
    let message = (frame.flags & NLM_F_ACK_TLVS != 0)
        .then(|| explanation(frame))
        .flatten();
    Some(Verdict {
        errno: Errno::from_raw(code.saturating_neg()),
        message,
    })
}

/// The kernel's text behind the error number and, in an `NLMSG_ERROR`, the quoted request.
fn explanation(frame: &Frame<'_>) -> Option<String> {
    let quoted = match (frame.kind, frame.flags & NLM_F_CAPPED) {
        (NLMSG_DONE, _) => 0,
        (_, 0) => usize::try_from(nla::as_u32(frame.payload.get(4..)?)?)
            .ok()?
            .next_multiple_of(4),
        _ => HEADER_LEN,
    };
    let attributes = frame.payload.get(4_usize.checked_add(quoted)?..)?;
    nla::attributes(attributes)
        .find(|(kind, _)| *kind == ATTR_MSG)
        .map(|(_, text)| nla::as_text(text))
}

fn refused(request: &Request, verdict: Verdict) -> Error {
    Error::Kernel {
        what: request.what,
        object: request.object.clone(),
        errno: verdict.errno,
        message: verdict.message,
    }
}

fn io_error(request: &Request, source: io::Error) -> Error {
    Error::Io {
        what: request.what,
        object: request.object.clone(),
        source,
    }
}
