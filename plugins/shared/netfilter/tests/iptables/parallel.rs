//! Many at once, and what one command costs.

use std::collections::BTreeMap;
use std::thread;

use super::sandbox::*;
use netfilter::{Intent, Owner, Protocol};

const COUNT: u16 = 16;

fn everything(n: u16) -> (Owner, Vec<Intent>) {
    let to = format!("10.88.0.{}/16", n + 2);
    let address = to.split_once('/').unwrap().0.to_owned();
    let wanted = vec![
        masquerade(&to),
        admit(&address),
        publish(8000 + n, Protocol::Tcp, &to, 80),
    ];
    (owner("n", &format!("c{n}"), "eth0"), wanted)
}

fn at_once(step: impl Fn(u16) + Sync) {
    thread::scope(|scope| {
        for n in 0..COUNT {
            let step = &step;
            scope.spawn(move || step(n));
        }
    });
}

sandboxed! {
    /// No rule is lost and none is doubled, on the first use of the tables and later.
    fn adding_loses_and_doubles_nothing() {
        at_once(|n| apply(&everything(n).0, &everything(n).1).unwrap());
        let mut counts = BTreeMap::new();
        for table in ["nat", "filter"] {
            rules("iptables", table).into_iter().for_each(|rule| *counts.entry(rule).or_insert(0) += 1);
        }
        let doubled: Vec<_> = counts.iter().filter(|(_, count)| **count != 1).collect();
        assert!(doubled.is_empty(), "{doubled:?}");
        at_once(|n| verify(&everything(n).0, &everything(n).1).unwrap());

        at_once(|n| remove(&everything(n).0, &[&format!("10.88.0.{}", n + 2)]));
        let left = rules("iptables", "filter").join("\n") + &save("iptables", "nat");
        assert!(!left.contains("10.88.0.") && !left.contains("CNI-DN-") && !left.contains("MASQUERADE comment"), "{left}");
        assert_eq!(left.matches(":CNI-").count(), 3, "{left}");
    }

    /// One child process per family to add, none to do anything else.
    fn a_command_costs_one_process_per_family() {
        count_children();
        let owner = owner("n", "c", "eth0");
        let (four, six) = ("10.88.0.2/16", "fd00::2/64");
        let all = [
            masquerade(four), masquerade(six), admit("10.88.0.2"), admit("fd00::2"),
            publish(80, Protocol::Tcp, four, 80), publish(80, Protocol::Udp, six, 80),
        ];
        apply(&owner, &all).unwrap();
        assert_eq!(children(), ["iptables-nft-restore", "ip6tables-nft-restore"]);
        for again in [true, false] {
            verify(&owner, &all).unwrap();
            if again {
                apply(&owner, &all).unwrap();
            }
            assert_eq!(children(), [""; 0]);
        }
        remove(&owner, &["10.88.0.2", "fd00::2"]);
        remove(&owner, &[]);
        netfilter::Netfilter::open().unwrap().collect("n", &[], netfilter::Kinds::ALL).unwrap();
        assert_eq!(children(), [""; 0]);
        apply(&owner, &all[..1]).unwrap();
        assert_eq!(children(), ["iptables-nft-restore"]);
    }
}
