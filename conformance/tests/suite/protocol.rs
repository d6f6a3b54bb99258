//! The protocol itself, row by row, for each plugin.

use std::fs::File;
use std::process::{Command, Stdio};

use conformance::chain::{Attachment, Verb};
use conformance::plugin::{Answer, Call, find};
use serde_json::{Value, json};

use super::support::{OURS, fine, impossible, plugins, refused, sandboxed};

/// Calls a plugin with exactly this environment.
fn call(plugin: &str, env: &[(&str, &str)], stdin: &str) -> Answer {
    let directory = plugins();
    let mut call = Call::new(find(plugin, &[directory]).unwrap()).stdin(stdin);
    for (key, value) in env {
        call = call.env(key, value);
    }
    call.run().unwrap()
}

/// The environment of a command that names an attachment whose namespace does not exist.
fn whole(verb: &'static str) -> Vec<(&'static str, &'static str)> {
    vec![
        ("CNI_COMMAND", verb),
        ("CNI_CONTAINERID", "c1"),
        ("CNI_NETNS", "/run/netns/missing"),
        ("CNI_IFNAME", "eth0"),
        ("CNI_PATH", "/nonexistent"),
    ]
}

#[test]
fn without_a_command_the_plugin_says_what_it_is() {
    for plugin in OURS {
        let answer = call(plugin, &[], "never read");
        fine(&answer);
        assert!(answer.stdout.is_empty(), "{}", answer.text());
        let said = String::from_utf8(answer.stderr).unwrap();
        let (first, second) = said.split_once('\n').unwrap();
        assert!(
            first.starts_with(&format!("CNI {plugin} plugin v")),
            "{said}"
        );
        let list = second
            .trim_end()
            .strip_prefix("CNI protocol versions supported: ");
        assert!(
            list.expect("a list of versions").ends_with("1.0.0, 1.1.0"),
            "{said}"
        );
    }
}

#[test]
fn the_about_line_satisfies_its_readers() {
    // Nomad takes the first word that is a semantic version and wants 1.3.0 before it trusts
    // CHECK; nerdctl wants 1.7.1 of the firewall plugin right after the prefix.
    for plugin in OURS {
        let said = String::from_utf8(call(plugin, &[], "").stderr).unwrap();
        let version = said
            .split_whitespace()
            .find_map(semver)
            .expect("a version in the about line");
        assert!(version >= (1, 7, 1), "{plugin}: {version:?} in {said}");
    }
}

fn semver(word: &str) -> Option<(u64, u64, u64)> {
    let core = word.trim_start_matches('v').split(['+', '-']).next()?;
    let mut parts = core.split('.').map(str::parse);
    let version = (
        parts.next()?.ok()?,
        parts.next()?.ok()?,
        parts.next()?.ok()?,
    );
    parts.next().is_none().then_some(version)
}

#[test]
fn missing_variables_are_listed_in_one_error() {
    for plugin in OURS {
        for (verb, missing) in [
            ("ADD", "CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH"),
            ("CHECK", "CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH"),
            ("DEL", "CNI_CONTAINERID,CNI_IFNAME,CNI_PATH"),
            ("GC", "CNI_PATH"),
            ("STATUS", "CNI_PATH"),
        ] {
            let text = refused(&call(plugin, &[("CNI_COMMAND", verb)], ""), 4);
            assert!(
                text.contains(&format!("[{missing}]")),
                "{plugin} {verb}: {text}"
            );
        }
    }
}

#[test]
fn an_invalid_id_or_interface_name_is_refused_before_what_is_missing() {
    for plugin in OURS {
        let text = refused(
            &call(
                plugin,
                &[("CNI_COMMAND", "ADD"), ("CNI_CONTAINERID", "bad/id")],
                "",
            ),
            4,
        );
        assert!(text.contains("bad/id"), "{plugin}: {text}");
        for name in ["a/b", "a:b", "a b", ".", "..", "sixteen-bytes-xx"] {
            let answer = call(plugin, &[("CNI_COMMAND", "ADD"), ("CNI_IFNAME", name)], "");
            let text = refused(&answer, 4);
            assert!(text.contains("interface name"), "{plugin} {name:?}: {text}");
        }
    }
}

#[test]
fn gc_and_status_do_not_look_at_the_attachment() {
    for plugin in OURS {
        for verb in ["GC", "STATUS"] {
            let env = [
                ("CNI_COMMAND", verb),
                ("CNI_CONTAINERID", "bad/id"),
                ("CNI_PATH", "/nonexistent"),
            ];
            refused(&call(plugin, &env, ""), 6);
        }
    }
}

#[test]
fn bad_requests_have_their_codes() {
    let rows = [
        ("", 6),
        (" \n", 6),
        ("[]", 6),
        ("\"str\"", 6),
        ("{\"name\":1}", 6),
        ("{\"name\":\"n\"}{\"name\":\"n\"}", 6),
        ("{\"name\":\"n\"} x", 6),
        ("\u{feff}{\"name\":\"n\"}", 6),
        ("{\"name\":\"n\",\"cniVersion\":1}", 6),
        ("null", 7),
        ("{}", 7),
        ("{\"name\":null}", 7),
        ("{\"name\":\"a b\"}", 7),
        ("{\"name\":\"_a\"}", 7),
        ("{\"name\":\"n\",\"cniVersion\":\"9.9.9\"}", 1),
        ("{\"name\":\"n\",\"cniVersion\":\"x.y\"}", 1),
    ];
    for plugin in OURS {
        for (stdin, code) in rows {
            refused(&call(plugin, &whole("ADD"), stdin), code);
        }
    }
}

#[test]
fn later_commands_need_their_versions() {
    let rows = [
        ("CHECK", "0.3.1", 1, "does not allow CHECK"),
        ("CHECK", "", 1, "does not allow CHECK"),
        ("CHECK", "0.5.0", 1, ""),
        ("CHECK", "2.0.0", 1, ""),
        ("CHECK", "x.y", 6, ""),
        ("CHECK", "1.2.3.4", 6, ""),
        ("CHECK", "0.", 6, ""),
        ("GC", "1.0.0", 1, "does not allow GC"),
        ("GC", "1.2.0", 1, ""),
        ("STATUS", "1.0.0", 1, "does not allow STATUS"),
        ("STATUS", "1.2.0", 1, ""),
    ];
    for plugin in OURS {
        for (verb, version, code, wanted) in rows {
            let stdin = json!({"name": "n", "type": plugin, "cniVersion": version}).to_string();
            let text = refused(&call(plugin, &whole(verb), &stdin), code);
            assert!(text.contains(wanted), "{plugin} {verb} {version:?}: {text}");
        }
    }
}

#[test]
fn an_unknown_command_is_named_after_the_request_was_understood() {
    for plugin in OURS {
        let env = [("CNI_COMMAND", "FOO"), ("CNI_PATH", "/nonexistent")];
        refused(&call(plugin, &env, ""), 6);
        let text = refused(&call(plugin, &env, "{\"name\":\"n\"}"), 4);
        assert!(
            text.contains("unknown CNI_COMMAND: FOO"),
            "{plugin}: {text}"
        );
        let lower = [("CNI_COMMAND", "add"), ("CNI_PATH", "/nonexistent")];
        refused(&call(plugin, &lower, "{\"name\":\"n\"}"), 4);
    }
}

#[test]
fn version_ignores_everything_around_it() {
    for plugin in OURS {
        let env = [
            ("CNI_COMMAND", "VERSION"),
            ("CNI_CONTAINERID", "bad/id"),
            ("CNI_NETNS", "dummy"),
            ("CNI_IFNAME", "a/b"),
            ("CNI_PATH", "dummy"),
        ];
        let answer = call(plugin, &env, "rubbish");
        fine(&answer);
        let versions = answer.json().unwrap();
        assert_eq!(versions["cniVersion"], "1.1.0");
        let list: Vec<&str> = versions["supportedVersions"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        assert!(
            list.ends_with(&["0.4.0", "1.0.0", "1.1.0"]),
            "{plugin}: {list:?}"
        );
        assert!(
            answer.stdout.ends_with(b"}\n"),
            "one line: {}",
            answer.text()
        );
    }
}

#[test]
fn version_does_not_wait_for_standard_input() {
    for plugin in OURS {
        let program = find(plugin, &[plugins()]).unwrap();
        let mut child = Command::new(program)
            .env_clear()
            .env("CNI_COMMAND", "VERSION")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // The other end of standard input stays open and silent until the plugin has ended.
        let silent = child.stdin.take();
        assert!(child.wait().unwrap().success(), "{plugin}");
        drop(silent);
    }
}

#[test]
fn standard_input_that_cannot_be_read_is_an_io_error() {
    for plugin in OURS {
        let output = Command::new(find(plugin, &[plugins()]).unwrap())
            .env_clear()
            .envs(whole("ADD"))
            .stdin(File::open("/").unwrap())
            .output()
            .unwrap();
        let answer = Answer {
            status: output.status,
            stdout: output.stdout,
            stderr: output.stderr,
            took: std::time::Duration::ZERO,
        };
        refused(&answer, 5);
    }
}

#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    for plugin in OURS {
        let status = Command::new(find(plugin, &[plugins()]).unwrap())
            .env_clear()
            .env("CNI_COMMAND", "VERSION")
            .stdout(File::options().write(true).open("/dev/full").unwrap())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(1), "{plugin}");
    }
}

/// A configuration of each plugin with which an ADD would get to work.
fn working(plugin: &str, version: &str) -> Value {
    let previous = json!({
        "cniVersion": version,
        "interfaces": [{"name": "eth0", "sandbox": "/run/netns/c1"}],
        "ips": [{"address": "10.1.0.2/24", "interface": 0}],
    });
    let ipam = json!({"type": "host-local", "subnet": "10.1.0.0/24"});
    match plugin {
        "loopback" => json!({"cniVersion": version, "name": "n", "type": plugin}),
        "macvlan" | "ipvlan" | "vlan" => {
            json!({"cniVersion": version, "name": "n", "type": plugin, "ipam": ipam, "master": "up0", "vlanId": 5})
        }
        "bridge" | "ptp" | "tap" | "dummy" => {
            json!({"cniVersion": version, "name": "n", "type": plugin, "ipam": ipam})
        }
        "host-device" => {
            json!({"cniVersion": version, "name": "n", "type": plugin, "device": "nic0", "ipam": ipam})
        }
        "host-local" => json!({"cniVersion": version, "name": "n", "type": plugin, "ipam": ipam}),
        "static" => json!({"cniVersion": version, "name": "n", "type": plugin,
            "ipam": {"type": plugin, "addresses": [{"address": "10.1.0.2/24"}]}}),
        "dhcp" => {
            json!({"cniVersion": version, "name": "n", "type": plugin, "ipam": {"type": plugin}})
        }
        "tuning" => {
            json!({"cniVersion": version, "name": "n", "type": plugin, "prevResult": previous,
            "sysctl": {"net.core.somaxconn": "512"}})
        }
        "vrf" => {
            json!({"cniVersion": version, "name": "n", "type": plugin, "prevResult": previous, "vrfname": "blue"})
        }
        _ => json!({"cniVersion": version, "name": "n", "type": plugin, "prevResult": previous}),
    }
}

sandboxed! {
    fn the_host_itself_is_not_a_container(lab) {
        for plugin in OURS {
            let before = lab.snapshot();
            let own = Attachment::new("c1", std::path::Path::new("/proc/self/ns/net"));
            for verb in ["ADD", "DEL"] {
                let answer = lab.one(verb, &working(plugin, "1.0.0"), &own);
                refused(&answer, 8);
            }
            let diff = before.diff(&lab.snapshot());
            let links = diff.added.iter().any(|item| item.to_string().starts_with("link"));
            assert!(!links, "{plugin} worked in the host's namespace:\n{diff}");
        }
    }

    fn the_host_as_a_container_can_be_asked_for(lab) {
        let own = Attachment::new("c1", std::path::Path::new("/proc/self/ns/net"));
        for value in ["1", "true", "tRuE"] {
            let call = lab.ours.call("loopback", "ADD", &own).unwrap().env("CNI_NETNS_OVERRIDE", value);
            let config = working("loopback", "1.0.0");
            fine(&call.stdin(config.to_string()).run().unwrap());
        }
        let call = lab.ours.call("loopback", "ADD", &own).unwrap().env("CNI_NETNS_OVERRIDE", "yes");
        refused(&call.stdin(working("loopback", "1.0.0").to_string()).run().unwrap(), 8);
    }

    fn a_namespace_that_is_none_is_refused_and_del_of_a_missing_one_is_fine(lab) {
        for plugin in ["loopback", "bridge", "ptp", "host-device", "tap", "macvlan", "ipvlan", "vlan", "dummy"] {
            let mut attachment = Attachment::new("c1", std::path::Path::new("/run/netns/missing"));
            let before = lab.snapshot();
            let answer = lab.one("ADD", &working(plugin, "1.0.0"), &attachment);
            assert!(answer.error().is_some(), "{plugin}: {}", answer.text());
            fine(&lab.one("DEL", &working(plugin, "1.0.0"), &attachment));
            attachment.netns = "/tmp".into();
            let answer = lab.one("ADD", &working(plugin, "1.0.0"), &attachment);
            assert!(answer.error().is_some(), "{plugin}: {}", answer.text());
            attachment.netns = "".into();
            fine(&lab.one("DEL", &working(plugin, "1.0.0"), &attachment));
            let left = before.diff(&lab.snapshot());
            let links = left.added.iter().any(|item| item.to_string().starts_with("link"));
            assert!(!links, "{plugin}:\n{left}");
        }
    }

    fn a_del_passes_whatever_the_path_of_the_namespace_is(lab) {
        std::fs::create_dir_all("/run/sandbox/tmp").unwrap();
        std::fs::write("/run/sandbox/tmp/file", "").unwrap();
        std::os::unix::fs::symlink("round", "/run/sandbox/tmp/round").unwrap();
        let long = format!("/run/{}", "x".repeat(5000));
        for netns in ["/run/sandbox/tmp/file", "/run/sandbox/tmp/file/x", "/run/sandbox/tmp/round", &long, "/tmp"] {
            let attachment = Attachment::new("c1", std::path::Path::new(netns));
            for plugin in OURS.into_iter().filter(|plugin| *plugin != "dhcp") {
                let answer = lab.one("DEL", &working(plugin, "1.0.0"), &attachment);
                assert!(answer.ok(), "{plugin}, {netns:.60}: {}", answer.text());
            }
            for plugin in ["bridge", "tap", "loopback"] {
                refused(&lab.one("ADD", &working(plugin, "1.0.0"), &attachment), 8);
            }
        }
    }

    fn every_version_gets_its_own_shape(lab) {
        for (number, version) in VERSIONS.into_iter().enumerate() {
            let netns = lab.container(&format!("c{number}"));
            let attachment = Attachment::new(&format!("c{number}"), netns.path());
            let config = json!({
                "cniVersion": version, "name": "shapes", "type": "bridge", "isGateway": true,
                "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd00:1::/64"}]],
                         "routes": [{"dst": "0.0.0.0/0"}]},
            });
            let answer = lab.one("ADD", &config, &attachment);
            fine(&answer);
            has_shape(&answer.json().unwrap(), version);
        }
    }

    fn meta_plugins_pass_the_result_on_in_the_same_version(lab) {
        let netns = lab.container("c1");
        lab.rtnl().add_veth("v1", &netns, "eth0").unwrap();
        let attachment = Attachment::new("c1", netns.path());
        for plugin in ["firewall", "portmap", "bandwidth", "tuning", "sbr"] {
            for version in ["0.4.0", "1.0.0", "1.1.0"] {
                let config = working(plugin, version);
                let answer = lab.one("ADD", &config, &attachment);
                fine(&answer);
                let result = answer.json().unwrap();
                assert_eq!(result["cniVersion"], version);
                assert_eq!(result["interfaces"][0]["name"], "eth0");
                assert_eq!(result["ips"][0]["address"], "10.1.0.2/24");
                fine(&lab.one("DEL", &config, &attachment));
            }
        }
    }

    fn a_chained_plugin_without_a_result_says_so(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        for plugin in ["firewall", "portmap", "tc-redirect-tap", "tuning", "sbr", "vrf"] {
            let config = json!({"cniVersion": "1.0.0", "name": "n", "type": plugin});
            let answer = lab.one("ADD", &config, &attachment);
            assert!(answer.error().is_some(), "{plugin}: {}", answer.text());
            fine(&lab.one("DEL", &config, &attachment));
        }
    }

    fn gc_and_status_work_in_the_version_that_has_them(lab) {
        // What this kernel cannot make is not ready, and says so.
        let impossible = impossible(lab);
        let own = Attachment::new("c1", std::path::Path::new(""));
        for plugin in &impossible {
            let answer = lab.one("STATUS", &working(plugin, "1.1.0"), &own);
            assert!(refused(&answer, 50).contains(&format!("no links of kind {plugin}")), "{}", answer.text());
            fine(&lab.one("GC", &working(plugin, "1.1.0"), &own));
        }
        let ready = OURS.into_iter().filter(|plugin| !impossible.contains(plugin));
        let network = conformance::chain::Network {
            name: "n".into(),
            version: "1.1.0".into(),
            plugins: ready.map(|plugin| working(plugin, "1.1.0")).collect(),
        };
        assert!(network.has(Verb::Gc));
        let _daemon = super::dhcp::world::daemon(lab, &[]);
        lab.ours.status(&network).unwrap();
        lab.ours.gc(&network, None).unwrap();
        lab.ours.gc(&network, Some(&[])).unwrap();
    }
}

const VERSIONS: [&str; 7] = [
    "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0",
];

/// What each version of the specification calls an address.
fn has_shape(result: &Value, version: &str) {
    assert_eq!(result["cniVersion"], version);
    if matches!(version, "0.1.0" | "0.2.0") {
        assert_eq!(result["ip4"]["gateway"], "10.1.0.1", "{result}");
        assert_eq!(result["ip6"]["gateway"], "fd00:1::1", "{result}");
        assert_eq!(result["ip4"]["routes"][0]["dst"], "0.0.0.0/0", "{result}");
        assert!(
            result.get("ips").is_none() && result.get("interfaces").is_none(),
            "{result}"
        );
        return;
    }
    assert!(result.get("ip4").is_none(), "{result}");
    assert_eq!(
        result["interfaces"].as_array().unwrap().len(),
        3,
        "{result}"
    );
    let (v4, v6) = (&result["ips"][0], &result["ips"][1]);
    assert_eq!(
        (&v4["interface"], &v6["interface"]),
        (&json!(2), &json!(2)),
        "{result}"
    );
    let early = version.starts_with("0.3") || version == "0.4.0";
    if early {
        assert_eq!(
            (&v4["version"], &v6["version"]),
            (&json!("4"), &json!("6")),
            "{result}"
        );
    } else {
        assert!(v4.get("version").is_none(), "{result}");
    }
}
