//! The small machine a runtime works on, with the recorder in the place of the plugins.

use std::cell::Cell;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

use conformance::chain::{find_tool, standard_path};
use conformance::facts::{addresses, spellings};
use conformance::net::{Host, Netns};
use conformance::probe::{self, BRIEFLY, PATIENCE, Seen, Server, Transport};
use conformance::sandbox::Launcher;
use conformance::snapshot::{Item, Leavings, Snapshot};
use conformance::transcript::{Recorder, Transcript, normalise};
use nix::mount::{MsFlags, mount};

use crate::outside::{Outside, remove_cgroups};
use crate::support::{plugins, tool};

/// Names the test that runs inside.
const INSIDE: &str = "CNI_TEST_INSIDE";
/// The plugin directory, for the test inside.
const UNDER_TEST: &str = "CNI_PLUGINS_UNDER_TEST";
/// Write the transcripts instead of comparing with them.
const RECORD: &str = "RECORD";

/// Every file of a runtime lies below.
const WORK: &str = "/run/sandbox/tmp";

/// Where runtimes look for plugins if nobody tells them: Debian's are there, and would be taken
/// without a word for one that is missing in ours.
const USUAL: [&str; 3] = ["/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"];

/// The plugins that the runtimes' lists name.
const PLUGINS: &[&str] = &[
    "bandwidth",
    "bridge",
    "firewall",
    "host-local",
    "loopback",
    "macvlan",
    "portmap",
    "ptp",
    "tuning",
];

/// Directories of the runtimes' own, and the lists of the test; they go with the machine.
const THEIRS: &[&str] = &[
    "/run/libpod",
    "/run/runc",
    "/run/containers",
    "/run/containerd",
    "/run/lock",
    "/run/user",
    "/run/mount",
    "/etc/cni/net.d",
];

/// A program and the Debian package that has it.
pub type Tool = (&'static str, &'static str);

/// A machine with the plugins under test, before or while a runtime works on it.
pub struct Machine {
    pub host: Host,
    /// Name of the runtime, and of its directory of transcripts.
    client: &'static str,
    recorder: Recorder,
    fresh: Snapshot,
    /// How many calls belong to the transcript, when not all do.
    wanted: Cell<Option<usize>>,
}

/// Runs a test in a machine of its own, prints what it tells, and looks at the real machine after.
/// `name` is the test's own, without the crate.
pub fn on_machine(name: &str, client: &'static str, tools: &[Tool], body: impl FnOnce(&Machine)) {
    assert!(nix::unistd::geteuid().is_root(), "runtimes need root");
    for (program, package) in tools {
        tool(program, package);
    }
    if std::env::var(INSIDE).is_ok_and(|inside| inside == name) {
        // The harness has begun a line.
        println!();
        body(&Machine::new(client));
        println!("   through: {name}");
        return;
    }
    // Two of them would see each other's traces on the real machine.
    static ONE: Mutex<()> = Mutex::new(());
    let _alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = Outside::look();
    println!("\n== {name}");
    let through = start(name);
    remove_cgroups(&cgroup(client));
    let left = Outside::look().since(&before);
    assert!(left.is_empty(), "{name} left on the machine: {left:#?}");
    println!(
        "   ok   nothing of {client} is left on the machine: processes, mounts, namespaces, files, control groups"
    );
    assert!(through, "{name} failed in its sandbox");
}

/// Whether the test inside came to its end.
fn start(name: &str) -> bool {
    let transcripts = directory();
    fs::create_dir_all(&transcripts).unwrap();
    // The shell, as first process, takes in what daemons leave behind; a test would not.
    let mut child = Launcher::new(env!("CARGO_BIN_EXE_sandbox"))
        .command("/bin/sh")
        .args(["-c", "\"$@\"; exit $?", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            name,
            "--include-ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(INSIDE, name)
        .env(UNDER_TEST, plugins())
        .env("SANDBOX_WRITABLE", transcripts)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut through = false;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        through |= line == format!("   through: {name}");
        if line.starts_with("   ") && !line.contains("through: ") {
            println!("{line}");
        }
    }
    child.wait().unwrap().success() && through
}

/// The parent of a client's control groups, below every hierarchy.
pub fn cgroup(client: &str) -> String {
    format!("ferrule-{client}")
}

/// Where the transcripts are.
fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts")
}

impl Machine {
    fn new(client: &'static str) -> Self {
        let host = Host::new().unwrap();
        // Shared memory of podman's belongs to no namespace.
        mount(
            Some("tmpfs"),
            "/dev/shm",
            Some("tmpfs"),
            MsFlags::empty(),
            None::<&str>,
        )
        .unwrap();
        let recorder = Recorder::new(
            &Path::new(WORK).join("plugins"),
            Path::new(env!("CARGO_BIN_EXE_record")),
            &plugins(),
            PLUGINS,
        )
        .unwrap();
        for place in USUAL.iter().filter(|place| Path::new(place).is_dir()) {
            let ours = Some(recorder.directory());
            mount(ours, *place, None::<&str>, MsFlags::MS_BIND, None::<&str>).unwrap();
        }
        fs::create_dir_all(Path::new(WORK).join("home")).unwrap();
        fs::create_dir_all("/etc/cni/net.d").unwrap();
        let fresh = Snapshot::take(&host).unwrap();
        Self {
            host,
            client,
            recorder,
            fresh,
            wanted: Cell::new(None),
        }
    }

    /// The directory for everything that a runtime writes.
    pub fn work(&self) -> &Path {
        Path::new(WORK)
    }

    /// The plugin directory to be named to a runtime.
    pub fn plugins(&self) -> &Path {
        self.recorder.directory()
    }

    /// Says that something was seen to be so.
    pub fn ok(&self, fact: &str, seen: &str) {
        let seen = seen.trim().replace('\n', " | ");
        println!("   ok   {fact:<66} {seen}");
    }

    /// A command with an environment that is the same on every machine, and a deadline.
    pub fn command(&self, program: &str) -> Command {
        let path = standard_path();
        let file = find_tool(program, &path).unwrap_or_else(|| program.into());
        let mut command = Command::new("timeout");
        command
            .args(["-k", "5", "120"])
            .arg(file)
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.work().join("home"))
            .env("TMPDIR", WORK)
            .stdin(Stdio::null());
        command
    }

    /// What a command printed, which must work.
    #[track_caller]
    pub fn run(&self, command: &mut Command) -> String {
        let output = self.output(command);
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {text} {said}");
        text
    }

    pub fn output(&self, command: &mut Command) -> Output {
        command.output().unwrap()
    }

    /// A server in a namespace that answers with `name`.
    pub fn serve(&self, netns: &Netns, transport: Transport, to: &str, name: &str) -> Server {
        Server::start(netns, transport, to.parse().unwrap(), name).unwrap()
    }

    /// Asks a server that must answer; says so.
    #[track_caller]
    pub fn asks(&self, fact: &str, from: &Netns, transport: Transport, to: &str) -> Seen {
        let seen = probe::ask(from, transport, to.parse().unwrap(), PATIENCE)
            .unwrap_or_else(|error| panic!("{fact}: {error}"));
        let what = format!("{} at {transport} {to} saw {}", seen.server, seen.peer);
        self.ok(fact, &what);
        seen
    }

    /// Asks where nobody may answer; says so.
    #[track_caller]
    pub fn asks_in_vain(&self, fact: &str, from: &Netns, to: &str) {
        let answer = probe::ask(from, Transport::Tcp, to.parse().unwrap(), BRIEFLY);
        let error = answer.expect_err(fact).to_string();
        self.ok(fact, &error);
    }

    /// The container must be seen outside with the host's own address.
    #[track_caller]
    pub fn masquerades(&self, from: &Netns, outside: IpAddr, host: IpAddr) {
        let at = std::net::SocketAddr::new(outside, 7000).to_string();
        let _server = self.serve(self.host.outside(), Transport::Tcp, &at, "outside");
        let seen = self.asks(
            "it goes out with the host's address",
            from,
            Transport::Tcp,
            &at,
        );
        assert_eq!(seen.peer, host);
    }

    /// Every call of a plugin so far has worked.
    #[track_caller]
    pub fn every_call_worked(&self) {
        let calls = self.recorder.calls().unwrap();
        let failed: Vec<_> = calls.iter().filter(|call| call.exit != 0).collect();
        assert!(failed.is_empty(), "{failed:#?}");
        let number = |verb: &str| calls.iter().filter(|call| call.command() == verb).count();
        let counts: Vec<String> = ["VERSION", "STATUS", "ADD", "CHECK", "DEL", "GC"]
            .iter()
            .filter(|verb| number(verb) > 0)
            .map(|verb| format!("{} {verb}", number(verb)))
            .collect();
        assert!(!counts.is_empty(), "no plugin was called");
        self.ok("every call of a plugin worked", &counts.join(", "));
    }

    /// What is called from now on is no part of the transcript.
    pub fn stop_recording(&self) {
        self.wanted.set(Some(self.recorder.calls().unwrap().len()));
    }

    /// The end of a scenario: what the runtime sent is what the transcript says, and nothing of
    /// its containers is left.
    #[track_caller]
    pub fn finish(&self, version: &str, scenario: (&str, &str), bridges: &[&str]) {
        let (file, what) = scenario;
        let mut calls = self.recorder.calls().unwrap();
        let mut owners = Vec::new();
        for call in &calls {
            // Those of loopback are nobody's own, and part of others.
            let given = addresses(&call.stdout)
                .into_iter()
                .map(|one| one.address.ip());
            owners.extend(given.filter(|ip| !ip.is_loopback()).flat_map(spellings));
            owners.push(call.var("CNI_CONTAINERID").to_owned());
        }
        owners.retain(|owner| !owner.is_empty());
        self.nothing_left(&owners, bridges);
        calls.truncate(self.wanted.get().unwrap_or(calls.len()));
        let live = Transcript {
            client: version.to_owned(),
            scenario: what.to_owned(),
            calls: normalise(&calls).unwrap(),
        };
        self.compare(&live, file);
    }

    fn nothing_left(&self, owners: &[String], bridges: &[&str]) {
        let diff = self.fresh.diff(&Snapshot::take(&self.host).unwrap());
        let mut left: Option<Vec<String>> = None;
        for bridge in bridges.iter().copied().chain([""]) {
            let beyond = diff.beyond(&Leavings { bridge, owners });
            left = Some(match left {
                None => beyond,
                Some(left) => left
                    .into_iter()
                    .filter(|line| beyond.contains(line))
                    .collect(),
            });
        }
        let pinned = fs::read_dir("/run/netns").unwrap().flatten();
        let pinned: Vec<_> = pinned
            .map(|entry| entry.file_name())
            .filter(|name| name != "outside")
            .collect();
        assert!(pinned.is_empty(), "namespaces are left: {pinned:?}");
        let theirs = |line: &String| THEIRS.iter().any(|one| line.contains(one));
        let left: Vec<String> = left
            .unwrap_or_default()
            .into_iter()
            .filter(|line| !theirs(line))
            .collect();
        assert!(left.is_empty(), "left behind: {left:#?}");
        let tables = diff
            .added
            .iter()
            .filter(|item| matches!(item, Item::Table(_)))
            .count();
        let seen = format!("bridges {bridges:?} and {tables} empty tables stay for the next one");
        self.ok(
            "nothing of a container is left: links, rules, leases, files, namespaces",
            &seen,
        );
    }

    fn compare(&self, live: &Transcript, file: &str) {
        let path = directory()
            .join(self.client)
            .join(file)
            .with_extension("json");
        if std::env::var_os(RECORD).is_some() {
            live.store(&path).unwrap();
            return self.ok("the transcript is written", file);
        }
        let golden = Transcript::load(&path).unwrap();
        let difference = golden.difference(live);
        let difference: Vec<String> = difference
            .lines()
            .map(|line| line.chars().take(600).collect())
            .take(6)
            .collect();
        assert!(
            difference.is_empty(),
            "{} sends something else than in {}; RECORD=1 writes it anew:\n{}",
            self.client,
            path.display(),
            difference.join("\n"),
        );
        self.ok(
            "it sent what the transcript says",
            &format!("{} calls", golden.calls.len()),
        );
    }
}
