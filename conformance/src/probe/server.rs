//! Servers that say who called.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, SockAddr, Socket};

use super::Transport;
use crate::error::{Context, Result};
use crate::net::Netns;

/// A server in a namespace; it ends, and lets go of the namespace, when dropped.
#[derive(Debug)]
pub struct Server {
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server that answers with `name`. It is listening when this returns.
    ///
    /// # Errors
    /// When the address cannot be bound, or the kernel lacks the protocol.
    pub fn start(
        netns: &Netns,
        transport: Transport,
        address: SocketAddr,
        name: &str,
    ) -> Result<Self> {
        Self::start_over(netns, transport, None, address, name)
    }

    /// Like [`Server::start`], for nobody but those who come over a link, which may be a VRF.
    ///
    /// # Errors
    /// As [`Server::start`]; also when the link is not there.
    pub fn start_over(
        netns: &Netns,
        transport: Transport,
        link: Option<&str>,
        address: SocketAddr,
        name: &str,
    ) -> Result<Self> {
        let starting = || format!("serve {transport} at {address}");
        let socket = netns.run(|| listen(transport, link, address).doing(starting))?;
        let (stop, stopped) = UnixStream::pair().doing(starting)?;
        let name = name.to_owned();
        let thread = thread::spawn(move || serve(transport, &socket, &stopped, &name));
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A server thread that panicked has already shown as an unanswered probe.
            let _ = thread.join();
        }
    }
}

fn listen(transport: Transport, link: Option<&str>, address: SocketAddr) -> io::Result<Socket> {
    let (kind, protocol) = transport.kind();
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(transport != Transport::Udp)?;
    if let Some(link) = link {
        socket.bind_device(Some(link.as_bytes()))?;
    }
    socket.bind(&address.into())?;
    if transport != Transport::Udp {
        socket.listen(64)?;
    }
    Ok(socket)
}

fn serve(transport: Transport, socket: &Socket, stopped: &UnixStream, name: &str) {
    loop {
        let mut waiting = [
            PollFd::new(socket.as_fd(), PollFlags::POLLIN),
            PollFd::new(stopped.as_fd(), PollFlags::POLLIN),
        ];
        let ready = poll(&mut waiting, PollTimeout::NONE);
        let [called, ending] = waiting;
        if ending.any() == Some(true) || !matches!(ready, Ok(_) | Err(nix::errno::Errno::EINTR)) {
            return;
        }
        if called.any() == Some(true) {
            // A client that went away again is the client's own failure to report.
            let _ = answer(transport, socket, name);
        }
    }
}

fn answer(transport: Transport, socket: &Socket, name: &str) -> io::Result<()> {
    let text = |peer: &SockAddr| {
        peer.as_socket()
            .map(|peer| format!("{name} {}\n", peer.ip()))
            .unwrap_or_default()
    };
    if transport == Transport::Udp {
        let socket = std::net::UdpSocket::from(socket.try_clone()?);
        let mut question = [0_u8; 64];
        let (_, peer) = socket.recv_from(&mut question)?;
        socket.send_to(text(&peer.into()).as_bytes(), peer)?;
        return Ok(());
    }
    let (mut connection, peer) = socket.accept()?;
    connection.write_all(text(&peer).as_bytes())
}
