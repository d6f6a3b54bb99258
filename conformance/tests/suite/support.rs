//! What every test stands on: the plugins freshly built, and a sandbox around the test.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use conformance::chain::{Attachment, Network, Runtime, find_tool, standard_path};
use conformance::facts::addresses;
use conformance::net::{Host, Netns, Rtnl};
use conformance::plugin::Answer;
use conformance::probe::{self, PATIENCE, Seen, Server, Transport};
use conformance::sandbox::Launcher;
use conformance::snapshot::Snapshot;
use serde_json::Value;

/// The plugins of this workspace.
pub const OURS: [&str; 19] = [
    "loopback",
    "bridge",
    "ptp",
    "macvlan",
    "ipvlan",
    "vlan",
    "dummy",
    "host-device",
    "tap",
    "dhcp",
    "host-local",
    "static",
    "bandwidth",
    "firewall",
    "portmap",
    "tc-redirect-tap",
    "tuning",
    "sbr",
    "vrf",
];

/// Names the test that runs inside a sandbox.
const INSIDE: &str = "CNI_TEST_INSIDE";

/// Another plugin directory to be judged instead of our own.
const UNDER_TEST: &str = "CNI_PLUGINS_UNDER_TEST";

/// Defines tests that each run in a sandbox of their own: `sandboxed! { fn name(lab) { … } }`.
macro_rules! sandboxed {
    ($($(#[$meta:meta])* fn $name:ident($lab:ident) $body:block)+) => {$(
        $(#[$meta])*
        #[test]
        fn $name() {
            let path = concat!(module_path!(), "::", stringify!($name));
            $crate::support::in_sandbox(path, |$lab: &$crate::support::Lab| $body);
        }
    )+};
}
pub(crate) use sandboxed;

/// The plugins whose links this kernel has not. Their ADDs are played in the machine with another kernel.
pub fn impossible(lab: &Lab) -> Vec<&'static str> {
    let ip = tool("ip", "iproute2");
    let cases = [
        ("macvlan", "link up0 name probe0 type macvlan"),
        ("ipvlan", "link up0 name probe0 type ipvlan"),
        ("vlan", "link up0 name probe0 type vlan id 9"),
        ("dummy", "name probe0 type dummy"),
        ("vrf", "name probe0 type vrf table 9"),
    ];
    let lacks = |arguments: &str| {
        let words = ["link", "add"].into_iter().chain(arguments.split(' '));
        let made = Command::new(&ip).args(words).output().unwrap();
        if made.status.success() {
            lab.rtnl().delete_link("probe0").unwrap();
        }
        !made.status.success()
    };
    let missing = cases.into_iter().filter(|(_, arguments)| lacks(arguments));
    missing.map(|(plugin, _)| plugin).collect()
}

/// A host in a sandbox, and the plugins under test.
pub struct Lab {
    pub host: Host,
    pub ours: Runtime,
}

/// Runs a test body in a sandbox: the test binary is started again, through the sandbox, for just
/// this test. Threads of a test process cannot enter a user namespace, so there is no other way.
pub fn in_sandbox(path: &str, body: impl FnOnce(&Lab)) {
    let name = path.split_once("::").expect("tests live in modules").1;
    let done = format!("sandboxed test {name} is through");
    if std::env::var(INSIDE).is_ok_and(|inside| inside == name) {
        let lab = Lab {
            host: Host::new().unwrap(),
            ours: Runtime::new(&plugins()),
        };
        body(&lab);
        println!("{done}");
        return;
    }
    let output = Launcher::new(env!("CARGO_BIN_EXE_sandbox"))
        .command(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, name)
        .env(UNDER_TEST, plugins())
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success() && out.contains(&done),
        "{name} failed in its sandbox ({})\n{out}\n{err}",
        output.status
    );
}

/// The directory of the plugins under test; ours are built first, so they are never stale.
pub fn plugins() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT
        .get_or_init(|| match std::env::var_os(UNDER_TEST) {
            Some(directory) => directory.into(),
            None => build(),
        })
        .clone()
}

fn build() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let sandbox = Path::new(env!("CARGO_BIN_EXE_sandbox"));
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--workspace", "--bins"]);
    if sandbox
        .components()
        .any(|part| part.as_os_str() == "release")
    {
        command.arg("--release");
    }
    let status = command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo runs");
    assert!(status.success(), "the plugins do not build");
    sandbox.parent().unwrap().to_owned()
}

/// The reference set's plugins, for tests in which both kinds meet on one host.
pub fn reference() -> Runtime {
    Runtime::new(&reference_directory())
}

/// Where they are.
pub fn reference_directory() -> PathBuf {
    let places = std::env::var_os("CNI_REFERENCE")
        .map(PathBuf::from)
        .into_iter()
        .chain(["/usr/lib/cni", "/usr/libexec/cni"].map(PathBuf::from));
    let found = places
        .into_iter()
        .find(|place| place.join("bridge").is_file());
    found.expect(
        "this test needs the reference set of CNI plugins: install containernetworking-plugins \
         (Debian, Fedora) or cni-plugins (Arch, Alpine), or name its directory in CNI_REFERENCE",
    )
}

/// A program this test cannot do without.
pub fn tool(name: &str, package: &str) -> PathBuf {
    find_tool(name, &standard_path())
        .unwrap_or_else(|| panic!("this test needs {name}: install the package {package}"))
}

/// Runs a tool and returns what it printed.
pub fn run(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{} {arguments:?}: {} {text} {}",
        program.display(),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// iproute2 in a namespace, and what it printed.
pub fn ip(netns: &Netns, arguments: &str) -> String {
    let program = tool("ip", "iproute2");
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    netns.run(|| Ok(run(&program, &arguments))).unwrap()
}

/// The addresses leased in a network's directory, sorted as text; none if it is not there.
pub fn leases_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names
        .filter(|name| name.parse::<IpAddr>().is_ok())
        .collect();
    names.sort();
    names
}

/// The configuration with the result of an earlier ADD in it.
pub fn with_previous(config: &Value, answer: &Answer) -> Value {
    let mut config = config.clone();
    config["prevResult"] = answer.json().unwrap();
    config
}

/// `iptables` or `ip6tables` with these arguments.
pub fn iptables(family: &str, arguments: &str) -> String {
    let program = tool(family, "iptables");
    run(&program, &arguments.split_whitespace().collect::<Vec<_>>())
}

/// A ruleset for `nft`.
pub fn nft(ruleset: &str) -> String {
    run(&tool("nft", "nftables"), &[ruleset])
}

/// A search path on which nothing is found.
pub fn empty_path() -> OsString {
    let directory = Path::new("/run/sandbox/tmp/empty");
    std::fs::create_dir_all(directory).unwrap();
    directory.into()
}

impl Lab {
    pub fn container(&self, name: &str) -> Netns {
        self.host.container(name).unwrap()
    }

    pub fn rtnl(&self) -> &Rtnl {
        self.host.rtnl()
    }

    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.host).unwrap()
    }

    /// One plugin with this configuration for this attachment.
    pub fn one(&self, verb: &str, config: &Value, attachment: &Attachment) -> Answer {
        one_of(&self.ours, verb, config, attachment)
    }

    /// ADD by a single plugin that must work; the answer carries the result.
    #[track_caller]
    pub fn added(&self, config: &Value, attachment: &Attachment) -> Answer {
        let answer = self.one("ADD", config, attachment);
        fine(&answer);
        answer
    }

    /// ADD of a list that must work.
    pub fn add(&self, network: &Network, attachment: &mut Attachment) -> Value {
        self.ours
            .add(network, attachment)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn del(&self, network: &Network, attachment: &Attachment) {
        self.ours
            .del(network, attachment)
            .unwrap_or_else(|error| panic!("{error}"));
    }

    pub fn check(&self, network: &Network, attachment: &Attachment) {
        self.ours
            .check(network, attachment)
            .unwrap_or_else(|error| panic!("{error}"));
    }
}

/// One plugin of a runtime with this configuration for this attachment.
pub fn one_of(runtime: &Runtime, verb: &str, config: &Value, attachment: &Attachment) -> Answer {
    let plugin = config["type"]
        .as_str()
        .expect("a configuration names its plugin");
    runtime
        .call(plugin, verb, attachment)
        .unwrap()
        .stdin(config.to_string())
        .run()
        .unwrap()
}

/// The first address of a family in a result.
pub fn address_of(result: &Value, v4: bool) -> IpAddr {
    let all = addresses(result);
    let found = all.iter().find(|one| one.address.is_ipv4() == v4);
    found
        .expect("the result has an address of this family")
        .address
        .ip()
}

/// A network from JSON.
pub fn network(value: &Value) -> Network {
    Network::parse(&value.to_string()).unwrap()
}

/// A server that must start.
pub fn serve(
    netns: &Netns,
    transport: Transport,
    address: IpAddr,
    port: u16,
    name: &str,
) -> Server {
    Server::start(netns, transport, SocketAddr::new(address, port), name).unwrap()
}

/// Asks a server that must answer.
#[track_caller]
pub fn ask(netns: &Netns, transport: Transport, address: IpAddr, port: u16) -> Seen {
    let to = SocketAddr::new(address, port);
    probe::ask(netns, transport, to, PATIENCE).unwrap_or_else(|error| panic!("{error}"))
}

/// Asks where no answer may come.
#[track_caller]
pub fn no_answer(netns: &Netns, transport: Transport, address: IpAddr, port: u16) {
    let to = SocketAddr::new(address, port);
    if let Ok(seen) = probe::ask(netns, transport, to, probe::BRIEFLY) {
        panic!("{} answered at {to} and saw {}", seen.server, seen.peer);
    }
}

/// The answer must be the protocol's error object with this code; returns `msg; details`.
#[track_caller]
pub fn refused(answer: &Answer, code: u64) -> String {
    let error = answer
        .error()
        .unwrap_or_else(|| panic!("no error object: {}", answer.text()));
    assert_eq!(error.code, code, "{}", answer.text());
    format!("{}; {}", error.msg, error.details)
}

/// The answer must be success.
#[track_caller]
pub fn fine(answer: &Answer) {
    assert!(answer.ok(), "{}", answer.text());
}

/// Makes programs unfindable for the rest of this sandbox, wherever a plugin may look.
pub fn hide_tools(names: &[&str]) {
    use nix::mount::{MsFlags, mount};
    for name in names {
        while let Some(file) = find_tool(name, &standard_path()) {
            let directory = file.parent().unwrap();
            mount(
                Some("tmpfs"),
                directory,
                Some("tmpfs"),
                MsFlags::empty(),
                None::<&str>,
            )
            .unwrap();
        }
    }
}
