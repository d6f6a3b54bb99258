//! Legacy tables, missing tools, foreign tables, failures half-way.

use super::reference;
use super::sandbox::*;
use netfilter::{Backend, Error, Intent, Kinds, Netfilter, Protocol::*};

fn all() -> Vec<Intent> {
    let (four, six) = ("10.88.0.2/16", "fd00::2/64");
    vec![
        masquerade(four),
        masquerade(six),
        admit("10.88.0.2"),
        admit("fd00::2"),
        publish(80, Tcp, four, 80),
        publish(80, Tcp, six, 80),
    ]
}

fn legacy() -> String {
    let tables = [
        ("iptables-legacy", "nat"),
        ("iptables-legacy", "filter"),
        ("ip6tables-legacy", "nat"),
        ("ip6tables-legacy", "filter"),
    ];
    tables.map(|(tool, table)| save(tool, table)).join("\n")
}

sandboxed! {
    /// Where legacy tables are in use, legacy tables are written, whatever plain `iptables` is.
    fn legacy_tables_are_used_where_they_live() {
        sh("iptables-legacy -A FORWARD -s 192.0.2.9 -j DROP; ip6tables-legacy -N MINE");
        count_children();
        let owner = owner("n", "c", "eth0");
        apply(&owner, &all()).unwrap();
        assert_eq!(sh("nft list ruleset"), "");
        verify(&owner, &all()).unwrap();
        let before = legacy();
        for part in ["CNI-DN-", "CNI-FORWARD -s 10.88.0.2/32", "CNI-FORWARD -s fd00::2/128", "-s 192.0.2.9/32"] {
            assert!(before.contains(part), "{part} in {before}");
        }
        children();
        apply(&owner, &all()).unwrap();
        assert_eq!(legacy(), before);
        assert_eq!(children().iter().filter(|tool| tool.ends_with("restore")).count(), 0);
        remove(&owner, &["10.88.0.2", "fd00::2"]);
        let after = legacy();
        assert!(!after.contains("CNI-DN-") && !after.contains("10.88.0.2") && !after.contains("fd00::2"), "{after}");
        assert!(after.contains("192.0.2.9") && after.contains(":MINE"));
    }

    /// The reference set on legacy tables deletes ours, and the reverse.
    fn legacy_rules_are_deleted_across_sets() {
        sh("ip netns add c; for t in iptables ip6tables; do ln -s /usr/sbin/xtables-legacy-multi /run/bin/$t; $t -N MINE; done");
        let addresses = ["10.88.0.2/16", "fd00::2/64"];
        let firewall = reference::chained("firewall", "n", &addresses, "");
        let keys = r#","runtimeConfig":{"portMappings":[{"hostPort":80,"containerPort":80,"protocol":"tcp"}]}"#;
        let portmap = reference::chained("portmap", "n", &addresses, keys);
        let owner = owner("n", "c", "eth0");
        let wanted: Vec<_> = all().into_iter().skip(2).collect();
        apply(&owner, &wanted).unwrap();
        reference::plugin("portmap", "DEL", "c", &portmap);
        reference::plugin("firewall", "DEL", "c", &firewall);
        let shared = legacy();
        assert!(!shared.contains("CNI-DN-") && !shared.contains("10.88.0.2"), "{shared}");
        reference::plugin("firewall", "ADD", "c", &firewall);
        reference::plugin("portmap", "ADD", "c", &portmap);
        verify(&owner, &wanted).unwrap();
        remove(&owner, &["10.88.0.2", "fd00::2"]);
        assert_eq!(legacy(), shared);
        assert_eq!(sh("nft list ruleset"), "");
    }

    /// A failure in the second family takes the first back.
    fn both_families_or_none() {
        let owner = owner("n", "c", "eth0");
        apply(&self::owner("n", "neighbour", "eth0"), &[admit("10.88.0.9"), masquerade("10.88.0.9/16")]).unwrap();
        let before = sh("nft list ruleset");
        stand_in("ip6tables-nft-restore", "echo no such luck >&2; exit 1");
        let error = apply(&owner, &all()).unwrap_err();
        assert!(matches!(&error, Error::Child { stderr, .. } if stderr == "no such luck"), "{error}");
        assert!(error.to_string().contains("ip6tables-nft-restore"), "{error}");
        // Empty built-in chains may stay; the reference set has always left them.
        let strip = |ruleset: &str| ruleset.lines().filter(|line| line.contains("10.88") || line.contains("CNI-")).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(strip(&sh("nft list ruleset")), strip(&before));
        assert!(matches!(verify(&owner, &all()), Err(Error::Missing { .. })));
    }

    /// Without any tool everything can still be removed, verified and collected; adding says what to install.
    fn without_tools_nothing_but_adding_fails() {
        let (first, second) = (owner("n", "c", "eth0"), owner("n", "d", "eth0"));
        apply(&first, &all()).unwrap();
        apply(&second, &[masquerade("10.88.0.3/16")]).unwrap();
        sh("mkdir /run/empty && mount --bind /run/empty /usr/sbin");
        verify(&first, &all()).unwrap();
        remove(&first, &["10.88.0.2", "fd00::2"]);
        let mut netfilter = Netfilter::open().unwrap();
        netfilter.collect("n", &[], Kinds::ALL).unwrap();
        assert!(matches!(verify(&second, &[masquerade("10.88.0.3/16")]), Err(Error::Missing { .. })));
        let error = apply(&first, &all()).unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }) && error.to_string().contains("install"), "{error}");
        let error = netfilter.status(Backend::Iptables, Kinds::ADMIT).unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        sh("umount /usr/sbin");
        let left = sh("iptables-save; ip6tables-save");
        assert!(!left.contains("10.88.0") && !left.contains("CNI-DN-") && !left.contains("fd00"), "{left}");
        netfilter.status(Backend::Iptables, Kinds::ADMIT).unwrap();
    }

    /// A table that was made by nft and that iptables cannot print is no hindrance to read, extend and restore it.
    fn a_foreign_table_is_left_as_it_was() {
        sh("nft 'add table ip nat; add set ip nat s { type ipv4_addr; }
            add chain ip nat POSTROUTING { type nat hook postrouting priority 100; }
            add rule ip nat POSTROUTING ip saddr @s masquerade'");
        assert!(!try_sh("iptables -t nat -S").status.success());
        let before = sh("nft list ruleset");
        let (owner, wanted) = (owner("n", "c", "eth0"), [masquerade("10.88.0.2/16")]);
        remove(&owner, &["10.88.0.2"]);
        Netfilter::open().unwrap().collect("n", &[], Kinds::ALL).unwrap();
        assert_eq!(sh("nft list ruleset"), before);
        apply(&owner, &wanted).unwrap();
        verify(&owner, &wanted).unwrap();
        remove(&owner, &[]);
        assert!(sh("nft list chain ip nat POSTROUTING").contains("@s masquerade"));
        assert!(!sh("nft list ruleset").contains("CNI-"));
    }

    /// A tool that hangs, or a lock that is held, ends in an error that says so.
    fn waiting_has_an_end() {
        apply(&owner("n", "c", "eth0"), &[masquerade("10.88.0.2/16")]).unwrap();
        let lock = std::fs::File::open("/run/ferrule/iptables.lock").unwrap();
        let held = nix::fcntl::Flock::lock(lock, nix::fcntl::FlockArg::LockExclusive).unwrap();
        let options = netfilter::ApplyOptions { timeout: std::time::Duration::from_millis(50), ..Default::default() };
        let mut netfilter = Netfilter::open().unwrap();
        let mut add = || netfilter.apply(Backend::Iptables, &owner("n", "d", "eth0"), &[masquerade("10.88.0.3/16")], &options);
        assert!(matches!(add(), Err(Error::Busy { .. })));
        remove(&owner("n", "c", "eth0"), &[]);
        drop(held);
        add().unwrap();
    }
}
