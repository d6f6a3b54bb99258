//! containerd through `ctr run --cni`: an attachment that it takes down, and one that it forgets.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use conformance::net::{HOST_V4, HOST_V6, Netns, OUTSIDE_V4, OUTSIDE_V6};
use conformance::probe::Transport;
use serde_json::json;

use crate::daemon::Daemon;
use crate::image::{WAIT, archive};
use crate::machine::{Machine, Tool, cgroup, on_machine};

const TOOLS: [Tool; 5] = [
    ("containerd", "containerd"),
    ("ctr", "containerd"),
    ("runc", "runc"),
    ("busybox", "busybox-static"),
    ("tar", "tar"),
];

#[test]
#[ignore = "needs root and containerd"]
fn run() {
    on_machine("ctr::run", "ctr", &TOOLS, |machine| {
        let containerd = Containerd::start(machine);
        containerd.one_that_goes();
        containerd.one_that_is_forgotten();
        let version = machine.run(machine.command("ctr").arg("--version"));
        drop(containerd);
        let what = "run --rm --cni; run -d --cni, its end, and cnitool gc";
        machine.every_call_worked();
        machine.finish(&version, ("run", what), &["ctr0"]);
    });
}

struct Containerd<'a> {
    machine: &'a Machine,
    socket: PathBuf,
    _daemon: Daemon,
}

impl<'a> Containerd<'a> {
    fn start(machine: &'a Machine) -> Self {
        let work = machine.work().join("containerd");
        fs::create_dir_all(&work).unwrap();
        let socket = work.join("containerd.sock");
        let config = work.join("config.toml");
        let text = format!(
            "version = 2\nroot = \"{0}/root\"\nstate = \"{0}/state\"\n\
             disabled_plugins = [\"io.containerd.grpc.v1.cri\", \"io.containerd.internal.v1.opt\"]\n\
             [grpc]\n address = \"{1}\"\n[ttrpc]\n address = \"{1}.ttrpc\"\n",
            work.display(),
            socket.display()
        );
        fs::write(&config, text).unwrap();
        let list = json!({"cniVersion": "1.0.0", "name": "ctr", "plugins": [
            {"type": "bridge", "bridge": "ctr0", "isGateway": true, "ipMasq": true,
             "ipam": {"type": "host-local",
                "ranges": [[{"subnet": "10.44.0.0/24"}], [{"subnet": "fd00:44::/64"}]],
                "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}},
            {"type": "firewall"},
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ]});
        fs::write("/etc/cni/net.d/10-ctr.conflist", list.to_string()).unwrap();
        let mut command = machine.command("containerd");
        command.arg("--config").arg(&config);
        let daemon = Daemon::start(command, &socket, &work.join("log"));
        let containerd = Self {
            machine,
            socket,
            _daemon: daemon,
        };
        let image = archive(machine.work(), "localhost/bb:1", WAIT);
        let mut import = containerd.ctr(&["images", "import", "--all-platforms"]);
        machine.run(import.arg(image));
        containerd
    }

    fn ctr(&self, arguments: &[&str]) -> Command {
        let mut command = self.machine.command("ctr");
        command.arg("--address").arg(&self.socket).args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> String {
        self.machine.run(&mut self.ctr(arguments))
    }

    /// The container is gone with its process, and with it its network.
    fn one_that_goes(&self) {
        let group = format!("/{}/goes", cgroup("ctr"));
        let seen = self.run(&[
            "run",
            "--rm",
            "--cni",
            "--snapshotter",
            "native",
            "--cgroup",
            &group,
            "localhost/bb:1",
            "goes",
            "sh",
            "-c",
            "ip -o addr show eth0; ping -c 1 -w 3 10.44.0.1; ping6 -c 1 -w 3 fd00:44::1",
        ]);
        assert!(
            seen.contains("10.44.0.2/24") && seen.contains("fd00:44::2/64"),
            "{seen}"
        );
        assert_eq!(seen.matches("1 packets received").count(), 2, "{seen}");
        self.machine.ok(
            "run --rm --cni: eth0 has both addresses, the gateways answer",
            "10.44.0.2 fd00:44::2",
        );
        let leases = self.leases();
        assert!(leases.is_empty(), "{leases:?}");
        self.machine
            .ok("its end was a DEL without a namespace", "no lease is left");
    }

    /// `run -d` never sends DEL: what is left is as after a crash.
    fn one_that_is_forgotten(&self) {
        let machine = self.machine;
        let group = format!("/{}/stays", cgroup("ctr"));
        self.run(&[
            "run",
            "-d",
            "--cni",
            "--snapshotter",
            "native",
            "--cgroup",
            &group,
            "localhost/bb:1",
            "stays",
            "sleep",
            "3600",
        ]);
        let tasks = self.run(&["tasks", "list"]);
        let row = tasks
            .lines()
            .find(|line| line.starts_with("stays "))
            .unwrap();
        let pid = row.split_whitespace().nth(1).unwrap();
        {
            let netns = Netns::open(&PathBuf::from(format!("/proc/{pid}/ns/net"))).unwrap();
            for address in ["10.44.0.3:80", "[fd00:44::3]:80"] {
                let _server = machine.serve(&netns, Transport::Tcp, address, "stays");
                machine.asks(
                    "run -d --cni: the host reaches it",
                    machine.host.netns(),
                    Transport::Tcp,
                    address,
                );
            }
            machine.masquerades(&netns, OUTSIDE_V4, HOST_V4);
            machine.masquerades(&netns, OUTSIDE_V6, HOST_V6);
        }
        self.run(&["tasks", "kill", "--signal", "SIGKILL", "stays"]);
        self.run(&["tasks", "delete", "--force", "stays"]);
        self.run(&["containers", "delete", "stays"]);
        let leases = self.leases();
        assert_eq!(leases.len(), 2, "ctr sends a DEL now? {leases:?}");
        machine.ok(
            "killed and deleted: ctr forgets its network",
            &leases.join(" "),
        );
        let mut cnitool = machine.command(env!("CARGO_BIN_EXE_cnitool"));
        machine.run(
            cnitool
                .args(["gc", "ctr"])
                .env("CNI_PATH", machine.plugins()),
        );
        assert!(self.leases().is_empty(), "{:?}", self.leases());
        machine.ok("cnitool gc takes it away", "no lease is left");
    }

    fn leases(&self) -> Vec<String> {
        let entries = fs::read_dir("/var/lib/cni/networks/ctr").unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let mut names: Vec<String> = names
            .filter(|name| name.parse::<std::net::IpAddr>().is_ok())
            .collect();
        names.sort();
        names
    }
}
