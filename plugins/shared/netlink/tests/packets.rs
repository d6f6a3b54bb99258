//! The socket below IP that a DHCP client uses.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use common::{host_and_container, veth};
use netlink::{Handle, LinkRef, MacAddr, PacketSocket};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::AsFd;

const EVERYBODY: MacAddr = MacAddr::new([0xff; 6]);

/// An IPv4 packet with a datagram for a port; `fragment` is the field of flags and offset.
fn datagram(port: u16, protocol: u8, fragment: u16, options: usize) -> Vec<u8> {
    let header = 20 + options;
    let mut packet = vec![0; header + 8];
    packet[0] = 0x40 | u8::try_from(header / 4).unwrap();
    packet[2..4].copy_from_slice(&u16::try_from(header + 8).unwrap().to_be_bytes());
    packet[6..8].copy_from_slice(&fragment.to_be_bytes());
    packet[8] = 64;
    packet[9] = protocol;
    packet[header + 2..header + 4].copy_from_slice(&port.to_be_bytes());
    packet[header + 4..header + 6].copy_from_slice(&8_u16.to_be_bytes());
    packet
}

/// A socket on each end of a pair that carries packets.
fn ends() -> (Handle, PacketSocket, PacketSocket, MacAddr) {
    let (host, container) = host_and_container();
    let pair = veth(&host, &container);
    host.set_up(&pair.host).unwrap();
    container.set_up(&pair.container).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    host.wait_running(&pair.host, deadline).unwrap();
    container.wait_running(&pair.container, deadline).unwrap();
    let near = host.packet_socket(&pair.host, 67).unwrap();
    let far = container.packet_socket(&pair.container, 68).unwrap();
    assert_ne!(pair.host.index(), 0);
    (container, near, far, pair.host.mac)
}

/// The next packet.
fn receive(socket: &PacketSocket) -> (Vec<u8>, MacAddr) {
    let mut files = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    let ready = poll(&mut files, PollTimeout::from(10_000_u16)).unwrap();
    assert_eq!(ready, 1, "no packet came");
    let mut buffer = [0; 2000];
    let (size, from) = socket.receive(&mut buffer).unwrap();
    (buffer[..size].to_vec(), from)
}

sandboxed! {
    fn packets_come_whole_and_with_their_station() {
        let (_container, near, far, mac) = ends();
        let none = far.receive(&mut [0; 100]).unwrap_err();
        assert_eq!(none.kind(), ErrorKind::WouldBlock);
        for options in [0, 8] {
            let packet = datagram(68, 17, 0, options);
            near.send(EVERYBODY, &packet).unwrap();
            assert_eq!(receive(&far), (packet, mac));
        }
    }

    fn only_whole_datagrams_for_the_port_are_taken() {
        let (_container, near, far, _) = ends();
        for other in [
            datagram(67, 17, 0, 0),
            datagram(68, 6, 0, 0),
            // The first fragment, and a later one.
            datagram(68, 17, 0x2000, 0),
            datagram(68, 17, 0x0001, 0),
            vec![0x45],
            vec![0x45; 24],
        ] {
            near.send(EVERYBODY, &other).unwrap();
        }
        // Not to be fragmented is no fragment; and all others came before it.
        let meant = datagram(68, 17, 0x4000, 0);
        near.send(EVERYBODY, &meant).unwrap();
        assert_eq!(receive(&far).0, meant);
        assert_eq!(far.receive(&mut [0; 100]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    fn a_link_that_is_down_or_gone_says_so() {
        let (container, _near, far, _) = ends();
        let link = container.link("eth0").unwrap();
        container.change_link(&link, &netlink::LinkChange::new().up(false)).unwrap();
        far.send(EVERYBODY, &datagram(67, 17, 0, 0)).unwrap_err();
        container.delete_link(&link).unwrap();
        far.send(EVERYBODY, &datagram(67, 17, 0, 0)).unwrap_err();
        container.packet_socket(&link, 68).unwrap_err();
    }
}
