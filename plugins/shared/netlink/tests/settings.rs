//! Kernel settings, in the right namespace.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use common::{bridge, host_and_container};
use netlink::sysctl;

sandboxed! {
    fn each_namespace_has_its_own() {
        let (host, container) = host_and_container();
        let forward = sysctl::path(&["net", "ipv4", "ip_forward"]).unwrap();
        host.write_sysctl(&forward, "0").unwrap();
        container.write_sysctl(&forward, "1").unwrap();
        assert_eq!(host.read_sysctl(&forward).unwrap(), "0");
        assert_eq!(container.read_sysctl(&forward).unwrap(), "1");
        assert_eq!(sysctl::read(&forward).unwrap(), "0");
        container
            .inside(|| {
                assert!(!sysctl::ensure(&forward, "1").unwrap());
                assert!(sysctl::ensure(&forward, "0").unwrap());
            })
            .unwrap();
        assert_eq!(container.read_sysctl(&forward).unwrap(), "0");
    }

    fn dots_in_link_names() {
        let (host, _container) = host_and_container();
        bridge(&host, "br0.100");
        let accept = sysctl::conf("ipv6", "br0.100", "accept_ra").unwrap();
        host.write_sysctl(&accept, "0").unwrap();
        assert_eq!(host.read_sysctl(&accept).unwrap(), "0");
    }

    fn faults_name_the_file() {
        let (host, _container) = host_and_container();
        let none = sysctl::conf("ipv4", "no-such-link", "forwarding").unwrap();
        for error in [host.read_sysctl(&none).unwrap_err(), host.write_sysctl(&none, "1").unwrap_err()] {
            assert!(error.is_not_found());
            let text = error.to_string();
            assert!(text.ends_with(" /proc/sys/net/ipv4/conf/no-such-link/forwarding: no such file or directory"), "{text}");
        }
        let forward = sysctl::path(&["net", "ipv4", "ip_forward"]).unwrap();
        let text = host.write_sysctl(&forward, "often").unwrap_err().to_string();
        assert_eq!(text, "cannot write /proc/sys/net/ipv4/ip_forward: invalid argument");
    }
}
