//! The plugin's side of a call to the daemon.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

use crate::error::Error;
use crate::gob::{Decoder, Value};
use crate::rpc::{self, Arguments, HELLO, Header, Method};

/// How long the daemon may take for everything but asking servers.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it may take to get a lease: more than the daemon takes itself (208 s), so that its reason is heard.
const LEASE_PATIENCE: Duration = Duration::from_secs(300);
/// The longest answer, in bytes.
const ANSWER_MAX: usize = 8 << 20;

/// A connection to a daemon that has greeted.
pub struct Caller {
    stream: UnixStream,
    socket: PathBuf,
    input: Vec<u8>,
}

impl Caller {
    /// Connects, and greets.
    pub fn connect(socket: &Path) -> Result<Self, Error> {
        let unreachable = |source| Error::Unreachable {
            socket: socket.to_owned(),
            source,
        };
        let mut caller = Self {
            stream: open(socket).map_err(unreachable)?,
            socket: socket.to_owned(),
            input: Vec::new(),
        };
        let deadline = Instant::now() + PATIENCE;
        caller.stream.write_all(HELLO).map_err(unreachable)?;
        let length = loop {
            match rpc::http_head(&caller.input) {
                Some(length) => break length,
                None => caller.read(deadline)?,
            }
        };
        let greeting: Vec<u8> = caller.input.drain(..length).collect();
        let greeting = String::from_utf8_lossy(&greeting).into_owned();
        if !greeting.contains(" 200 Connected to Go RPC") {
            return Err(Error::Stranger {
                socket: caller.socket,
                why: format!("it says {:?}", greeting.lines().next().unwrap_or_default()),
            });
        }
        Ok(caller)
    }

    /// Makes the connection's one call.
    pub fn call(mut self, method: Method, arguments: &Arguments) -> Result<Value, Error> {
        let patience = match method {
            Method::Allocate => LEASE_PATIENCE,
            _ => PATIENCE,
        };
        let deadline = Instant::now() + patience;
        let call = rpc::call(method, arguments);
        self.stream
            .write_all(&call)
            .map_err(|source| Error::Unreachable {
                socket: self.socket.clone(),
                source,
            })?;
        let mut decoder = Decoder::default();
        let header = Header::read(&self.next(&mut decoder, deadline)?);
        if !header.error.is_empty() {
            return Err(Error::Refused(header.error));
        }
        self.next(&mut decoder, deadline)
    }

    fn next(&mut self, decoder: &mut Decoder, deadline: Instant) -> Result<Value, Error> {
        loop {
            match decoder.next(&mut self.input) {
                Ok(Some(value)) => return Ok(value),
                Ok(None) => self.read(deadline)?,
                Err(error) => return Err(Error::stranger(self.socket.clone(), &error)),
            }
        }
    }

    /// Reads some more.
    fn read(&mut self, deadline: Instant) -> Result<(), Error> {
        let mut buffer = [0; 16 << 10];
        match self.read_some(&mut buffer, deadline) {
            Ok(0) => Err(Error::Stranger {
                socket: self.socket.clone(),
                why: "it hangs up without an answer".to_owned(),
            }),
            Ok(size) if self.input.len() + size <= ANSWER_MAX => {
                self.input.extend(buffer.get(..size).unwrap_or_default());
                Ok(())
            }
            Ok(_) => Err(Error::Stranger {
                socket: self.socket.clone(),
                why: "its answer has no end".to_owned(),
            }),
            Err(source) => Err(Error::Unreachable {
                socket: self.socket.clone(),
                source,
            }),
        }
    }

    fn read_some(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "it does not answer",
                ));
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.stream.read(buffer) {
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) => {}
                other => return other,
            }
        }
    }
}

/// A connection that waits neither for its making nor for anything to be written for long.
fn open(path: &Path) -> io::Result<UnixStream> {
    let address = UnixAddr::new(path)?;
    let file = socket(
        AddressFamily::Unix,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    let seconds = i64::try_from(PATIENCE.as_secs()).unwrap_or(i64::MAX);
    setsockopt(&file, sockopt::SendTimeout, &TimeVal::seconds(seconds))?;
    connect(std::os::fd::AsRawFd::as_raw_fd(&file.as_fd()), &address)?;
    Ok(UnixStream::from(file))
}
