//! firewalld itself, on a bus of its own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::sandbox::*;
use netfilter::{ApplyOptions, Backend, Error, Hints, Intent, Kinds, Netfilter};

const SOCKET: &str = "/run/dbus/system_bus_socket";
const NAME: &str = "org.fedoraproject.FirewallD1";

/// A bus; it starts firewalld when somebody first speaks to it.
struct Bus {
    daemon: Child,
    // Kept open: firewalld inherits it and writes to it.
    _output: BufReader<ChildStdout>,
}

impl Bus {
    fn start() -> Self {
        sh("mount -t tmpfs tmpfs /var/log; mkdir -p /run/dbus /run/services /run/firewalld");
        let service =
            format!("[D-BUS Service]\nName={NAME}\nExec=/usr/sbin/firewalld --nofork --nopid\n");
        fs::write("/run/services/firewalld.service", service).unwrap();
        let config = format!(
            r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
                 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
               <busconfig><type>session</type><listen>unix:path={SOCKET}</listen><auth>EXTERNAL</auth>
               <servicedir>/run/services</servicedir>
               <policy context="default"><allow user="*"/><allow own="*"/><allow send_type="method_call"/>
               <allow send_destination="*"/><allow receive_sender="*"/></policy></busconfig>"#
        );
        fs::write("/run/bus.conf", config).unwrap();
        let mut daemon = Command::new("dbus-daemon");
        daemon.args([
            "--config-file=/run/bus.conf",
            "--nofork",
            "--nopidfile",
            "--print-address=1",
        ]);
        let mut child = daemon
            .env("DBUS_SYSTEM_BUS_ADDRESS", format!("unix:path={SOCKET}"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("these tests need a bus and firewalld: apt-get install dbus-daemon firewalld");
        let mut output = BufReader::new(child.stdout.take().unwrap());
        // It prints its address when it listens.
        output.read_line(&mut String::new()).unwrap();
        Self {
            daemon: child,
            _output: output,
        }
    }

    fn with_firewalld() -> Self {
        let bus = Self::start();
        ask(
            NAME,
            "/org/fedoraproject/FirewallD1",
            &format!("{NAME}.getDefaultZone"),
            "",
        );
        bus
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let query = "org.freedesktop.DBus.GetConnectionUnixProcessID";
        if let Some(said) = try_ask(
            "org.freedesktop.DBus",
            "/",
            query,
            &format!("string:{NAME}"),
        ) && let Some(pid) = said.split_whitespace().last()
        {
            let _ = try_sh(&format!("kill {pid}"));
        }
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

fn try_ask(to: &str, object: &str, method: &str, argument: &str) -> Option<String> {
    let send = format!(
        "DBUS_SESSION_BUS_ADDRESS=unix:path={SOCKET} dbus-send --print-reply --dest={to} {object} {method} {argument}"
    );
    let output = try_sh(&send);
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn ask(to: &str, object: &str, method: &str, argument: &str) -> String {
    try_ask(to, object, method, argument)
        .unwrap_or_else(|| panic!("{to} does not answer {method}; is firewalld installed?"))
}

fn sources(zone: &str) -> Vec<String> {
    let said = ask(
        NAME,
        "/org/fedoraproject/FirewallD1",
        &format!("{NAME}.zone.getSources"),
        &format!("string:{zone}"),
    );
    said.lines()
        .filter_map(|line| line.trim().strip_prefix("string \"")?.strip_suffix('"'))
        .map(str::to_owned)
        .collect()
}

fn admitted(address: &str, zone: Option<&str>) -> Intent {
    Intent::Admit {
        address: address.parse().unwrap(),
        admin_chain: "CNI-ADMIN".into(),
        zone: zone.map(str::to_owned),
    }
}

fn filter() -> Netfilter {
    Netfilter::open().unwrap().with_firewalld()
}

fn apply(wanted: &[Intent]) -> netfilter::Result<()> {
    filter().apply(
        Backend::Firewalld,
        &owner("n", "c", "eth0"),
        wanted,
        &ApplyOptions::default(),
    )
}

sandboxed! {
    /// The whole life of two addresses, checked against what firewalld says itself.
    fn sources_come_and_go() {
        let _bus = Bus::with_firewalld();
        let owner = owner("n", "c", "eth0");
        let wanted = [admitted("10.88.0.2", None), admitted("fd00::2", None)];
        assert_eq!(filter().choose(None, Kinds::ADMIT).unwrap(), Backend::Firewalld);
        assert_eq!(filter().choose(None, Kinds::MASQUERADE).unwrap(), Backend::Nftables);
        filter().status(Backend::Firewalld, Kinds::ADMIT).unwrap();
        apply(&wanted).unwrap();
        assert_eq!(sources("trusted"), ["10.88.0.2/32", "fd00::2/128"]);
        apply(&wanted).unwrap();
        filter().verify(Backend::Firewalld, &owner, &wanted).unwrap();

        // One lost source is noticed, though the bus answers the question without an error.
        ask(NAME, "/org/fedoraproject/FirewallD1", &format!("{NAME}.zone.removeSource"), "string:trusted string:fd00::2/128");
        let error = filter().verify(Backend::Firewalld, &owner, &wanted).unwrap_err();
        assert!(matches!(&error, Error::Missing { what } if what.contains("fd00::2/128")), "{error}");

        let hints = Hints { addresses: vec!["10.88.0.2".parse().unwrap(), "fd00::2".parse().unwrap()], ..Hints::default() };
        for _ in 0..2 {
            let mut filter = filter();
            filter.remove(&owner, Kinds::ADMIT, &hints).unwrap();
            assert_eq!(filter.take_warnings(), [""; 0]);
        }
        assert!(sources("trusted").is_empty());
    }

    /// A refusal half-way takes back what was done and tells firewalld's own words.
    fn a_refusal_leaves_nothing() {
        let _bus = Bus::with_firewalld();
        let error = apply(&[admitted("10.88.0.2", Some("internal")), admitted("10.88.0.3", Some("nosuchzone"))]).unwrap_err();
        assert!(error.to_string().contains("INVALID_ZONE") && error.to_string().contains("10.88.0.3"), "{error}");
        assert!(sources("internal").is_empty());
        // An address that is in another zone already is not ours to move.
        apply(&[admitted("10.88.0.4", Some("internal"))]).unwrap();
        let error = apply(&[admitted("10.88.0.4", None)]).unwrap_err();
        assert!(error.to_string().contains("ZONE_CONFLICT"), "{error}");
        assert_eq!(sources("internal"), ["10.88.0.4/32"]);
    }

    /// A bus without firewalld, a socket without a bus, no socket: an error for whoever asks for it, nothing else.
    fn without_firewalld_only_asking_for_it_fails() {
        let owner = owner("n", "c", "eth0");
        let hints = Hints { addresses: vec!["10.88.0.2".parse().unwrap()], ..Hints::default() };
        let check = || {
            let error = apply(&[admitted("10.88.0.2", None)]).unwrap_err();
            assert!(matches!(error, Error::Unavailable { .. }), "{error}");
            assert!(filter().status(Backend::Firewalld, Kinds::ADMIT).is_err());
            assert_eq!(filter().choose(None, Kinds::ADMIT).unwrap(), Backend::Nftables);
            let mut filter = filter();
            filter.remove(&owner, Kinds::ALL, &hints).unwrap();
            assert_eq!(filter.take_warnings(), [""; 0]);
        };
        check();
        sh("mkdir -p /run/dbus");
        drop(UnixListener::bind(SOCKET).unwrap());
        check();
        fs::remove_file(SOCKET).unwrap();
        let bus = Bus::start();
        fs::remove_file("/run/services/firewalld.service").unwrap();
        check();
        drop(bus);
    }

    /// A bus that accepts and says nothing is given up.
    fn a_silent_bus_is_given_up() {
        sh("mkdir -p /run/dbus");
        let _listener = UnixListener::bind(SOCKET).unwrap();
        let options = ApplyOptions { timeout: Duration::from_millis(50), ..ApplyOptions::default() };
        let wanted = [admitted("10.88.0.2", None)];
        let error = filter().apply(Backend::Firewalld, &owner("n", "c", "eth0"), &wanted, &options).unwrap_err();
        assert!(matches!(error, Error::Busy { .. }), "{error}");
    }

    /// Nothing but admitting can be asked of firewalld, and of nobody who was not given it.
    fn what_firewalld_cannot_do_is_refused() {
        let _bus = Bus::with_firewalld();
        assert!(matches!(apply(&[masquerade("10.88.0.2/16")]), Err(Error::Unavailable { .. })));
        let mut plain = Netfilter::open().unwrap();
        assert_eq!(plain.choose(None, Kinds::ADMIT).unwrap(), Backend::Nftables);
        let wanted = [admitted("10.88.0.2", None)];
        let refused = plain.apply(Backend::Firewalld, &owner("n", "c", "eth0"), &wanted, &ApplyOptions::default());
        assert!(matches!(refused, Err(Error::Unavailable { .. })));
    }
}
