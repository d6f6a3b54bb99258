//! Logs: nothing unless asked for, then a line per step with whose it is and how long it took.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use conformance::chain::Attachment;
use serde_json::{Value, json};

use super::support::{Lab, fine, sandboxed};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn bridge(extra: Value) -> Value {
    let mut config = json!({"cniVersion": "1.1.0", "name": "net", "type": "bridge", "bridge": "br0",
        "isGateway": true, "ipMasq": true, "ipam": {"type": "host-local", "subnet": "10.77.0.0/24"}});
    for (key, value) in extra.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

/// ADD, CHECK, STATUS, GC and DEL of one attachment; what was said on standard error.
fn life(lab: &Lab, config: &Value, environment: &[(&str, &str)]) -> String {
    let netns = lab.container("c1");
    let attachment = Attachment::new("c1", netns.path());
    let mut said = String::new();
    let mut result = Value::Null;
    for verb in ["ADD", "CHECK", "STATUS", "GC", "DEL"] {
        let mut request = config.clone();
        match verb {
            "CHECK" | "DEL" => request["prevResult"] = result.clone(),
            "GC" => {
                request["cni.dev/valid-attachments"] =
                    json!([{"containerID": "c1", "ifname": "eth0"}]);
            }
            _ => {}
        }
        let mut call = lab.ours.call("bridge", verb, &attachment).unwrap();
        for (name, value) in environment {
            call = call.env(name, value);
        }
        let answer = call.stdin(request.to_string()).run().unwrap();
        fine(&answer);
        if verb == "ADD" {
            result = answer.json().unwrap();
        }
        said += &String::from_utf8_lossy(&answer.stderr);
    }
    said
}

fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.split(&format!(" {name}=")).nth(1)?;
    rest.split(' ').next()
}

sandboxed! {
    fn nothing_is_written_unless_asked_for(lab) {
        assert_eq!(life(lab, &bridge(json!({})), &[]), "");
    }

    fn a_line_for_each_step_of_each_command(lab) {
        let log = "/run/cni.log";
        let said = life(lab, &bridge(json!({})), &[("CNI_LOG", &format!("{log}:info")), ("TRACEPARENT", TRACE)]);
        assert_eq!(said, "");
        let text = fs::read_to_string(log).unwrap();
        for verb in ["ADD", "CHECK", "STATUS", "GC", "DEL"] {
            for plugin in ["bridge", "host-local"] {
                let lines: Vec<&str> = text.lines()
                    .filter(|line| field(line, "command") == Some(verb) && field(line, "plugin") == Some(plugin))
                    .collect();
                assert!(lines.len() >= 2, "{plugin} {verb}: {text}");
                assert!(lines.last().unwrap().contains(&format!("msg=\"{verb} done\"")), "{plugin} {verb}: {text}");
            }
        }
        assert!(text.contains("CHECK of host-local") && text.contains("the bridge br0 is as it was"), "{text}");
        for line in text.lines() {
            assert!(line.starts_with("time=20") && line.ends_with('"'), "{line}");
            assert_eq!(field(line, "network"), Some("net"), "{line}");
            assert_eq!(field(line, "trace"), Some(TRACE), "the trace reaches the IPAM plugin: {line}");
            for number in ["at_ms", "took_ms", "pid"] {
                assert!(field(line, number).unwrap().parse::<f64>().is_ok(), "{line}");
            }
            let of_attachment = !matches!(field(line, "command"), Some("GC" | "STATUS"));
            assert_eq!(field(line, "container"), of_attachment.then_some("c1"), "{line}");
        }
        assert!(!text.contains("netlink:"), "{text}");
    }

    fn messages_to_the_kernel_are_readable_at_debug(lab) {
        let log = "/run/cni.log";
        life(lab, &bridge(json!({"logFile": log, "logLevel": "debug"})), &[]);
        let text = fs::read_to_string(log).unwrap();
        for part in ["netlink: ", "RTM_NEWLINK", "name=\\\"br0\\\"", "-> ok", "nftables: transaction of ", "NEWSETELEM inet ferrule"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    fn the_journal_gets_fields(lab) {
        fs::create_dir_all("/run/systemd/journal").unwrap();
        let journal = UnixDatagram::bind("/run/systemd/journal/socket").unwrap();
        journal.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let call = lab.ours.call("bridge", "ADD", &attachment).unwrap().env("CNI_LOG", "journal");
        fine(&call.stdin(bridge(json!({})).to_string()).run().unwrap());
        let mut bytes = [0; 4096];
        let length = journal.recv(&mut bytes).unwrap();
        let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
        for line in ["PRIORITY=6", "SYSLOG_IDENTIFIER=cni-bridge", "CNI_COMMAND=ADD", "CNI_CONTAINER=c1", "CNI_NETWORK=net"] {
            assert!(text.lines().any(|one| one == line), "{line}: {text}");
        }
        assert!(text.starts_with("MESSAGE="), "{text}");
    }

    fn a_failure_is_in_the_log_and_a_log_never_fails_a_call(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let run = |log: &str, config: &Value| {
            let call = lab.ours.call("bridge", "ADD", &attachment).unwrap().env("CNI_LOG", log);
            call.stdin(config.to_string()).run().unwrap()
        };
        let bad = run("/run/cni.log", &bridge(json!({"mtu": 67})));
        assert!(bad.error().is_some());
        let text = fs::read_to_string("/run/cni.log").unwrap();
        assert!(text.lines().last().unwrap().contains("level=error"), "{text}");
        assert!(text.contains("mtu 67"), "{text}");
        for (log, said) in [("/nonexistent/cni.log", "cannot open the log"), ("/run/cni.log:debgu", "did you mean \"debug\"?")] {
            let answer = run(log, &bridge(json!({})));
            fine(&answer);
            let stderr = String::from_utf8_lossy(&answer.stderr).into_owned();
            assert!(stderr.contains(said), "{log}: {stderr}");
            fine(&lab.one("DEL", &bridge(json!({})), &attachment));
        }
    }
}
