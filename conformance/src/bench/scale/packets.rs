//! Packets through the host: how many a second of one processor.
//!
//! Sender, host and receiver share the machine, and a packet's whole way is walked by the sender's own
//! system call. So the sender's processor time is counted, which does not change when others use the
//! machine as well; the clock would.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::crowd::{Crowd, FIRST_PORT};
use crate::error::{Context, Error, Result};
use crate::facts::addresses;
use crate::net::{HOST_V4, Netns, OUTSIDE_V4};

/// Datagrams in one go of a single flow.
const FLOOD: u32 = 40_000;
/// New flows in one go. Each leaves an entry in the host's connection tracking for half a minute.
const FLOWS: u32 = 1_500;
const PORT: u16 = 7100;
const PAYLOAD: [u8; 64] = [0; 64];

/// Packets a second of the sender's processor time.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct PacketRates {
    /// One flow from the last container to the outside, masqueraded.
    pub flood: f64,
    /// New flows from the last container to the outside: every packet meets the rules for new ones.
    pub flows: f64,
    /// New flows from the outside to the last container's published port.
    pub published: f64,
}

impl Crowd<'_> {
    /// Sends packets from and to the container that came last.
    ///
    /// # Errors
    /// When nobody is attached, or packets do not arrive.
    pub fn packet_rates(&self) -> Result<PacketRates> {
        let last = self.members().last().ok_or_else(|| Error::Missing {
            what: "an attached container".into(),
        })?;
        let result = last.attachment.result.as_ref();
        let own = result
            .map(addresses)
            .unwrap_or_default()
            .into_iter()
            .map(|one| one.address.ip())
            .find(IpAddr::is_ipv4)
            .ok_or_else(|| Error::Missing {
                what: "an IPv4 address of the container".into(),
            })?;
        let port = last
            .attachment
            .capabilities
            .get("portMappings")
            .and_then(|list| list.pointer("/0/HostPort"))
            .and_then(serde_json::Value::as_u64)
            .and_then(|port| u16::try_from(port).ok())
            .unwrap_or(u16::try_from(FIRST_PORT).unwrap_or(0));
        let outside = self.host.outside();
        let there = SocketAddr::new(OUTSIDE_V4, PORT);
        let receiver = Receiver::open(outside, there)?;
        let flood = rate(&last.netns, FLOOD, || flood(there))?;
        let arrived = receiver.drain()?;
        let flows = rate(&last.netns, FLOWS, || new_flows(there))?;
        let arrived = arrived.min(receiver.drain()?);
        let receiver = Receiver::open(&last.netns, SocketAddr::new(own, 80))?;
        let published = rate(outside, FLOWS, || new_flows(SocketAddr::new(HOST_V4, port)))?;
        if arrived.min(receiver.drain()?) == 0 {
            return Err(Error::Missing {
                what: "any packet that arrives".into(),
            });
        }
        Ok(PacketRates {
            flood,
            flows,
            published,
        })
    }
}

/// Packets a second of this thread's processor time.
fn rate(from: &Netns, packets: u32, send: impl FnOnce() -> io::Result<()> + Send) -> Result<f64> {
    from.run(|| {
        let before = processor_time()?;
        send().doing(|| "send packets")?;
        let used = processor_time()?.saturating_sub(before);
        Ok(f64::from(packets) / used.as_secs_f64().max(1e-9))
    })
}

fn processor_time() -> Result<Duration> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .doing(|| "read the thread's processor time")?;
    Ok(Duration::from(time))
}

fn flood(to: SocketAddr) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(to)?;
    for _ in 0..FLOOD {
        send(&socket)?;
    }
    Ok(())
}

fn new_flows(to: SocketAddr) -> io::Result<()> {
    for _ in 0..FLOWS {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect(to)?;
        send(&socket)?;
    }
    Ok(())
}

/// A receiver that is too slow makes the kernel drop or refuse packets behind the host; they have been on
/// their way by then.
fn send(socket: &UdpSocket) -> io::Result<()> {
    match socket.send(&PAYLOAD) {
        Err(error)
            if error.kind() != io::ErrorKind::ConnectionRefused
                && error.raw_os_error() != Some(nix::libc::ENOBUFS) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// Takes what arrives, as far as its queue holds it.
struct Receiver {
    socket: UdpSocket,
}

impl Receiver {
    fn open(netns: &Netns, at: SocketAddr) -> Result<Self> {
        let socket = netns.run(|| UdpSocket::bind(at).doing(|| format!("receive at {at}")))?;
        socket
            .set_nonblocking(true)
            .doing(|| "make a socket not wait")?;
        Ok(Self { socket })
    }

    /// How many packets are in the queue.
    fn drain(&self) -> Result<u32> {
        let mut buffer = [0; 128];
        let mut count = 0;
        loop {
            match self.socket.recv(&mut buffer) {
                Ok(_) => count += 1,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(count),
                Err(error) => return Err(error).doing(|| "receive packets"),
            }
        }
    }
}
