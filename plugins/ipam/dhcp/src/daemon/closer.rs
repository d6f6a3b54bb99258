//! Closing packet sockets, each of which waits for the kernel for 10 ms and more, on a thread that nobody waits for.

use std::sync::mpsc::{Sender, channel};
use std::thread;

use netlink::PacketSocket;

/// The thread's inbox.
#[derive(Debug)]
pub struct Closer(Sender<PacketSocket>);

impl Closer {
    /// Starts the thread; it ends with this value.
    pub fn start() -> std::io::Result<Self> {
        let (sender, receiver) = channel::<PacketSocket>();
        thread::Builder::new()
            .name("closer".to_owned())
            .spawn(move || receiver.into_iter().for_each(drop))?;
        Ok(Self(sender))
    }

    /// Closes a socket some time soon.
    pub fn close(&self, socket: PacketSocket) {
        // Without the thread it is closed here.
        drop(self.0.send(socket));
    }
}
