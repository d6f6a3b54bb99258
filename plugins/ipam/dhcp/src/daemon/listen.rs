//! The daemon's socket: from systemd, or made here.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use listenfd::ListenFd;

/// A socket to listen at.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    /// The file that goes with it; none if it is systemd's.
    file: Option<PathBuf>,
}

impl Listener {
    /// Takes the one socket that systemd hands over, else makes one at `path`. A file there at which nobody listens is
    /// what a killed daemon left, and replaced.
    ///
    /// The caller holds the lock on the leases, so no other daemon of this kind does the same.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut handed = ListenFd::from_env();
        if handed.len() > 1 {
            return Err(io::Error::other(format!(
                "systemd hands over {} sockets, and one is expected",
                handed.len()
            )));
        }
        if let Some(socket) = handed.take_unix_listener(0)? {
            socket.set_nonblocking(true)?;
            return Ok(Self { socket, file: None });
        }
        if let Some(parent) = path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(parent)?;
        }
        let socket = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale(path) => {
                fs::remove_file(path)?;
                UnixListener::bind(path)
            }
            other => other,
        }?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            file: Some(path.to_owned()),
        })
    }

    /// The socket.
    pub fn socket(&self) -> &UnixListener {
        &self.socket
    }
}

/// Whether a socket's file is all that there is of it.
fn is_stale(path: &Path) -> bool {
    UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // Somebody may have removed it before.
            let _ = fs::remove_file(file);
        }
    }
}
