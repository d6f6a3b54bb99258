//! What a network with addresses from DHCP needs: a server outside, and the daemon that keeps the leases on the host.

use std::ffi::OsStr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use conformance::chain::{find_tool, standard_path};
use conformance::error::Context;
use conformance::net::{Host, Netns};
use conformance::{Error, Result};

/// Where the daemon listens.
const SOCKET: &str = "/run/cni/dhcp.sock";

/// How long it may take to begin.
const PATIENCE: Duration = Duration::from_secs(10);

/// Both processes; they end with this.
#[derive(Debug)]
pub struct Lan(Vec<Child>);

impl Lan {
    /// Starts them. Leases last longer than any torture, so that none changes by being renewed.
    pub fn start(host: &Host, plugins: &Path) -> Result<Self> {
        let server = find_tool("dnsmasq", &standard_path()).ok_or_else(|| Error::Missing {
            what: "dnsmasq: install dnsmasq-base".into(),
        })?;
        let arguments = [
            "-d",
            "-C",
            "/dev/null",
            "-p",
            "0",
            "-i",
            "eth0",
            "--no-ping",
            "--dhcp-range=192.0.2.20,192.0.2.250,255.255.255.0,12h",
            "--dhcp-leasefile=/run/sandbox/tmp/dnsmasq.leases",
        ];
        let daemon = plugins.join("dhcp");
        let mut lan = Self(Vec::new());
        lan.0.push(spawn(host.outside(), &server, &arguments)?);
        lan.0.push(spawn(host.netns(), &daemon, &["daemon"])?);
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = UnixStream::connect(SOCKET) {
            if Instant::now() > deadline {
                return Err(error).doing(|| format!("connect to {SOCKET}"));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(lan)
    }
}

fn spawn(netns: &Netns, program: &Path, arguments: &[impl AsRef<OsStr> + Sync]) -> Result<Child> {
    netns.run(|| {
        Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .doing(|| format!("start {}", program.display()))
    })
}

impl Drop for Lan {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
