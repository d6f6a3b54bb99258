//! Driving the reference set's plugins by hand.

use std::io::Write;
use std::process::{Command, Stdio};

const DIRECTORY: &str = "/usr/lib/cni";

/// Runs a plugin of the reference set for a container whose namespace is `/run/netns/<id>`.
pub fn plugin(name: &str, command: &str, id: &str, config: &str) -> String {
    let mut child = Command::new(format!("{DIRECTORY}/{name}"))
        .envs([
            ("CNI_COMMAND", command),
            ("CNI_CONTAINERID", id),
            ("CNI_IFNAME", "eth0"),
            ("CNI_PATH", DIRECTORY),
        ])
        .env("CNI_NETNS", format!("/run/netns/{id}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("these tests need the reference set: apt-get install containernetworking-plugins");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(config.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{name} {command}: {said}");
    said
}

/// A bridge with static addresses.
pub fn bridge(network: &str, masquerade: bool, addresses: &[&str]) -> String {
    let list = addresses
        .iter()
        .map(|a| format!(r#"{{"address":"{a}"}}"#))
        .collect::<Vec<_>>()
        .join(",");
    format!(
        r#"{{"cniVersion":"0.4.0","name":"{network}","type":"bridge","bridge":"br0","isGateway":false,"ipMasq":{masquerade},
            "ipam":{{"type":"static","addresses":[{list}]}}}}"#
    )
}

/// A chained plugin's configuration: `keys` begins with a comma.
pub fn chained(kind: &str, network: &str, addresses: &[&str], keys: &str) -> String {
    let ips: Vec<_> = addresses
        .iter()
        .map(|a| {
            format!(
                r#"{{"version":"{}","interface":1,"address":"{a}"}}"#,
                if a.contains(':') { 6 } else { 4 }
            )
        })
        .collect();
    format!(
        r#"{{"cniVersion":"0.4.0","name":"{network}","type":"{kind}"{keys},
            "prevResult":{{"cniVersion":"0.4.0","interfaces":[{{"name":"br0"}},{{"name":"eth0","sandbox":"/run/netns/x"}}],
            "ips":[{}]}}}}"#,
        ips.join(",")
    )
}
