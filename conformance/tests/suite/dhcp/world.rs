//! A DHCP server outside, a daemon on the host, and what passes between them.

use std::fs::{self, File};
use std::io::Read;
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use conformance::chain::Network;
use conformance::net::{Netns, Rtnl, UPLINK};
use conformance::plugin::find;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use socket2::{Domain, Protocol, Socket, Type};

use super::super::support::{Lab, network, plugins, tool};

/// Where the daemon listens, and its leases are.
pub const SOCKET: &str = "/run/cni/dhcp.sock";
pub const LEASES: &str = "/run/cni/dhcp.sock.leases";
/// What servers give: addresses between these two, of the network outside.
pub const FIRST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 100);
pub const LAST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 120);
/// The server.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
/// Kinds of message (option 53).
pub const DISCOVER: u8 = 1;
pub const REQUEST: u8 = 3;
pub const RELEASE: u8 = 7;

const TMP: &str = "/run/sandbox/tmp";

/// macvlan on the host's uplink, with addresses from DHCP.
pub fn list(ipam: Value) -> Network {
    list_of("1.1.0", ipam)
}

pub fn list_of(version: &str, extra: Value) -> Network {
    let mut ipam = json!({"type": "dhcp"});
    ipam.as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    network(&json!({"cniVersion": version, "name": "lan", "plugins": [
            {"type": "macvlan", "master": UPLINK, "ipam": ipam}]}))
}

/// Waits for something that happens elsewhere.
#[track_caller]
pub fn until<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {limit:?} for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

pub const SOON: Duration = Duration::from_secs(10);

/// A process that ends with the test.
pub struct Servant {
    child: Child,
    log: PathBuf,
}

impl Servant {
    fn start(netns: &Netns, name: &str, command: &mut Command) -> Self {
        Self::spawn(netns, name, command.stdin(Stdio::null()))
    }

    /// The same with a standard input of its own.
    pub fn spawn(netns: &Netns, name: &str, command: &mut Command) -> Self {
        let log = Path::new(TMP).join(format!("{name}.log"));
        let file = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .unwrap();
        command.stdout(file.try_clone().unwrap()).stderr(file);
        let child = netns.run(|| Ok(command.spawn().unwrap())).unwrap();
        Self { child, log }
    }

    pub fn log(&self) -> String {
        let mut text = Vec::new();
        File::open(&self.log)
            .unwrap()
            .read_to_end(&mut text)
            .unwrap();
        String::from_utf8_lossy(&text).into_owned()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).unwrap();
        kill(Pid::from_raw(id), signal).unwrap();
    }

    /// Asks it to stop, and tells whether it ended well.
    pub fn stop(mut self) -> bool {
        self.signal(Signal::SIGTERM);
        self.child.wait().unwrap().success()
    }

    /// Stops it from running on, until it is killed.
    pub fn pause(&self) {
        self.signal(Signal::SIGSTOP);
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for it to end by itself.
    pub fn wait(mut self) -> (bool, String) {
        let ended = until(SOON, "the end of a process", || {
            self.child.try_wait().unwrap()
        });
        (ended.success(), self.log())
    }

    #[track_caller]
    fn ready(mut self, sign: &str) -> Self {
        until(SOON, sign, || {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?}: {}", self.log());
            self.log().contains(sign).then_some(())
        });
        self
    }
}

impl Drop for Servant {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// dnsmasq outside; leases are of two minutes.
pub struct Dnsmasq {
    pub process: Servant,
    leases: PathBuf,
}

pub fn dnsmasq(lab: &Lab, extra: &[&str]) -> Dnsmasq {
    dnsmasq_for(lab, FIRST, LAST, extra)
}

pub fn dnsmasq_for(lab: &Lab, first: Ipv4Addr, last: Ipv4Addr, extra: &[&str]) -> Dnsmasq {
    let _ = fs::remove_file(Path::new(TMP).join("dnsmasq.log"));
    let leases = Path::new(TMP).join("dnsmasq.leases");
    let mut command = Command::new(tool("dnsmasq", "dnsmasq-base"));
    command
        .args([
            "-d",
            "-C",
            "/dev/null",
            "-p",
            "0",
            "-i",
            "eth0",
            "--no-ping",
            "--log-dhcp",
        ])
        .arg(format!("--dhcp-range={first},{last},255.255.255.0,120"))
        .arg(format!("--dhcp-leasefile={}", leases.display()))
        .args(extra);
    Dnsmasq {
        process: Servant::start(lab.host.outside(), "dnsmasq", &mut command).ready("IP range"),
        leases,
    }
}

impl Dnsmasq {
    /// Its leases: address, host name and client identifier.
    pub fn leases(&self) -> Vec<(String, String, String)> {
        let text = fs::read_to_string(&self.leases).unwrap_or_default();
        let lines = text.lines().filter(|line| !line.starts_with("duid"));
        let word = |line: &str, at: usize| {
            let word = line.split_whitespace().nth(at);
            word.unwrap_or_default().to_owned()
        };
        lines
            .map(|line| (word(line, 2), word(line, 3), word(line, 4)))
            .collect()
    }

    /// Waits until it has that many leases.
    #[track_caller]
    pub fn expect(&self, count: usize) {
        until(SOON, "the server's leases", || {
            (self.leases().len() == count).then_some(())
        });
    }
}

/// ISC's server outside, with leases of so many seconds.
pub fn dhcpd(lab: &Lab, seconds: u32, extra: &str) -> Servant {
    let file = |name: &str| Path::new(TMP).join(name);
    let text = format!(
        "authoritative; ping-check false; one-lease-per-client true; min-lease-time {seconds};
         default-lease-time {seconds}; max-lease-time {seconds}; {extra}
         subnet 192.0.2.0 netmask 255.255.255.0 {{ range {FIRST} {LAST}; option routers {SERVER}; }}"
    );
    fs::write(file("dhcpd.conf"), text).unwrap();
    File::create(file("dhcpd.leases")).unwrap();
    let mut command = Command::new(tool("dhcpd", "isc-dhcp-server"));
    command
        .args(["-4", "-f", "-d", "-cf"])
        .arg(file("dhcpd.conf"));
    command.arg("-lf").arg(file("dhcpd.leases"));
    command.arg("-pf").arg(file("dhcpd.pid")).arg("eth0");
    let _ = fs::remove_file(file("dhcpd.log"));
    Servant::start(lab.host.outside(), "dhcpd", &mut command).ready("Sending on")
}

/// The daemon under test.
pub fn daemon(lab: &Lab, flags: &[&str]) -> Servant {
    daemon_of(lab, &find("dhcp", &[plugins()]).unwrap(), flags)
}

pub fn daemon_of(lab: &Lab, program: &Path, flags: &[&str]) -> Servant {
    let servant = start_daemon(lab, program, flags);
    until(SOON, "the daemon", || UnixStream::connect(SOCKET).ok());
    servant
}

/// The same, without waiting for it to listen.
pub fn start_daemon(lab: &Lab, program: &Path, flags: &[&str]) -> Servant {
    fs::create_dir_all("/run/cni").unwrap();
    let mut command = Command::new(program);
    command.arg("daemon").args(flags).env("CNI_LOG", "debug");
    Servant::start(lab.host.netns(), "daemon", &mut command)
}

/// Connects a namespace's eth0 to the outside's segment, by a bridge.
pub fn segment(lab: &Lab, netns: &Netns) {
    lab.rtnl().add_bridge("br0").unwrap();
    lab.rtnl().set_master(UPLINK, "br0").unwrap();
    lab.rtnl().add_veth("port1", netns, "eth0").unwrap();
    lab.rtnl().set_master("port1", "br0").unwrap();
    lab.rtnl().set_up("port1").unwrap();
}

/// The files of leases.
pub fn files() -> Vec<PathBuf> {
    let Ok(listing) = fs::read_dir(LEASES) else {
        return Vec::new();
    };
    let paths = listing.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|e| e == "lease"))
        .collect()
}

/// The IPv4 addresses of eth0.
pub fn addresses(netns: &Netns) -> Vec<String> {
    let all = Rtnl::open(netns).unwrap().addresses_of("eth0").unwrap();
    let v4 = all.into_iter().filter(|ip| ip.is_ipv4());
    v4.map(|ip| ip.to_string()).collect()
}

/// A message to the server's port, as it came to the outside.
#[derive(Clone, Debug)]
pub struct Frame {
    pub at: Instant,
    pub station: [u8; 6],
    pub from: Ipv4Addr,
    pub to: Ipv4Addr,
    /// The address that the client says it has.
    pub own: Ipv4Addr,
    pub answer_by_broadcast: bool,
    /// In options 53, 50 and 61.
    pub kind: u8,
    pub wanted: Option<Ipv4Addr>,
    pub id: Vec<u8>,
}

impl Frame {
    fn read(bytes: &[u8]) -> Option<Self> {
        let ip = bytes.get(14..)?;
        if bytes.get(12..14)? != [8, 0] || *ip.get(9)? != 17 || *ip.first()? != 0x45 {
            return None;
        }
        if ip.get(22..24)? != [0, 67] {
            return None;
        }
        let address =
            |bytes: &[u8]| -> Option<Ipv4Addr> { Some(<[u8; 4]>::try_from(bytes).ok()?.into()) };
        let message = ip.get(28..)?;
        let mut options = message.get(240..)?;
        let mut frame = Self {
            at: Instant::now(),
            station: bytes.get(..6)?.try_into().ok()?,
            from: address(ip.get(12..16)?)?,
            to: address(ip.get(16..20)?)?,
            own: address(message.get(12..16)?)?,
            answer_by_broadcast: message.get(10)? & 0x80 != 0,
            kind: 0,
            wanted: None,
            id: Vec::new(),
        };
        while let [code, length, rest @ ..] = options {
            if *code == 255 {
                break;
            }
            let (value, behind) = rest.split_at_checked(usize::from(*length))?;
            match code {
                53 => frame.kind = *value.first()?,
                50 => frame.wanted = address(value),
                61 => frame.id = value.to_vec(),
                _ => {}
            }
            options = behind;
        }
        Some(frame)
    }

    pub fn is_broadcast(&self) -> bool {
        self.station == [0xff; 6]
    }
}

/// Listens outside.
pub struct Frames {
    seen: Arc<Mutex<Vec<Frame>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Frames {
    pub fn listen(lab: &Lab) -> Self {
        let everything = Protocol::from(i32::from(3_u16.to_be()));
        let socket = lab
            .host
            .outside()
            .run(|| Ok(Socket::new(Domain::PACKET, Type::RAW, Some(everything)).unwrap()))
            .unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let (seen, stop) = (
            Arc::<Mutex<Vec<Frame>>>::default(),
            Arc::<AtomicBool>::default(),
        );
        let (to, end) = (Arc::clone(&seen), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let mut buffer = [0; 2048];
            while !end.load(Ordering::Relaxed) {
                if let Ok(size) = (&socket).read(&mut buffer) {
                    to.lock().unwrap().extend(Frame::read(&buffer[..size]));
                }
            }
        });
        Self {
            seen,
            stop,
            thread: Some(thread),
        }
    }

    /// What was seen so far.
    pub fn all(&self) -> Vec<Frame> {
        self.seen.lock().unwrap().clone()
    }

    pub fn of(&self, kind: u8) -> Vec<Frame> {
        let all = self.all().into_iter();
        all.filter(|frame| frame.kind == kind).collect()
    }

    /// Requests of a client that has its address.
    pub fn extensions(&self) -> Vec<Frame> {
        let requests = self.of(REQUEST).into_iter();
        requests
            .filter(|frame| !frame.own.is_unspecified())
            .collect()
    }

    /// Waits for the first message that is meant.
    #[track_caller]
    pub fn wait(&self, limit: Duration, what: &str, is: impl Fn(&Frame) -> bool) -> Frame {
        until(limit, what, || self.all().into_iter().find(&is))
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
