//! VLANs of bridge ports. What needs a kernel with VLAN filtering asserts its refusal where there is none.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use common::{bridge, host_and_container};
use netlink::{Error, Handle, Link, MacAddr, NewBridge, NewVeth, Result, VlanRange};

fn filtering_bridge(host: &Handle) -> Result<Link> {
    host.create_bridge(&NewBridge {
        name: "cni0".into(),
        mac: MacAddr::random().unwrap(),
        mtu: None,
        vlan_filtering: true,
        up: true,
    })
}

fn port(host: &Handle, container: &Handle, br: &Link) -> netlink::VethEnd {
    let wanted = NewVeth {
        master: Some(br.index),
        ..NewVeth::new("eth0").unwrap()
    };
    host.create_veth(&wanted, container).unwrap().host
}

/// Whether this kernel filters VLANs, asked of the plainest bridge by another tool.
fn kernel_filters() -> bool {
    let ip = |args: &[&str]| {
        std::process::Command::new("ip")
            .args(args)
            .output()
            .expect("this test needs ip(8) from iproute2")
    };
    assert!(
        ip(&["link", "add", "probe", "type", "bridge"])
            .status
            .success()
    );
    let shown = String::from_utf8(ip(&["-d", "link", "show", "probe"]).stdout).unwrap();
    assert!(ip(&["link", "delete", "probe"]).status.success());
    shown.contains("vlan_default_pvid")
}

sandboxed! {
    fn filtering_bridge_or_a_clear_refusal() {
        let (host, container) = host_and_container();
        let made = filtering_bridge(&host);
        if !kernel_filters() {
            let error = made.unwrap_err();
            assert!(matches!(error, Error::NoVlanFiltering { .. }), "{error}");
            assert!(error.to_string().starts_with("cannot filter VLANs on cni0: this kernel"), "{error}");
            assert!(host.find_link("cni0").unwrap().is_none(), "a refused bridge was left");
            return;
        }
        let br = made.unwrap();
        assert_eq!((br.vlan_filtering, br.default_pvid), (Some(true), Some(1)));
        let port = port(&host, &container, &br);
        assert_eq!(host.vlans(&port).unwrap(), [VlanRange::native(1)]);

        host.delete_vlans(&port, &[VlanRange::native(1)]).unwrap();
        assert!(host.vlans(&port).unwrap().is_empty());
        let wanted = [VlanRange::native(100), VlanRange::tagged(101, 101), VlanRange::tagged(200, 202)];
        host.add_vlans(&port, &wanted).unwrap();
        let seen = host.vlans(&port).unwrap();
        assert!(seen.contains(&VlanRange::native(100)) && seen.contains(&VlanRange::tagged(200, 202)), "{seen:?}");
        assert!((1..=4094).all(|vid| seen.iter().any(|r| r.contains(vid)) == wanted.iter().any(|r| r.contains(vid))));

        host.delete_vlans(&port, &[VlanRange::tagged(101, 101), VlanRange::tagged(200, 202)]).unwrap();
        host.add_vlans(&port, &[VlanRange::tagged(2, 4094)]).unwrap();
        assert_eq!(host.vlans(&port).unwrap(), [VlanRange::tagged(2, 4094)]);
    }

    fn ports_of_a_plain_bridge() {
        let (host, container) = host_and_container();
        let br = bridge(&host, "cni0");
        let port = port(&host, &container, &br);
        let added = host.add_vlans(&port, &[VlanRange::native(100)]);
        if kernel_filters() {
            added.unwrap();
            assert_eq!(br.vlan_filtering, Some(false));
        } else {
            let error = added.unwrap_err();
            assert!(matches!(error, Error::NoVlanFiltering { .. }), "{error}");
            assert!(error.to_string().starts_with(&format!("cannot filter VLANs on {}", port.name)), "{error}");
            assert_eq!(br.vlan_filtering, None);
            assert!(host.vlans(&port).unwrap().is_empty());
        }
    }
}
