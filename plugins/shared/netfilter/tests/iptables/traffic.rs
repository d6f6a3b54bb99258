//! Real packets.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::sandbox::*;
use netfilter::{Flows, Hints, Intent, Kinds, Netfilter, Protocol, PublishedPort};
use nix::sched::{CloneFlags, setns};

/// Runs on a thread that stands in a namespace.
fn within<T: Send + 'static>(
    netns: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let file = File::open(format!("/run/netns/{netns}")).unwrap();
    thread::spawn(move || {
        setns(file, CloneFlags::CLONE_NEWNET).unwrap();
        body()
    })
}

/// A server in the container that tells every client the address it came from.
fn serve(port: u16) {
    let (ready, wait) = std::sync::mpsc::channel();
    within("box", move || {
        let listener = TcpListener::bind(("::", port)).unwrap();
        ready.send(()).unwrap();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let from = stream.peer_addr().unwrap().ip().to_canonical();
            stream.write_all(from.to_string().as_bytes()).unwrap();
        }
    });
    wait.recv().unwrap();
}

/// What the server at that address says the client's address is; `None` if nobody answers.
fn ask(to: &str) -> Option<IpAddr> {
    let to: SocketAddr = to.parse().unwrap();
    let mut stream = TcpStream::connect_timeout(&to, Duration::from_millis(700)).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_millis(700)))
        .unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).ok()?;
    said.parse().ok()
}

fn ask_from(netns: &str, to: &'static str) -> Option<String> {
    within(netns, move || ask(to))
        .join()
        .unwrap()
        .map(|from| from.to_string())
}

/// A container behind a bridge, a client on another link, and a FORWARD chain that drops. Without duplicate address
/// detection: while a link-local address is being probed, the kernel asks for no neighbours on that link.
fn network() {
    sh("
        sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.all.accept_dad=0
        for ns in box client; do
            ip netns add $ns; ip -n $ns link set lo up
            ip netns exec $ns sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.all.accept_dad=0
        done
        ip link add br0 type bridge
        ip link set br0 up
        sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.br0.route_localnet=1
        ip link add vbox type veth peer name eth0 netns box
        ip link set vbox master br0 up
        ip link set vbox type bridge_slave hairpin on
        ip link add vclient type veth peer name eth0 netns client
        ip link set vclient up
        for ns in box client; do ip -n $ns link set eth0 up; done
        ip addr add 10.88.0.1/16 dev br0; ip addr add fd00::1/64 dev br0 nodad
        ip addr add 192.0.2.1/24 dev vclient; ip addr add 2001:db8::1/64 dev vclient nodad
        ip -n box addr add 10.88.0.2/16 dev eth0; ip -n box addr add fd00::2/64 dev eth0 nodad
        ip -n client addr add 192.0.2.2/24 dev eth0; ip -n client addr add 2001:db8::2/64 dev eth0 nodad
        ip -n box route add default via 10.88.0.1; ip -n box route add default via fd00::1
        ip -n client route add default via 192.0.2.1; ip -n client route add default via 2001:db8::1
        iptables -P FORWARD DROP; ip6tables -P FORWARD DROP
    ");
}

fn everything() -> Vec<Intent> {
    let (four, six) = ("10.88.0.2/16", "fd00::2/64");
    vec![
        masquerade(four),
        masquerade(six),
        admit("10.88.0.2"),
        admit("fd00::2"),
        publish(8080, Protocol::Tcp, four, 80),
        publish(8080, Protocol::Tcp, six, 80),
    ]
}

sandboxed! {
    /// A published port is reached from outside under a policy of DROP, with the client's address; a port that is
    /// not published is not, even where somebody listens.
    fn reaches_published_ports_only() {
        network();
        serve(80);
        serve(81);
        let owner = owner("n", "c", "eth0");
        apply(&owner, &everything()).unwrap();
        let outside = |to| ask_from("client", to);
        assert_eq!(outside("192.0.2.1:8080").as_deref(), Some("192.0.2.2"));
        assert_eq!(outside("[2001:db8::1]:8080").as_deref(), Some("2001:db8::2"));
        assert_eq!(outside("10.88.0.2:81"), None);
        assert_eq!(outside("[fd00::2]:81"), None);
        // Nobody else's translation opens the door: only the mark of ours does.
        sh("iptables -t nat -A PREROUTING -p tcp --dport 8081 -j DNAT --to 10.88.0.2:81");
        assert_eq!(outside("192.0.2.1:8081"), None);
    }

    /// From the host by every address of it, and from the container by its own port.
    fn reaches_published_ports_from_inside() {
        network();
        serve(80);
        apply(&owner("n", "c", "eth0"), &everything()).unwrap();
        assert_eq!(ask("127.0.0.1:8080").map(|ip| ip.to_string()).as_deref(), Some("10.88.0.1"));
        assert!(ask("10.88.0.1:8080").is_some());
        assert!(ask("192.0.2.1:8080").is_some());
        assert!(ask("[2001:db8::1]:8080").is_some());
        assert_eq!(ask_from("box", "10.88.0.1:8080").as_deref(), Some("10.88.0.1"));
        assert_eq!(ask_from("box", "192.0.2.1:8080").as_deref(), Some("10.88.0.1"));
    }

    /// What belongs to a connection of the container, its first packet included, is accepted at the top: it never meets
    /// the rules of single containers, of which there may be thousands.
    fn connections_of_the_container_are_known_at_once() {
        network();
        apply(&owner("n", "c", "eth0"), &everything()).unwrap();
        within("client", || UdpSocket::bind("[::]:90").unwrap()).join().unwrap();
        for (tool, to) in [("iptables", "192.0.2.2:90"), ("ip6tables", "[2001:db8::2]:90")] {
            within("box", move || {
                let any = if to.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
                let socket = UdpSocket::bind(any).unwrap();
                (0..5).for_each(|_| assert_eq!(socket.send_to(b"?", to).unwrap(), 1));
            })
            .join()
            .unwrap();
            let counted = sh(&format!("{tool} -S CNI-FORWARD -v"));
            let rules = counted.lines().filter(|line| line.ends_with("-j ACCEPT"));
            let (known, single): (Vec<_>, Vec<_>) = rules.partition(|line| line.contains("known"));
            let packets = |line: &&str| -> usize {
                let count = line.split(" -c ").nth(1).and_then(|rest| rest.split(' ').next());
                count.unwrap().parse().unwrap()
            };
            assert!(known.len() == 1 && packets(&known[0]) >= 5, "{counted}");
            // The kernel does not track neighbour discovery.
            assert!(single.len() == 2 && single.iter().map(packets).sum::<usize>() < 5, "{counted}");
        }
    }

    /// The container reaches the outside under the host's address, and no more when it is gone.
    fn leaves_masqueraded() {
        network();
        let owner = owner("n", "c", "eth0");
        apply(&owner, &everything()).unwrap();
        let (ready, wait) = std::sync::mpsc::channel();
        within("client", move || {
            let listener = TcpListener::bind("[::]:90").unwrap();
            ready.send(()).unwrap();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let from = stream.peer_addr().unwrap().ip().to_canonical();
                stream.write_all(from.to_string().as_bytes()).unwrap();
            }
        });
        wait.recv().unwrap();
        assert_eq!(ask_from("box", "192.0.2.2:90").as_deref(), Some("192.0.2.1"));
        assert_eq!(ask_from("box", "[2001:db8::2]:90").as_deref(), Some("2001:db8::1"));
        remove(&owner, &["10.88.0.2", "fd00::2"]);
        assert_eq!(ask_from("box", "192.0.2.2:90"), None);
        let left = rules("iptables", "filter").join("\n") + &rules("iptables", "nat").join("\n");
        assert!(!left.contains("10.88.0.2"), "{left}");
    }

    /// A client that never stops sending reaches the container that has the port now, once the old flow is forgotten.
    fn follows_a_port_to_its_next_container() {
        network();
        sh("ip -n box addr add 10.88.0.3/16 dev eth0");
        for address in ["10.88.0.2:53", "10.88.0.3:53"] {
            let (ready, wait) = std::sync::mpsc::channel();
            within("box", move || {
                let socket = UdpSocket::bind(address).unwrap();
                ready.send(()).unwrap();
                loop {
                    let (_, from) = socket.recv_from(&mut [0; 9]).unwrap();
                    socket.send_to(address.as_bytes(), from).unwrap();
                }
            });
            wait.recv().unwrap();
        }
        let client = within("client", || UdpSocket::bind("192.0.2.2:4000").unwrap()).join().unwrap();
        client.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let ask = || {
            client.send_to(b"?", "192.0.2.1:5353").unwrap();
            let mut said = [0; 32];
            let length = client.recv(&mut said).unwrap();
            String::from_utf8_lossy(&said[..length]).into_owned()
        };
        let (old, new) = (owner("n", "old", "eth0"), owner("n", "new", "eth0"));
        let to = |address: &str| [admit(address), publish(5353, Protocol::Udp, &format!("{address}/16"), 53)];
        apply(&old, &to("10.88.0.2")).unwrap();
        assert_eq!(ask(), "10.88.0.2:53");
        let mut netfilter = Netfilter::open().unwrap();
        netfilter.remove(&old, Kinds::PUBLISH, &Hints::default()).unwrap();
        apply(&new, &to("10.88.0.3")).unwrap();
        assert_eq!(ask(), "10.88.0.2:53", "the kernel remembers the flow");
        let port = PublishedPort { host_ip: None, host_port: 5353, protocol: Protocol::Udp };
        assert_eq!(netfilter.forget_udp(&[port], Flows::NotTo(&["10.88.0.3".parse().unwrap()])).unwrap(), 1);
        assert_eq!(ask(), "10.88.0.3:53");
        assert_eq!(netfilter.forget_udp(&[port], Flows::NotTo(&["10.88.0.3".parse().unwrap()])).unwrap(), 0);
    }
}
