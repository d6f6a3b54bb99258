//! Veth pairs across namespaces, and bridges they are ports of.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use common::{bridge, host_and_container, veth};
use netlink::{Error, LinkChange, MacAddr, NewBridge, NewVeth};

sandboxed! {
    /// One request: far end in the container under its final name, host end a port of the bridge and up.
    fn pair_is_born_in_place() {
        let (host, container) = host_and_container();
        let br = bridge(&host, "cni0");
        let wanted = NewVeth {
            mac: "02:00:00:00:00:07".parse().unwrap(),
            mtu: Some(1400),
            master: Some(br.index),
            host_up: true,
            ..NewVeth::new("eth0").unwrap()
        };
        let made = host.create_veth(&wanted, &container).unwrap();

        let near = host.link(&made.host.name).unwrap();
        assert_eq!(near.master, Some(br.index));
        assert!(near.up && near.is_veth());
        assert_eq!((near.mtu, near.tx_queue_len), (1400, 0));
        assert_eq!(near.mac, Some(wanted.host_mac));
        assert_eq!((near.index, near.mac), (made.host.index, Some(made.host.mac)));
        assert!(near.name.starts_with("veth") && near.name.len() == 12);

        let far = container.link("eth0").unwrap();
        assert_eq!(far.index, made.container.index);
        assert_eq!(far.mac, Some(wanted.mac));
        assert_eq!((far.mtu, far.tx_queue_len), (1400, 1000));
        assert!(!far.up);
        assert!(far.is_peer_of(&near) && near.is_peer_of(&far));
        assert!(near.peer_netnsid.is_some());
        assert_eq!(host.links().unwrap().len(), 3);
        assert_eq!(container.links().unwrap().len(), 2);
    }

    fn taken_container_name_is_told_and_leaves_nothing() {
        let (host, container) = host_and_container();
        veth(&host, &container);
        let before = host.links().unwrap().len();
        let error = host.create_veth(&NewVeth::new("eth0").unwrap(), &container).unwrap_err();
        assert!(error.is_exists());
        assert!(error.to_string().starts_with("cannot create veth pair eth0 in the container: file exists"), "{error}");
        assert_eq!(host.links().unwrap().len(), before);
    }

    fn master_that_is_none_leaves_nothing() {
        let (host, container) = host_and_container();
        let lo = host.link("lo").unwrap().index;
        for master in [4711, lo] {
            let wanted = NewVeth { master: Some(master), ..NewVeth::new("eth0").unwrap() };
            host.create_veth(&wanted, &container).unwrap_err();
            assert_eq!(host.links().unwrap().len(), 1);
            assert_eq!(container.links().unwrap().len(), 1);
        }
    }

    fn taken_host_name_is_told() {
        let (host, container) = host_and_container();
        bridge(&host, "taken");
        let wanted = NewVeth { host_name: Some("taken".into()), ..NewVeth::new("eth0").unwrap() };
        let error = host.create_veth(&wanted, &container).unwrap_err();
        assert!(error.is_exists());
        assert!(error.to_string().starts_with("cannot create veth pair taken: file exists"), "{error}");
        assert!(container.find_link("eth0").unwrap().is_none());
    }

    fn both_ends_can_be_on_the_host() {
        let (host, _container) = host_and_container();
        let br = bridge(&host, "cni0");
        let wanted = NewVeth { master: Some(br.index), host_up: true, ..NewVeth::new("cni0.100").unwrap() };
        let made = host.create_veth(&wanted, &host).unwrap();
        let far = host.link("cni0.100").unwrap();
        assert_eq!(far.index, made.container.index);
        assert_eq!((far.master, far.peer_netnsid), (None, None));
        assert!(far.is_peer_of(&host.link_by_index(made.host.index).unwrap()));
    }

    fn deleting_one_end_deletes_both() {
        let (host, container) = host_and_container();
        let made = veth(&host, &container);
        container.delete_link(&made.container).unwrap();
        assert!(host.find_link(&made.host.name).unwrap().is_none());
        assert!(host.delete_link(&made.host).unwrap_err().is_not_found());
    }

    fn port_settings_and_up_in_one_message() {
        let (host, container) = host_and_container();
        let br = bridge(&host, "cni0");
        let wanted = NewVeth { master: Some(br.index), ..NewVeth::new("eth0").unwrap() };
        let made = host.create_veth(&wanted, &container).unwrap();
        host.change_link(&made.host, &LinkChange::new().up(true).hairpin(true).isolated(true)).unwrap();
        let port = host.link(&made.host.name).unwrap();
        assert!(port.up);
        let settings = port.port.unwrap();
        assert!(settings.hairpin && settings.isolated);
        host.change_link(&made.host, &LinkChange::new().hairpin(false)).unwrap();
        let settings = host.link(&made.host.name).unwrap().port.unwrap();
        assert!(!settings.hairpin && settings.isolated);
    }

    /// A bridge whose address was given at birth keeps it while ports with lower addresses come and go.
    fn bridge_address_is_stable() {
        let (host, container) = host_and_container();
        let mac: MacAddr = "fe:00:00:00:00:01".parse().unwrap();
        let wanted = NewBridge { name: "l2".into(), mac, mtu: Some(1450), vlan_filtering: false, up: true };
        let br = host.create_bridge(&wanted).unwrap();
        assert!(br.is_bridge() && br.up);
        assert_eq!((br.mac, br.mtu), (Some(mac), 1450));
        let port = NewVeth {
            master: Some(br.index),
            host_mac: "02:00:00:00:00:01".parse().unwrap(),
            ..NewVeth::new("eth0").unwrap()
        };
        let made = host.create_veth(&port, &container).unwrap();
        assert_eq!(host.link("l2").unwrap().mac, Some(mac));
        host.delete_link(&made.host).unwrap();
        assert_eq!(host.link("l2").unwrap().mac, Some(mac));
    }

    fn bridge_name_taken_or_bad() {
        let (host, _container) = host_and_container();
        bridge(&host, "cni0");
        let mut wanted = NewBridge {
            name: "cni0".into(),
            mac: MacAddr::random().unwrap(),
            mtu: None,
            vlan_filtering: false,
            up: false,
        };
        let error = host.create_bridge(&wanted).unwrap_err();
        assert!(error.is_exists());
        assert!(error.to_string().starts_with("cannot create bridge cni0: file exists"), "{error}");
        wanted.name = "a-name-of-sixteen".into();
        let error = host.create_bridge(&wanted).unwrap_err();
        assert!(matches!(error, Error::BadName { .. }), "{error}");
    }
}
