//! Masquerading.

use super::reference;
use super::sandbox::*;
use netfilter::{Kinds, Netfilter};

const CHAIN: &str = "CNI-c2d892b58e87e28a12fe6479";

sandboxed! {
    /// What we write is, byte for byte, what the reference set writes.
    fn looks_like_the_reference_sets() {
        let (first, second) = ("10.1.2.2/24", "fd00:1::2/64");
        sh("ip netns add c1");
        let config = reference::bridge("net1", true, &[first, second]);
        reference::plugin("bridge", "ADD", "c1", &config);
        let theirs = [save("iptables", "nat"), save("ip6tables", "nat")];
        reference::plugin("bridge", "DEL", "c1", &config);
        assert!(rules("iptables", "nat").is_empty());

        let owner = owner("net1", "c1", "eth0");
        let wanted = [masquerade(first), masquerade(second)];
        apply(&owner, &wanted).unwrap();
        let ours = [save("iptables", "nat"), save("ip6tables", "nat")];
        assert_eq!(ours, theirs);
        verify(&owner, &wanted).unwrap();
        remove(&owner, &[]);
        assert_eq!([save("iptables", "nat"), save("ip6tables", "nat")].join("").matches("CNI-").count(), 0);
    }

    /// The reference set deletes what we made.
    fn is_deleted_by_the_reference_set() {
        sh("ip netns add c1");
        reference::plugin("bridge", "ADD", "c1", &reference::bridge("net1", false, &["10.1.2.2/24", "fd00:1::2/64"]));
        apply(&owner("net1", "c1", "eth0"), &[masquerade("10.1.2.2/24"), masquerade("fd00:1::2/64")]).unwrap();
        assert_eq!(rules("iptables", "nat").len(), 3);
        reference::plugin("bridge", "DEL", "c1", &reference::bridge("net1", true, &["10.1.2.2/24", "fd00:1::2/64"]));
        assert!(!save("iptables", "nat").contains("CNI-"));
        assert!(!save("ip6tables", "nat").contains("CNI-"));
    }

    /// We delete what the reference set made, knowing nothing but whose it is.
    fn of_the_reference_set_is_deleted() {
        sh("ip netns add c1");
        let config = reference::bridge("net1", true, &["10.1.2.2/24", "10.9.2.2/24", "fd00:1::2/64"]);
        reference::plugin("bridge", "ADD", "c1", &config);
        assert!(save("iptables", "nat").contains(CHAIN));
        remove(&owner("net1", "c1", "eth0"), &[]);
        assert!(!save("iptables", "nat").contains("CNI-"));
        assert!(!save("ip6tables", "nat").contains("CNI-"));
    }

    /// Traffic inside the second subnet is not masqueraded either, and one removal takes all.
    fn of_two_addresses_leaves_both_subnets_alone() {
        let owner = owner("net1", "c1", "eth0");
        apply(&owner, &[masquerade("10.1.2.2/24"), masquerade("10.9.2.2/24")]).unwrap();
        let order: Vec<_> = rules("iptables", "nat").iter().map(|rule| rule.split(' ').next_back().unwrap().to_owned()).collect();
        assert_eq!(order, [CHAIN, CHAIN, "ACCEPT", "ACCEPT", "MASQUERADE"]);
        remove(&owner, &["10.1.2.2"]);
        assert!(!save("iptables", "nat").contains("CNI-"));
    }

    /// Two interfaces of one container on one network share a chain; each leaves alone, in any order, even when
    /// its addresses are not known any more.
    fn of_two_interfaces_ends_one_by_one() {
        let (first, second) = (owner("net1", "c1", "eth0"), owner("net1", "c1", "eth1"));
        let (a, b) = ([masquerade("10.1.2.2/24")], [masquerade("10.1.2.3/24")]);
        for leaving_first in [true, false] {
            apply(&first, &a).unwrap();
            apply(&second, &b).unwrap();
            verify(&first, &a).unwrap();
            verify(&second, &b).unwrap();
            let (goes, stays) = if leaving_first { ((&first, &a), (&second, &b)) } else { ((&second, &b), (&first, &a)) };
            remove(goes.0, &[]);
            verify(stays.0, stays.1).unwrap();
            assert!(verify(goes.0, goes.1).is_err());
            remove(stays.0, &[]);
            assert!(!save("iptables", "nat").contains("CNI-"));
        }
    }

    /// Applying again changes nothing, applying with an address less is no error.
    fn again_is_the_same() {
        let owner = owner("net1", "c1", "eth0");
        apply(&owner, &[masquerade("10.1.2.2/24")]).unwrap();
        let before = sh("nft -a list ruleset");
        apply(&owner, &[masquerade("10.1.2.2/24")]).unwrap();
        assert_eq!(sh("nft -a list ruleset"), before, "nothing was written");
    }

    /// Verification notices each lost piece and changes nothing.
    fn is_verified_rule_by_rule() {
        let owner = owner("net1", "c1", "eth0");
        let wanted = [masquerade("10.1.2.2/24")];
        apply(&owner, &wanted).unwrap();
        for rule in rules("iptables", "nat") {
            let spec = rule.strip_prefix("-A ").unwrap();
            sh(&format!("iptables -t nat -D {spec}"));
            let error = verify(&owner, &wanted).unwrap_err().to_string();
            assert!(error.contains("missing"), "{error}");
            remove(&owner, &[]);
            apply(&owner, &wanted).unwrap();
            verify(&owner, &wanted).unwrap();
        }
    }

    /// Collection takes what belongs to the network and to no valid attachment, the reference set's included.
    fn is_collected() {
        sh("ip netns add c9");
        reference::plugin("bridge", "ADD", "c9", &reference::bridge("net1", true, &["10.1.2.9/24"]));
        apply(&owner("net1", "c1", "eth0"), &[masquerade("10.1.2.2/24")]).unwrap();
        apply(&owner("net1", "c2", "eth0"), &[masquerade("10.1.2.3/24")]).unwrap();
        apply(&owner("net2", "c2", "eth0"), &[masquerade("10.2.2.3/24")]).unwrap();
        Netfilter::open().unwrap().collect("net1", &[owner("net1", "c2", "eth0")], Kinds::ALL).unwrap();
        verify(&owner("net1", "c2", "eth0"), &[masquerade("10.1.2.3/24")]).unwrap();
        verify(&owner("net2", "c2", "eth0"), &[masquerade("10.2.2.3/24")]).unwrap();
        let left = save("iptables", "nat");
        assert!(!left.contains("10.1.2.2/32") && !left.contains("10.1.2.9/32"), "{left}");
        assert_eq!(left.matches(":CNI-").count(), 2);
    }
}
