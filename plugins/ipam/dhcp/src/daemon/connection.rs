//! A connection to the daemon: one call, and its reply.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::clock::Time;
use crate::gob::Decoder;
use crate::rpc::{self, Arguments, Call, HELLO, REFUSAL, WELCOME};

/// How long a caller may take to say what it wants, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most that is kept of what a caller says, in bytes.
const INPUT_MAX: usize = 8 << 20;
/// The longest greeting, in bytes.
const GREETING_MAX: usize = 8 << 10;

/// How far a connection has come.
#[derive(Debug)]
enum Stage {
    /// It has said nothing yet.
    Greeting,
    /// It is to say what it wants.
    Listening { call: Option<Call> },
    /// Its call is being worked on.
    Waiting,
    /// It gets its reply, and that is all.
    Replying,
}

/// What comes of something that was heard.
#[derive(Debug)]
pub enum Heard {
    /// Nothing yet.
    Nothing,
    /// A whole call.
    Call(Call, Arguments),
    /// The caller is gone, or talks nonsense.
    End,
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    input: Vec<u8>,
    output: Vec<u8>,
    decoder: Decoder,
    stage: Stage,
    /// When the caller's patience with us ends.
    deadline: Option<Time>,
}

impl Connection {
    /// A connection that was just made.
    pub fn new(stream: UnixStream, now: Time) -> std::io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            input: Vec::new(),
            output: Vec::new(),
            decoder: Decoder::default(),
            stage: Stage::Greeting,
            deadline: Some(now + PATIENCE),
        })
    }

    /// When it is to be closed if nothing happens.
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Whether there is something to be written.
    pub fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Whether somebody waits at its other end for what the keeper says.
    pub fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting)
    }

    /// Reads what there is.
    pub fn read(&mut self) -> Heard {
        let mut buffer = [0; 16 << 10];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Heard::End,
                Ok(size) => self.input.extend(buffer.get(..size).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Heard::End,
            }
            if self.input.len() > INPUT_MAX {
                return Heard::End;
            }
        }
        self.understand()
    }

    fn understand(&mut self) -> Heard {
        if matches!(self.stage, Stage::Greeting) {
            let Some(length) = rpc::http_head(&self.input) else {
                return if self.input.len() > GREETING_MAX {
                    Heard::End
                } else {
                    Heard::Nothing
                };
            };
            // The version of HTTP is of no concern.
            let asked = HELLO.get(..b"CONNECT /_goRPC_ ".len()).unwrap_or(HELLO);
            let welcome = self.input.starts_with(asked);
            self.input.drain(..length);
            self.output.extend(if welcome { WELCOME } else { REFUSAL });
            self.stage = if welcome {
                Stage::Listening { call: None }
            } else {
                Stage::Replying
            };
        }
        while let Stage::Listening { call } = &mut self.stage {
            let value = match self.decoder.next(&mut self.input) {
                Ok(Some(value)) => value,
                Ok(None) => break,
                Err(error) => {
                    skel::log::warn(format_args!("a caller talks nonsense: {error}"));
                    return Heard::End;
                }
            };
            match call.take() {
                None => *call = Some(Call::read(&value)),
                Some(header) => {
                    self.stage = Stage::Waiting;
                    self.deadline = None;
                    return Heard::Call(header, Arguments::read(&value));
                }
            }
        }
        Heard::Nothing
    }

    /// Puts the reply in.
    pub fn reply(&mut self, reply: &[u8], now: Time) {
        self.output.extend(reply);
        self.stage = Stage::Replying;
        self.deadline = Some(now + PATIENCE);
    }

    /// Writes what there is; false when the connection has come to its end.
    pub fn write(&mut self) -> bool {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(size) => drop(self.output.drain(..size)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        !matches!(self.stage, Stage::Replying)
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
