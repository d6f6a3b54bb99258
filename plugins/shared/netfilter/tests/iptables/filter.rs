//! Admitting containers to the FORWARD chain.

use super::reference;
use super::sandbox::*;
use netfilter::{Backend, Error, Hints, Intent, Kinds, Netfilter};

const BOTH: [&str; 2] = ["10.88.0.2/16", "fd00::2/64"];

fn wanted() -> [Intent; 2] {
    [admit("10.88.0.2"), admit("fd00::2")]
}

fn without_known(tool: &str) -> String {
    save(tool, "filter")
        .lines()
        .filter(|line| !line.contains("known connections"))
        .collect::<Vec<_>>()
        .join("\n")
}

sandboxed! {
    /// But for the rule for connections that are known, we write what the reference set writes.
    fn rules_look_like_the_reference_sets() {
        sh("ip netns add c1");
        let config = reference::chained("firewall", "n", &BOTH, "");
        reference::plugin("firewall", "ADD", "c1", &config);
        let theirs = [save("iptables", "filter"), save("ip6tables", "filter")];
        sh("for t in iptables ip6tables; do $t -F; $t -X; done");
        let owner = owner("n", "c1", "eth0");
        apply(&owner, &wanted()).unwrap();
        assert_eq!([without_known("iptables"), without_known("ip6tables")], theirs);
        verify(&owner, &wanted()).unwrap();
        reference::plugin("firewall", "CHECK", "c1", &config);
    }

    /// Once the shared chains are there the rules of a container go over netlink, and are the same to the letter.
    fn later_rules_are_those_of_the_tool() {
        sh("ip netns add c2");
        let (first, second) = (owner("n", "c1", "eth0"), owner("n", "c2", "eth0"));
        apply(&first, &wanted()).unwrap();
        let with_first = [save("iptables", "filter"), save("ip6tables", "filter")];
        apply(&second, &[admit("10.88.0.3"), admit("fd00::3")]).unwrap();
        let by_netlink = ["ip", "ip6"].map(|family| sh(&format!("nft -n list chain {family} filter CNI-FORWARD")));
        let saved = [save("iptables", "filter"), save("ip6tables", "filter")];
        assert!(saved[0].contains("10.88.0.3") && saved[1].contains("fd00::3"), "{saved:?}");
        verify(&second, &[admit("10.88.0.3"), admit("fd00::3")]).unwrap();

        let config = reference::chained("firewall", "n", &["10.88.0.3/16", "fd00::3/64"], "");
        reference::plugin("firewall", "CHECK", "c2", &config);
        reference::plugin("firewall", "DEL", "c2", &config);
        assert_eq!([save("iptables", "filter"), save("ip6tables", "filter")], with_first);
        reference::plugin("firewall", "ADD", "c2", &config);
        let by_tool = ["ip", "ip6"].map(|family| sh(&format!("nft -n list chain {family} filter CNI-FORWARD")));
        assert_eq!(by_netlink, by_tool);
        assert_eq!([save("iptables", "filter"), save("ip6tables", "filter")], saved);
    }

    /// Ours is deleted by the reference set and the reverse.
    fn rules_are_deleted_across_sets() {
        sh("ip netns add c1");
        let config = reference::chained("firewall", "n", &BOTH, "");
        let owner = owner("n", "c1", "eth0");
        apply(&owner, &wanted()).unwrap();
        reference::plugin("firewall", "DEL", "c1", &config);
        let empty = [save("iptables", "filter"), save("ip6tables", "filter")];
        assert!(!empty.join("").contains("10.88.0.2") && !empty.join("").contains("fd00::2"));
        reference::plugin("firewall", "ADD", "c1", &config);
        verify(&owner, &wanted()).unwrap();
        remove(&owner, &["10.88.0.2", "fd00::2"]);
        assert_eq!([save("iptables", "filter"), save("ip6tables", "filter")], empty);
    }

    /// A rule that a race of the reference set doubled goes in both copies.
    fn doubled_rules_go_together() {
        let owner = owner("n", "c1", "eth0");
        apply(&owner, &wanted()).unwrap();
        sh("iptables -A CNI-FORWARD -s 10.88.0.2 -j ACCEPT");
        remove(&owner, &["10.88.0.2"]);
        assert!(!save("iptables", "filter").contains("10.88.0.2"));
    }

    /// The rules say whose they are, so they go without anybody knowing the addresses.
    fn rules_are_removed_by_their_owner_alone() {
        let (gone, stays) = (owner("n", "c1", "eth0"), owner("n", "c2", "eth0"));
        apply(&stays, &[admit("10.88.0.3")]).unwrap();
        let before = save("iptables", "filter");
        apply(&gone, &wanted()).unwrap();
        remove(&gone, &[]);
        assert_eq!(save("iptables", "filter"), before);
        assert!(!save("ip6tables", "filter").contains("fd00::2"));
        verify(&stays, &[admit("10.88.0.3")]).unwrap();
    }

    /// Who has got an address keeps its rules when the one before is deleted late.
    fn a_late_deletion_spares_the_next_holder_of_the_address() {
        let (old, new) = (owner("n", "c1", "eth0"), owner("n", "c2", "eth0"));
        apply(&old, &wanted()).unwrap();
        apply(&new, &wanted()).unwrap();
        remove(&old, &["10.88.0.2", "fd00::2"]);
        verify(&new, &wanted()).unwrap();
        remove(&new, &[]);
        assert!(!save("iptables", "filter").contains("10.88.0.2"));
    }

    /// What the owner's mark is made of does not bother iptables.
    fn marked_rules_are_deleted_by_iptables() {
        apply(&owner("n", "c1", "eth0"), &wanted()).unwrap();
        sh("iptables -C CNI-FORWARD -s 10.88.0.2 -j ACCEPT");
        sh("iptables -D CNI-FORWARD -s 10.88.0.2 -j ACCEPT");
        sh("iptables -D CNI-FORWARD -d 10.88.0.2 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT");
        assert!(!save("iptables", "filter").contains("10.88.0.2"));
    }

    /// Attachments that are not valid any more are collected, those of other networks are not looked at.
    fn rules_are_collected() {
        let (valid, stale, other) = (owner("n", "c1", "eth0"), owner("n", "c2", "eth0"), owner("m", "c3", "eth0"));
        apply(&valid, &[admit("10.88.0.2")]).unwrap();
        apply(&stale, &[admit("10.88.0.3"), admit("fd00::3")]).unwrap();
        apply(&other, &[admit("10.99.0.4")]).unwrap();
        netfilter::Netfilter::open()
            .unwrap()
            .collect("n", std::slice::from_ref(&valid), netfilter::Kinds::ADMIT)
            .unwrap();
        let now = save("iptables", "filter") + &save("ip6tables", "filter");
        assert!(!now.contains("10.88.0.3") && !now.contains("fd00::3"), "{now}");
        verify(&valid, &[admit("10.88.0.2")]).unwrap();
        verify(&other, &[admit("10.99.0.4")]).unwrap();
    }

    /// An administrator's chain, made before and with rules, is jumped to first and never touched.
    fn the_admin_chain_comes_first_and_stays() {
        sh("iptables -N NOMAD-ADMIN; iptables -A NOMAD-ADMIN -s 192.0.2.1 -j DROP");
        let intent = Intent::Admit { address: "10.88.0.2".parse().unwrap(), admin_chain: "NOMAD-ADMIN".into(), zone: None };
        let owner = owner("nomad", "alloc", "eth0");
        apply(&owner, std::slice::from_ref(&intent)).unwrap();
        apply(&self::owner("nomad", "other", "eth0"), &[admit("10.88.0.3")]).unwrap();
        remove(&owner, &["10.88.0.2"]);
        let now = rules("iptables", "filter");
        assert!(now.contains(&"-A NOMAD-ADMIN -s 192.0.2.1/32 -j DROP".to_owned()));
        let forward: Vec<_> = now.iter().filter(|rule| rule.starts_with("-A CNI-FORWARD")).collect();
        assert!(forward[0].ends_with("CNI-ADMIN") && forward[1].ends_with("NOMAD-ADMIN"), "{forward:?}");
        assert!(forward[2].contains("known connections"), "{forward:?}");
    }

    /// Where the reference set was first, known connections are put behind its administrator's chain, before its containers.
    fn known_connections_come_behind_what_the_administrator_says() {
        sh("ip netns add c1");
        let config = reference::chained("firewall", "n", &BOTH, "");
        reference::plugin("firewall", "ADD", "c1", &config);
        let intent = Intent::Admit { address: "10.88.0.3".parse().unwrap(), admin_chain: "NOMAD-ADMIN".into(), zone: None };
        apply(&owner("n", "c2", "eth0"), &[intent]).unwrap();
        let now = rules("iptables", "filter");
        let forward: Vec<_> = now.iter().filter(|rule| rule.starts_with("-A CNI-FORWARD")).collect();
        let is = ["-j NOMAD-ADMIN", "-j CNI-ADMIN", "known connections", "10.88.0.2", "10.88.0.2", "10.88.0.3", "10.88.0.3"];
        assert_eq!(forward.len(), is.len(), "{forward:?}");
        assert!(is.iter().zip(&forward).all(|(is, rule)| rule.contains(is)), "{forward:?}");
    }

    /// Verification notices each lost piece, and makes nothing by itself.
    fn rules_are_verified_one_by_one() {
        let owner = owner("n", "c1", "eth0");
        assert!(matches!(verify(&owner, &wanted()), Err(Error::Missing { .. })));
        assert_eq!(sh("nft list ruleset"), "");
        apply(&owner, &wanted()).unwrap();
        for rule in rules("iptables", "filter").iter().filter(|rule| !rule.contains("known connections")) {
            sh(&format!("iptables -D {}", rule.strip_prefix("-A ").unwrap()));
            assert!(matches!(verify(&owner, &wanted()), Err(Error::Missing { .. })), "{rule}");
            apply(&owner, &wanted()).unwrap();
            verify(&owner, &wanted()).unwrap();
        }
    }

    /// Without a word of the addresses they are found by what else the container has, whichever backend made it.
    fn addresses_are_found_when_nobody_knows_them() {
        for backend in [Backend::Iptables, Backend::Nftables] {
            let owner = owner("n", "c1", "eth0");
            let both = [masquerade("10.88.0.2/16"), masquerade("fd00::2/64")];
            Netfilter::open().unwrap().apply(backend, &owner, &both, &Default::default()).unwrap();
            apply(&owner, &wanted()).unwrap();
            Netfilter::open().unwrap().remove(&owner, Kinds::ADMIT, &Default::default()).unwrap();
            let left = save("iptables", "filter") + &save("ip6tables", "filter");
            assert!(!left.contains("10.88.0.2") && !left.contains("fd00::2"), "{left}");
            remove(&owner, &[]);
        }
    }

    /// A removal that comes late does not cut off who has the address by now.
    fn a_late_removal_spares_the_new_holder() {
        for backend in [Backend::Iptables, Backend::Nftables] {
            let (gone, new) = (owner("n", "c1", "eth0"), owner("n", "c2", "eth0"));
            let both = [masquerade("10.88.0.2/16"), masquerade("fd00::2/64")];
            Netfilter::open().unwrap().apply(backend, &new, &both, &Default::default()).unwrap();
            apply(&new, &wanted()).unwrap();
            let hints = Hints { addresses: vec!["10.88.0.2".parse().unwrap(), "fd00::2".parse().unwrap()], ..Hints::default() };
            let mut netfilter = Netfilter::open().unwrap();
            netfilter.remove(&gone, Kinds::ADMIT, &hints).unwrap();
            let warnings = netfilter.take_warnings();
            assert!(warnings.len() == 2 && warnings[0].contains("c2"), "{warnings:?}");
            verify(&new, &wanted()).unwrap();
            netfilter.remove(&new, Kinds::ADMIT, &hints).unwrap();
            assert!(verify(&new, &wanted()).is_err());
            remove(&new, &[]);
        }
    }
}
