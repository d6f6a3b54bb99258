//! A small world of network namespaces: a client outside, a host, and two containers on its bridge.
//!
//! Every test runs in a child process with its own user (unless root), network and mount namespace, so it needs no
//! privilege, sees nobody else's rules and leaves nothing behind.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use netfilter::{Intent, MarkStyle, Owner, Protocol, Snat};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns};

const INSIDE: &str = "NETFILTER_TEST_INSIDE";

/// Runs `body` in namespaces of its own. `name` is the test's full name.
pub fn isolated(name: &str, body: impl FnOnce()) {
    if std::env::var(INSIDE).as_deref() == Ok(name) {
        mount(
            Some("tmpfs"),
            "/run",
            Some("tmpfs"),
            MsFlags::empty(),
            None::<&str>,
        )
        .expect("mount a private /run");
        run("ip link set lo up");
        body();
        return;
    }
    let mut command = Command::new("unshare");
    if !nix::unistd::Uid::effective().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let exe = std::env::current_exe().unwrap();
    command
        .args(["--net", "--mount", "--propagation", "private"])
        .arg(exe);
    command
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, name);
    let output = command
        .stdin(Stdio::null())
        .output()
        .expect("run unshare: install util-linux");
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        output.status.success() && text.contains("1 passed"),
        "in its own namespaces {name} said:\n{text}"
    );
}

/// Runs a command that must succeed and gives its output.
pub fn run(line: &str) -> String {
    let words: Vec<_> = line.split_whitespace().collect();
    let output = Command::new(words[0]).args(&words[1..]).output();
    let output =
        output.unwrap_or_else(|error| panic!("{}: {error}; install it to run this test", words[0]));
    assert!(
        output.status.success(),
        "{line}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Feeds a ruleset to `nft -f -`.
pub fn nft(ruleset: &str) {
    let mut child = Command::new("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("install nftables");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(ruleset.as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success(), "nft refused {ruleset}");
}

/// `nft list ruleset` without the parts that differ between readings.
pub fn ruleset() -> String {
    run("nft list ruleset")
}

pub fn sysctl(name: &str, value: &str) {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    std::fs::write(&path, value).unwrap_or_else(|error| panic!("write {path}: {error}"));
}

pub const CLIENT4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
pub const HOST4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub const HOST4_SECOND: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
pub const GATEWAY4: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub const C1: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
pub const C2: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 3);
pub const CLIENT6: Ipv6Addr = Ipv6Addr::new(0xfd00, 2, 0, 0, 0, 0, 0, 9);
pub const HOST6: Ipv6Addr = Ipv6Addr::new(0xfd00, 2, 0, 0, 0, 0, 0, 1);
pub const GATEWAY6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, 1);
pub const C1_6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, 2);
pub const C2_6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, 3);

/// Builds the world: namespaces `client`, `c1`, `c2`; the caller's namespace is the host, with the bridge `br0`.
pub fn world() {
    for family in ["ipv4.ip_forward", "ipv6.conf.all.forwarding"] {
        sysctl(&format!("net.{family}"), "1");
    }
    // A link-local address that is still tentative sends no neighbour solicitations for forwarded packets.
    sysctl("net.ipv6.conf.default.accept_dad", "0");
    for family in ["iptables", "ip6tables"] {
        sysctl(&format!("net.bridge.bridge-nf-call-{family}"), "0");
    }
    run("ip link add br0 type bridge forward_delay 0");
    run("ip addr add 10.77.0.1/24 dev br0");
    run("ip addr add fd00:77::1/64 dev br0 nodad");
    run("ip link set br0 up");
    neighbour(
        "client",
        "up0",
        &["192.0.2.9/24", "fd00:2::9/64"],
        "192.0.2.1",
        "fd00:2::1",
    );
    for address in ["192.0.2.1/24", "192.0.2.2/24"] {
        run(&format!("ip addr add {address} dev up0"));
    }
    run("ip addr add fd00:2::1/64 dev up0 nodad");
    for (name, number) in [("c1", 2), ("c2", 3)] {
        let port = format!("port{name}");
        let addresses = [
            format!("10.77.0.{number}/24"),
            format!("fd00:77::{number}/64"),
        ];
        add_namespace(name);
        run(&format!(
            "ip link add {port} type veth peer name eth0 netns {name}"
        ));
        run(&format!("ip link set {port} master br0 up"));
        set_up(
            name,
            &[&addresses[0], &addresses[1]],
            "10.77.0.1",
            "fd00:77::1",
        );
    }
}

/// A namespace linked to the host by a veth pair whose host end has the given name.
pub fn neighbour(name: &str, host_end: &str, addresses: &[&str], gateway4: &str, gateway6: &str) {
    add_namespace(name);
    run(&format!(
        "ip link add {host_end} type veth peer name eth0 netns {name}"
    ));
    run(&format!("ip link set {host_end} up"));
    set_up(name, addresses, gateway4, gateway6);
}

fn add_namespace(name: &str) {
    run(&format!("ip netns add {name}"));
    inside(name, || sysctl("net.ipv6.conf.default.accept_dad", "0"));
}

fn set_up(name: &str, addresses: &[&str], gateway4: &str, gateway6: &str) {
    run(&format!("ip -n {name} link set lo up"));
    run(&format!("ip -n {name} link set eth0 up"));
    for address in addresses {
        let nodad = if address.contains(':') { "nodad" } else { "" };
        run(&format!("ip -n {name} addr add {address} dev eth0 {nodad}"));
    }
    run(&format!("ip -n {name} route add default via {gateway4}"));
    run(&format!("ip -n {name} -6 route add default via {gateway6}"));
}

/// Runs a closure on a thread inside a namespace; an empty name is the host.
pub fn inside<T: Send>(namespace: &str, body: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if !namespace.is_empty() {
                let file = std::fs::File::open(format!("/run/netns/{namespace}")).unwrap();
                setns(file.as_fd(), CloneFlags::CLONE_NEWNET).unwrap();
            }
            body()
        });
        thread.join().unwrap()
    })
}

/// Starts a TCP and a UDP server, for both IP families, that tell each client the address they see it under.
pub fn serve(namespace: &str, port: u16) {
    let (tcp, udp) = inside(namespace, || {
        (
            TcpListener::bind(("::", port)).unwrap(),
            UdpSocket::bind(("::", port)).unwrap(),
        )
    });
    std::thread::spawn(move || {
        while let Ok((mut stream, peer)) = tcp.accept() {
            let _ = stream.write_all(peer.ip().to_canonical().to_string().as_bytes());
        }
    });
    std::thread::spawn(move || {
        let mut buffer = [0; 64];
        while let Ok((_, peer)) = udp.recv_from(&mut buffer) {
            let _ = udp.send_to(peer.ip().to_canonical().to_string().as_bytes(), peer);
        }
    });
}

/// As long as an answer may take; a packet that is dropped costs this much.
const PATIENCE: Duration = Duration::from_millis(400);

/// Asks a TCP server which address it sees. `None` if nothing comes back.
pub fn tcp(namespace: &str, server: impl Into<IpAddr>, port: u16) -> Option<IpAddr> {
    let server = SocketAddr::new(server.into(), port);
    inside(namespace, || {
        let mut stream = TcpStream::connect_timeout(&server, PATIENCE).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        text.parse().ok()
    })
}

/// Asks a UDP server which address it sees. `None` if nothing comes back.
pub fn udp(namespace: &str, server: impl Into<IpAddr>, port: u16) -> Option<IpAddr> {
    let server = SocketAddr::new(server.into(), port);
    inside(namespace, || {
        let any: IpAddr = if server.is_ipv4() {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            Ipv6Addr::UNSPECIFIED.into()
        };
        let socket = UdpSocket::bind((any, 0)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.send_to(b"who am I", server).ok()?;
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).ok()?;
        std::str::from_utf8(&buffer[..length]).ok()?.parse().ok()
    })
}

pub fn owner(id: &str) -> Owner {
    Owner {
        network: "net1".into(),
        container_id: id.into(),
        ifname: "eth0".into(),
    }
}

/// Publishes a port on all addresses with the usual settings.
pub fn publish(protocol: Protocol, host_port: u16, to: &str, to_port: u16) -> Intent {
    Intent::Publish {
        host_ip: None,
        host_port,
        protocol,
        to: to.parse().unwrap(),
        to_port,
        snat: Snat::Hairpin,
        conditions: Vec::new(),
        mark: MarkStyle::default(),
    }
}

/// The same on one host address.
pub fn publish_at(
    host: impl Into<IpAddr>,
    protocol: Protocol,
    host_port: u16,
    to: &str,
    to_port: u16,
) -> Intent {
    match publish(protocol, host_port, to, to_port) {
        Intent::Publish {
            protocol,
            to,
            to_port,
            snat,
            conditions,
            mark,
            ..
        } => Intent::Publish {
            host_ip: Some(host.into()),
            host_port,
            protocol,
            to,
            to_port,
            snat,
            conditions,
            mark,
        },
        other => other,
    }
}

pub fn masquerade(source: &str) -> Intent {
    Intent::Masquerade {
        source: source.parse().unwrap(),
        except: Vec::new(),
    }
}
