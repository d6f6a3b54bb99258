//! podman 4 with its CNI back end: published ports, networks of every kind, and its pods.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use conformance::net::{HOST_V4, HOST_V6, Netns, OUTSIDE_V4, OUTSIDE_V6};
use conformance::probe::Transport::{Tcp, Udp};

use crate::image::{SERVE, WAIT, archive};
use crate::machine::{Machine, Tool, cgroup, on_machine};

pub const TOOLS: [Tool; 5] = [
    ("podman", "podman"),
    ("conmon", "conmon"),
    ("runc", "runc"),
    ("busybox", "busybox-static"),
    ("tar", "tar"),
];

/// How long a container's own server may take to listen.
const STARTING: Duration = Duration::from_secs(10);

#[test]
#[ignore = "needs root and podman"]
fn ports() {
    on_machine("podman::ports", "podman", &TOOLS, |machine| {
        let podman = Podman::new(machine);
        podman.a_published_port_is_reached_from_everywhere();
        podman.reload_and_restart();
        podman.ranges_and_host_addresses();
        podman.pod();
        let what = "run -p, network reload, restart, port ranges, a host address, a pod; rm";
        machine.every_call_worked();
        machine.finish(&podman.version(), ("ports", what), &["cni-podman0"]);
    });
}

#[test]
#[ignore = "needs root and podman"]
fn networks() {
    on_machine("podman::networks", "podman", &TOOLS, |machine| {
        let podman = Podman::new(machine);
        podman.dual_stack();
        podman.static_address_and_two_networks();
        podman.connect_and_disconnect();
        podman.internal();
        podman.macvlan();
        podman.mtu();
        let what = "two families, static address and MAC, two networks, connect and disconnect, internal, macvlan, MTU; rm";
        let bridges = [
            "cni-podman0",
            "cni-podman1",
            "cni-podman2",
            "cni-podman3",
            "cni-podman4",
        ];
        machine.every_call_worked();
        machine.finish(&podman.version(), ("networks", what), &bridges);
    });
}

/// The configuration that makes podman and buildah use our plugins on this machine.
pub fn containers_conf(machine: &Machine) -> std::path::PathBuf {
    let file = machine.work().join("containers.conf");
    let networks = machine.work().join("net.d");
    fs::create_dir_all(&networks).unwrap();
    let text = format!(
        "[containers]\nlog_driver = \"k8s-file\"\n\
         [engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\nruntime = \"runc\"\n\
         [network]\nnetwork_backend = \"cni\"\ncni_plugin_dirs = [\"{}\"]\nnetwork_config_dir = \"{}\"\n",
        machine.plugins().display(),
        networks.display()
    );
    fs::write(&file, text).unwrap();
    file
}

struct Podman<'a> {
    machine: &'a Machine,
    conf: std::path::PathBuf,
}

impl<'a> Podman<'a> {
    fn new(machine: &'a Machine) -> Self {
        let podman = Self {
            machine,
            conf: containers_conf(machine),
        };
        for (name, command) in [("bb", WAIT), ("web", SERVE), ("pause", WAIT)] {
            let file = archive(machine.work(), &format!("localhost/{name}:1"), command);
            podman.run(&["load", "-i", file.to_str().unwrap()]);
        }
        podman
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.machine.command("podman");
        let storage = self.machine.work().join("podman");
        command
            .env("CONTAINERS_CONF", &self.conf)
            .arg("--root")
            .arg(storage.join("root"))
            .arg("--runroot")
            .arg(storage.join("run"))
            .args(["--storage-driver", "vfs"])
            .args(arguments);
        command
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> String {
        self.machine.run(&mut self.command(arguments))
    }

    fn version(&self) -> String {
        self.run(&["--version"])
    }

    /// `podman run -d` of an image.
    #[track_caller]
    fn start(&self, name: &str, options: &[&str], image: &str) -> Netns {
        let group = format!("/{}", cgroup("podman"));
        let mut arguments = vec!["run", "-d", "--name", name, "--cgroup-parent", &group];
        arguments.extend(options);
        arguments.push(image);
        self.run(&arguments);
        self.netns(name)
    }

    fn netns(&self, name: &str) -> Netns {
        let path = self.run(&[
            "inspect",
            "--format",
            "{{.NetworkSettings.SandboxKey}}",
            name,
        ]);
        Netns::open(Path::new(&path)).unwrap()
    }

    #[track_caller]
    fn exec(&self, name: &str, command: &str) -> String {
        self.run(&["exec", name, "sh", "-c", command])
    }

    fn remove(&self, names: &[&str]) {
        let mut arguments = vec!["rm", "-f", "-t", "0"];
        arguments.extend(names);
        self.run(&arguments);
    }

    /// What the web server of a container says at this address, asked by a command.
    #[track_caller]
    fn web(&self, fact: &str, says: &str, ask: impl Fn() -> Command) {
        let end = Instant::now() + STARTING;
        loop {
            let output = self.machine.output(&mut ask());
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if output.status.success() {
                assert!(text.contains(says), "{fact}: {text}");
                return self.machine.ok(fact, &text);
            }
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(Instant::now() < end, "{fact}: {said}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn wget(&self, address: &str) -> Command {
        let mut command = self.machine.command("busybox");
        command.args(["wget", "-q", "-O", "-", &format!("http://{address}/")]);
        command
    }

    fn a_published_port_is_reached_from_everywhere(&self) {
        let machine = self.machine;
        let (here, outside) = (machine.host.netns(), machine.host.outside());
        let ports = [
            "-p",
            "8080:80",
            "-p",
            "8081:81",
            "-p",
            "5353:53/udp",
            "--hostname",
            "web",
        ];
        let web = self.start("web", &ports, "localhost/web:1");
        let other = self.start("other", &[], "localhost/bb:1");
        self.web("run -p 8080:80: the host asks 127.0.0.1", "web", || {
            self.wget("127.0.0.1:8080")
        });
        self.web("another container asks the bridge's address", "web", || {
            self.command(&[
                "exec",
                "other",
                "wget",
                "-q",
                "-O",
                "-",
                "http://10.88.0.1:8080/",
            ])
        });
        self.web("another container asks the container", "web", || {
            self.command(&[
                "exec",
                "other",
                "wget",
                "-q",
                "-O",
                "-",
                "http://10.88.0.2/",
            ])
        });
        let _tcp = machine.serve(&web, Tcp, "10.88.0.2:81", "web");
        let _udp = machine.serve(&web, Udp, "10.88.0.2:53", "web");
        for (who, from, address) in [
            ("the host asks itself", here, "127.0.0.1"),
            ("the host asks the bridge's address", here, "10.88.0.1"),
            ("another host asks", outside, "192.0.2.1"),
            ("another container asks", &other, "10.88.0.1"),
            ("the container asks itself (hairpin)", &web, "10.88.0.1"),
        ] {
            machine.asks(who, from, Tcp, &format!("{address}:8081"));
            machine.asks(who, from, Udp, &format!("{address}:5353"));
        }
        machine.masquerades(&other, OUTSIDE_V4, HOST_V4);
    }

    fn reload_and_restart(&self) {
        let machine = self.machine;
        self.run(&["network", "reload", "web"]);
        self.web("network reload: the port works", "web", || {
            self.wget("127.0.0.1:8080")
        });
        {
            let web = self.netns("web");
            let _tcp = machine.serve(&web, Tcp, "10.88.0.2:81", "web");
            machine.asks(
                "network reload: from another host",
                machine.host.outside(),
                Tcp,
                "192.0.2.1:8081",
            );
        }
        self.run(&["restart", "-t", "0", "web"]);
        self.web("restart: the port works", "web", || {
            self.wget("127.0.0.1:8080")
        });
        self.remove(&["web", "other"]);
        machine.asks_in_vain(
            "rm: the port is closed",
            machine.host.outside(),
            "192.0.2.1:8080",
        );
    }

    fn ranges_and_host_addresses(&self) {
        let machine = self.machine;
        let outside = machine.host.outside();
        let ports = ["-p", "8100-8102:80-82", "-p", "127.0.0.1:8200:83"];
        let many = self.start("many", &ports, "localhost/bb:1");
        let address = self.exec("many", "ip -o -4 addr show eth0");
        let address = address
            .split_whitespace()
            .nth(3)
            .unwrap()
            .split('/')
            .next()
            .unwrap();
        for number in 0..3 {
            let at = format!("{address}:{}", 80 + number);
            let _server = machine.serve(&many, Tcp, &at, "many");
            machine.asks(
                "a range of ports",
                outside,
                Tcp,
                &format!("192.0.2.1:{}", 8100 + number),
            );
        }
        let _server = machine.serve(&many, Tcp, &format!("{address}:83"), "many");
        machine.asks(
            "a port of 127.0.0.1",
            machine.host.netns(),
            Tcp,
            "127.0.0.1:8200",
        );
        machine.asks_in_vain(
            "a port of 127.0.0.1 is not for others",
            outside,
            "192.0.2.1:8200",
        );
        self.remove(&["many"]);
    }

    fn pod(&self) {
        let group = format!("/{}", cgroup("podman"));
        self.run(&[
            "pod",
            "create",
            "--name",
            "pod",
            "-p",
            "8300:80",
            "--cgroup-parent",
            &group,
            "--infra-image",
            "localhost/pause:1",
            "--infra-command",
            "sleep 3600",
        ]);
        self.run(&[
            "run",
            "-d",
            "--pod",
            "pod",
            "--name",
            "member",
            "localhost/web:1",
        ]);
        self.web("a pod's port", "pod", || self.wget("127.0.0.1:8300"));
        self.run(&["pod", "rm", "-f", "-t", "0", "pod"]);
    }

    fn dual_stack(&self) {
        let machine = self.machine;
        self.run(&[
            "network",
            "create",
            "--ipv6",
            "--subnet",
            "10.98.0.0/24",
            "--subnet",
            "fd00:98::/64",
            "dual",
        ]);
        let six = self.start(
            "six",
            &["--network", "dual", "-p", "8086:80"],
            "localhost/bb:1",
        );
        let _v4 = machine.serve(&six, Tcp, "10.98.0.2:80", "six");
        let _v6 = machine.serve(&six, Tcp, "[fd00:98::2]:80", "six");
        let (here, outside) = (machine.host.netns(), machine.host.outside());
        machine.asks("two families: IPv4 port", outside, Tcp, "192.0.2.1:8086");
        machine.asks(
            "two families: IPv6 port",
            outside,
            Tcp,
            "[2001:db8::1]:8086",
        );
        machine.asks(
            "two families: IPv6 port at the bridge's address",
            here,
            Tcp,
            "[fd00:98::1]:8086",
        );
        machine.asks(
            "two families: it asks itself",
            &six,
            Tcp,
            "[fd00:98::1]:8086",
        );
        machine.masquerades(&six, OUTSIDE_V4, HOST_V4);
        machine.masquerades(&six, OUTSIDE_V6, HOST_V6);
        self.remove(&["six"]);
    }

    fn static_address_and_two_networks(&self) {
        let machine = self.machine;
        self.run(&["network", "create", "--subnet", "10.99.0.0/24", "n2"]);
        let network = "n2:ip=10.99.0.77,mac=02:11:22:33:44:55";
        self.start("fixed", &["--network", network], "localhost/bb:1");
        let seen = self.exec("fixed", "ip addr show eth0");
        assert!(
            seen.contains("10.99.0.77/24") && seen.contains("02:11:22:33:44:55"),
            "{seen}"
        );
        machine.ok(
            "a static address and MAC address",
            "10.99.0.77 02:11:22:33:44:55",
        );
        // Which of both would be eth0 is left to chance otherwise.
        let networks = [
            "--network",
            "podman:interface_name=eth0",
            "--network",
            "n2:interface_name=eth1",
        ];
        let both = self.start("both", &networks, "localhost/bb:1");
        let seen = self.exec("both", "ip -o -4 addr show");
        assert!(
            seen.contains("10.88.0.") && seen.contains("10.99.0.") && seen.contains("eth1"),
            "{seen}"
        );
        machine.ok("two networks at once", "eth0 and eth1");
        let fixed = self.netns("fixed");
        let _server = machine.serve(&fixed, Tcp, "10.99.0.77:80", "fixed");
        machine.asks(
            "both reach each other on the second",
            &both,
            Tcp,
            "10.99.0.77:80",
        );
        self.run(&["network", "reload", "fixed"]);
        let seen = self.exec("fixed", "ip addr show eth0");
        assert!(
            seen.contains("10.99.0.77/24") && seen.contains("02:11:22:33:44:55"),
            "{seen}"
        );
        machine.ok("network reload keeps both", "10.99.0.77 02:11:22:33:44:55");
        self.remove(&["fixed", "both"]);
    }

    fn connect_and_disconnect(&self) {
        let machine = self.machine;
        self.start("later", &[], "localhost/bb:1");
        self.run(&["network", "connect", "n2", "later"]);
        let seen = self.exec("later", "ip -o -4 addr show eth1");
        assert!(seen.contains("10.99.0."), "{seen}");
        machine.ok("network connect while it runs", &seen);
        self.run(&["network", "disconnect", "n2", "later"]);
        let seen = self.exec("later", "ip -o link show");
        assert!(!seen.contains("eth1") && seen.contains("eth0"), "{seen}");
        machine.ok("network disconnect", "eth1 is gone, eth0 is not");
        self.remove(&["later"]);
    }

    fn internal(&self) {
        let machine = self.machine;
        self.run(&[
            "network",
            "create",
            "--internal",
            "--subnet",
            "10.97.0.0/24",
            "inner",
        ]);
        let inner = self.start("inner", &["--network", "inner"], "localhost/bb:1");
        let routes = self.exec("inner", "ip route");
        assert!(
            routes.contains("10.97.0.0/24") && !routes.contains("default"),
            "{routes}"
        );
        machine.ok("an internal network has no default route", &routes);
        let _server = machine.serve(machine.host.outside(), Tcp, "192.0.2.9:7000", "outside");
        machine.asks_in_vain("it does not get out", &inner, "192.0.2.9:7000");
        self.remove(&["inner"]);
    }

    fn macvlan(&self) {
        let machine = self.machine;
        self.run(&[
            "network",
            "create",
            "-d",
            "macvlan",
            "-o",
            "parent=up0",
            "--subnet",
            "192.0.2.0/24",
            "--gateway",
            "192.0.2.9",
            "--ip-range",
            "192.0.2.128/25",
            "segment",
        ]);
        let segment = self.start("segment", &["--network", "segment"], "localhost/bb:1");
        let _server = machine.serve(machine.host.outside(), Tcp, "192.0.2.9:7000", "outside");
        let seen = machine.asks(
            "macvlan: its own address on the segment",
            &segment,
            Tcp,
            "192.0.2.9:7000",
        );
        assert_ne!(seen.peer, HOST_V4);
        self.remove(&["segment"]);
    }

    fn mtu(&self) {
        self.run(&[
            "network",
            "create",
            "-o",
            "mtu=1400",
            "--subnet",
            "10.96.0.0/24",
            "small",
        ]);
        self.start("small", &["--network", "small"], "localhost/bb:1");
        let seen = self.exec("small", "ip link show eth0");
        assert!(seen.contains("mtu 1400"), "{seen}");
        self.machine.ok("an MTU", "1400");
        self.remove(&["small"]);
    }
}
