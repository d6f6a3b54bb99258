//! firewalld itself, on a bus of its own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::mount::{MsFlags, mount};

use super::support::{run, tool};

const SOCKET: &str = "/run/dbus/system_bus_socket";
const NAME: &str = "org.fedoraproject.FirewallD1";

/// A bus; it starts firewalld when somebody first speaks to it.
pub struct Bus {
    daemon: Child,
    // Kept open: firewalld inherits it and writes to it.
    _output: BufReader<ChildStdout>,
}

impl Bus {
    pub fn with_firewalld() -> Self {
        let firewalld = tool("firewalld", "firewalld");
        let log = Path::new("/var/log");
        mount(
            Some("tmpfs"),
            log,
            Some("tmpfs"),
            MsFlags::empty(),
            None::<&str>,
        )
        .unwrap();
        for directory in ["/run/dbus", "/run/services", "/run/firewalld"] {
            fs::create_dir_all(directory).unwrap();
        }
        let service = format!(
            "[D-BUS Service]\nName={NAME}\nExec={} --nofork --nopid\n",
            firewalld.display()
        );
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
        let mut child = Command::new(tool("dbus-daemon", "dbus-daemon"))
            .args([
                "--config-file=/run/bus.conf",
                "--nofork",
                "--nopidfile",
                "--print-address=1",
            ])
            .env("DBUS_SYSTEM_BUS_ADDRESS", format!("unix:path={SOCKET}"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        // It prints its address when it listens.
        output.read_line(&mut String::new()).unwrap();
        let bus = Self {
            daemon: child,
            _output: output,
        };
        ask(
            NAME,
            "/org/fedoraproject/FirewallD1",
            &format!("{NAME}.getDefaultZone"),
            &[],
        );
        bus
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        // firewalld ends with its bus; the sandbox's end covers the rest.
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

fn ask(to: &str, object: &str, method: &str, arguments: &[&str]) -> String {
    let destination = format!("--dest={to}");
    let bus = format!("--bus=unix:path={SOCKET}");
    let mut all = vec![&*bus, "--print-reply", &*destination, object, method];
    all.extend_from_slice(arguments);
    run(&tool("dbus-send", "dbus-bin"), &all)
}
