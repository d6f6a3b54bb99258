//! The printed shape of each version, byte for byte, in both directions.
//!
//! `tests/golden/VERSION/CASE.json` is what a plugin prints; `CASE.error` is the text of the
//! error where the version cannot say it. `GOLDEN=write cargo test -p cni-types --test golden`
//! writes the files anew; read the difference before keeping it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

use cni_types::version::Family;
use cni_types::{CniResult, Dns, Interface, Ip, Route, SpecVersion, json, net};
use std::path::PathBuf;

const CASES: [&str; 5] = ["v4", "v6", "dual", "none", "empty"];

fn host_interface() -> Interface {
    Interface {
        name: "cni0".into(),
        mac: "3e:1f:00:00:00:01".into(),
        ..Interface::default()
    }
}

fn container_interface() -> Interface {
    Interface {
        name: "eth0".into(),
        mac: "3e:1f:00:00:00:02".into(),
        mtu: 1450,
        sandbox: "/run/netns/a&b".into(),
        socket_path: "/run/vhost/eth0.sock".into(),
        pci_id: "0000:04:00.5".into(),
    }
}

fn v4() -> (Ip, Vec<Route>) {
    let gateway = Some("10.1.0.1".parse().unwrap());
    let ip = Ip {
        gateway,
        interface: Some(1),
        ..Ip::new(net::parse_cidr("10.1.0.2/16").unwrap())
    };
    let full = Route {
        mtu: 1400,
        advmss: 1360,
        priority: 100,
        table: Some(254),
        scope: Some(0),
        ..Route::new(net::parse_cidr("192.0.2.0/24").unwrap(), gateway)
    };
    (
        ip,
        vec![
            Route::new(net::parse_cidr("0.0.0.0/0").unwrap(), None),
            full,
        ],
    )
}

fn v6() -> (Ip, Vec<Route>) {
    let gateway = Some("fd00::1".parse().unwrap());
    let ip = Ip {
        gateway,
        interface: Some(1),
        ..Ip::new(net::parse_cidr("fd00::2/64").unwrap())
    };
    (
        ip,
        vec![Route::new(net::parse_cidr("::/0").unwrap(), gateway)],
    )
}

fn model(case: &str) -> CniResult {
    let mut result = CniResult {
        interfaces: vec![host_interface(), container_interface()],
        dns: Dns {
            nameservers: vec!["10.1.0.1".into()],
            domain: "example.net".into(),
            search: vec!["example.net".into(), "example.org".into()],
            options: vec!["ndots:2".into()],
        },
        ..CniResult::default()
    };
    let families = match case {
        "v4" => vec![v4()],
        "v6" => vec![v6()],
        "dual" => vec![v4(), v6()],
        "none" => vec![],
        _ => return CniResult::default(),
    };
    for (ip, routes) in families {
        result.ips.push(ip);
        result.routes.extend(routes);
    }
    result
}

/// What is left of a result in a version's shape.
fn reduced(mut result: CniResult, version: SpecVersion) -> CniResult {
    if version.family() != Family::Current {
        for interface in &mut result.interfaces {
            interface.mtu = 0;
            interface.socket_path.clear();
            interface.pci_id.clear();
        }
    }
    if version.family() == Family::Legacy {
        result.interfaces.clear();
        for ip in &mut result.ips {
            ip.interface = None;
        }
        for route in &mut result.routes {
            *route = Route::new(route.dst, route.gw);
        }
    }
    result
}

fn golden(version: SpecVersion, case: &str, kind: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(version.as_str())
        .join(format!("{case}.{kind}"))
}

#[test]
fn each_version_prints_its_own_shape() {
    let write = std::env::var_os("GOLDEN").is_some_and(|value| value == "write");
    for version in SpecVersion::ALL {
        for case in CASES {
            let (printed, kind) = match model(case).to_json(version) {
                Ok(text) => (text, "json"),
                Err(error) => (error.to_string(), "error"),
            };
            let path = golden(version, case, kind);
            if write {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, &printed).unwrap();
            }
            let wanted = std::fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(printed, wanted, "{}", path.display());
        }
    }
}

#[test]
fn each_version_is_read_back() {
    for version in SpecVersion::ALL {
        for case in CASES {
            let path = golden(version, case, "json");
            if !path.exists() {
                assert_eq!(version.family(), Family::Legacy, "{}", path.display());
                assert!(
                    golden(version, case, "error").exists(),
                    "{}",
                    path.display()
                );
                continue;
            }
            let value = json::parse(&std::fs::read(&path).unwrap()).unwrap();
            let (found, result) = CniResult::decode(&value, SpecVersion::V0_1_0).unwrap();
            assert_eq!(found, version, "{}", path.display());
            assert_eq!(result, reduced(model(case), version), "{}", path.display());
        }
    }
}

#[test]
fn every_version_converts_to_every_other() {
    for from in SpecVersion::ALL {
        for to in SpecVersion::ALL {
            for case in ["v4", "v6", "dual"] {
                let value = model(case).encode(from).unwrap();
                let converted = cni_types::result::convert(&value, from, to).unwrap();
                let want = reduced(model(case), from).encode(to).unwrap();
                assert_eq!(converted, want, "{from} to {to}, {case}");
            }
        }
    }
}
