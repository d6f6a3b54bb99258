//! Policed bridges.

use super::reference;
use super::sandbox::*;
use netfilter::{Error, Intent, Kinds, Netfilter, Policy};

fn confine(bridge: &str, policy: Policy) -> Intent {
    Intent::Confine {
        bridge: bridge.into(),
        port: None,
        policy,
    }
}

fn forward() -> Vec<String> {
    let rules = rules("iptables", "filter");
    rules
        .iter()
        .filter(|rule| rule.starts_with("-A FORWARD"))
        .map(|rule| rule.split(' ').next_back().unwrap().to_owned())
        .collect()
}

sandboxed! {
    /// The rules of two bridges, one isolated, in the order that makes them work.
    fn bridges_have_the_reference_sets_rules() {
        let (first, second) = (owner("n0", "c0", "eth0"), owner("n1", "c1", "eth0"));
        let a = [admit("10.88.0.2"), confine("br0", Policy::SameBridge)];
        let b = [admit("10.89.0.2"), confine("br1", Policy::Isolated)];
        apply(&first, &a).unwrap();
        apply(&second, &b).unwrap();
        let plain: Vec<_> = rules("iptables", "filter")
            .into_iter()
            .filter(|rule| rule.contains("ISOLATION"))
            .map(|rule| {
                let (before, after) = rule.split_once(" -m comment").unwrap();
                let target = after.rsplit_once(" -j ").unwrap().1;
                let policy = after.split_once("ingressPolicy: ").unwrap().1.split_once(')').unwrap().0;
                format!("{before} -j {target} # {policy}")
            })
            .collect();
        assert_eq!(plain, [
            "-A FORWARD -j CNI-ISOLATION-STAGE-1 # same-bridge|isolated",
            "-A CNI-ISOLATION-STAGE-1 -i br1 -o br1 -j DROP # isolated",
            "-A CNI-ISOLATION-STAGE-1 -i br1 ! -o br1 -j CNI-ISOLATION-STAGE-2 # isolated",
            "-A CNI-ISOLATION-STAGE-1 -i br0 ! -o br0 -j CNI-ISOLATION-STAGE-2 # same-bridge",
            "-A CNI-ISOLATION-STAGE-1 -j RETURN # same-bridge|isolated",
            "-A CNI-ISOLATION-STAGE-2 -o br1 -j DROP # same-bridge|isolated",
            "-A CNI-ISOLATION-STAGE-2 -o br0 -j DROP # same-bridge|isolated",
            "-A CNI-ISOLATION-STAGE-2 -j RETURN # same-bridge|isolated",
        ]);
        assert_eq!(forward(), ["CNI-ISOLATION-STAGE-1", "CNI-FORWARD"]);
        verify(&first, &a).unwrap();
        verify(&second, &b).unwrap();
        let before = sh("nft -a list ruleset");
        apply(&second, &b).unwrap();
        assert_eq!(sh("nft -a list ruleset"), before);
    }

    /// Rules that an older release wrote with another comment are not doubled.
    fn older_comments_count() {
        sh("ip netns add c1");
        let config = reference::chained("firewall", "n", &["10.88.0.2/16"], r#","ingressPolicy":"same-bridge""#);
        reference::plugin("firewall", "ADD", "c1", &config);
        let count = || rules("iptables", "filter").iter().filter(|rule| rule.contains("ISOLATION")).count();
        let before = count();
        let wanted = [admit("10.88.0.3"), confine("br0", Policy::SameBridge)];
        apply(&owner("n", "c2", "eth0"), &wanted).unwrap();
        assert_eq!(count(), before);
        verify(&owner("n", "c2", "eth0"), &wanted).unwrap();
    }

    /// A jump that came to stand behind the accepting one is moved before it.
    fn isolation_comes_before_acceptance() {
        let owner = owner("n", "c1", "eth0");
        let wanted = [admit("10.88.0.3"), confine("br0", Policy::SameBridge)];
        apply(&owner, &wanted).unwrap();
        sh("iptables -D FORWARD 1; iptables -A FORWARD -j CNI-ISOLATION-STAGE-1");
        assert_eq!(forward(), ["CNI-FORWARD", "CNI-ISOLATION-STAGE-1"]);
        apply(&owner, &wanted).unwrap();
        assert_eq!(forward(), ["CNI-ISOLATION-STAGE-1", "CNI-FORWARD"]);
        sh("iptables -D FORWARD 2");
        apply(&owner, &wanted).unwrap();
        assert_eq!(forward(), ["CNI-ISOLATION-STAGE-1", "CNI-FORWARD"]);
    }

    /// The rules of a bridge that is no more are collected.
    fn lost_bridges_are_collected() {
        sh("ip link add br1 type bridge");
        for bridge in ["br0", "br1"] {
            apply(&owner("n", "c1", "eth0"), &[confine(bridge, Policy::Isolated)]).unwrap();
        }
        Netfilter::open().unwrap().collect("n", &[], Kinds::CONFINE).unwrap();
        let now = save("iptables", "filter");
        assert!(!now.contains("br0") && now.contains("br1"), "{now}");
        let six = save("ip6tables", "filter");
        assert!(!six.contains("br0") && six.contains("br1"), "{six}");
        assert!(matches!(verify(&owner("n", "c1", "eth0"), &[confine("br0", Policy::Isolated)]), Err(Error::Missing { .. })));
    }
}
