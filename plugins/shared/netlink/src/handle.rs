//! A handle on one network namespace.

use std::marker::PhantomData;
use std::path::Path;

use crate::error::{Error, Result};
use crate::netns::{Netns, refuse_if_stranded};
use crate::request::Request;
use crate::socket::Socket;

/// Talks rtnetlink with one network namespace, and is the door for what has to be done standing in it
/// ([`Handle::inside`]).
///
/// The socket belongs to its namespace for good, so every call goes to the right place wherever the thread stands.
/// A handle stays on the thread that made it, because "the host" is the namespace of that thread.
#[derive(Debug)]
pub struct Handle {
    pub(crate) socket: Socket,
    place: Option<Netns>,
    one_thread: PhantomData<*const ()>,
}

impl Handle {
    /// A handle on the namespace the thread stands in.
    ///
    /// # Errors
    /// If the socket cannot be opened.
    pub fn host() -> Result<Self> {
        refuse_if_stranded(Path::new("/proc/thread-self/ns/net"))?;
        Ok(Self {
            socket: open_socket("the host")?,
            place: None,
            one_thread: PhantomData,
        })
    }

    /// A handle on another namespace. The thread enters it just to open the socket.
    ///
    /// # Errors
    /// If the namespace cannot be entered or left, or the socket cannot be opened.
    pub fn open(netns: &Netns) -> Result<Self> {
        let socket = netns.run(|| open_socket(&netns.path().display().to_string()))??;
        Ok(Self {
            socket,
            place: Some(netns.clone()),
            one_thread: PhantomData,
        })
    }

    /// The namespace, unless this is a handle on the host.
    #[must_use]
    pub fn netns(&self) -> Option<&Netns> {
        self.place.as_ref()
    }

    /// Runs `body` while the thread stands in this handle's namespace: for sysctls and raw sockets.
    ///
    /// # Errors
    /// As [`Netns::run`].
    pub fn inside<T>(&self, body: impl FnOnce() -> T) -> Result<T> {
        match &self.place {
            Some(netns) => netns.run(body),
            None => Ok(body()),
        }
    }

    /// Carries out one change.
    ///
    /// # Errors
    /// [`Error::Kernel`] with the kernel's reason.
    pub fn execute(&self, request: &Request) -> Result<()> {
        self.socket.exchange(request, |_, _| None::<()>).map(drop)
    }

    /// Carries out several changes in one system call, in order, and gives a verdict for each. A failure does not stop
    /// those behind it, so they must not depend on one another unless a half-done list is harmless to undo.
    ///
    /// # Errors
    /// Only if the socket itself fails; the verdicts are in the list.
    pub fn execute_each(&self, requests: &[Request]) -> Result<Vec<Result<()>>> {
        self.socket.exchange_all(requests)
    }

    /// As [`Handle::execute_each`], reduced to the first failure.
    ///
    /// # Errors
    /// The first failure.
    pub fn execute_all(&self, requests: &[Request]) -> Result<()> {
        self.socket.exchange_all(requests)?.into_iter().collect()
    }
}

fn open_socket(place: &str) -> Result<Socket> {
    Socket::open().map_err(|source| Error::Io {
        what: "open a netlink socket in",
        object: place.to_owned(),
        source,
    })
}
