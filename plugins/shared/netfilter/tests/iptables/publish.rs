//! Published ports: rules.

use super::reference;
use super::sandbox::*;
use netfilter::{Error, Intent, Kinds, MarkStyle, Netfilter, Protocol::*, Snat};

const MAPPINGS: &str = r#","runtimeConfig":{"portMappings":[
    {"hostPort":8080,"containerPort":80,"protocol":"tcp"},
    {"hostPort":8081,"containerPort":81,"protocol":"udp"},
    {"hostPort":8082,"containerPort":82,"protocol":"tcp","hostIP":"127.0.0.2"},
    {"hostPort":8083,"containerPort":83,"protocol":"tcp","hostIP":"::1"}]}"#;

fn mapped(to: &str) -> Vec<Intent> {
    let with = |host: &str, port, cport| {
        publish_with(
            Some(host),
            port,
            Tcp,
            to,
            cport,
            Snat::Hairpin,
            MarkStyle::default(),
        )
    };
    vec![
        publish(8080, Tcp, to, 80),
        publish(8081, Udp, to, 81),
        with("127.0.0.2", 8082, 82),
        with("::1", 8083, 83),
    ]
}

/// The layout without the rules that only we write: those that mark a connection as published.
fn without_marks(tool: &str) -> String {
    save(tool, "nat")
        .lines()
        .filter(|line| !line.contains("CONNMARK"))
        .collect::<Vec<_>>()
        .join("\n")
}

sandboxed! {
    /// But for the mark of published connections, we write what the reference set writes.
    fn look_like_the_reference_sets() {
        sh("ip netns add ctrA");
        let config = reference::chained("portmap", "pmnet", &["10.88.0.2/16", "fd00::2/64"], MAPPINGS);
        reference::plugin("portmap", "ADD", "ctrA", &config);
        let theirs = [save("iptables", "nat"), save("ip6tables", "nat")];
        sh("iptables -t nat -F; iptables -t nat -X; ip6tables -t nat -F; ip6tables -t nat -X");

        let owner = owner("pmnet", "ctrA", "eth0");
        let wanted = [mapped("10.88.0.2/16"), mapped("fd00::2/64")].concat();
        apply(&owner, &wanted).unwrap();
        assert_eq!([without_marks("iptables"), without_marks("ip6tables")], theirs);
        let marks = save("iptables", "nat").lines().filter(|line| line.contains("CONNMARK")).count();
        assert_eq!(marks, 3);
        verify(&owner, &wanted).unwrap();
        let before = sh("nft -a list ruleset");
        apply(&owner, &wanted).unwrap();
        assert_eq!(sh("nft -a list ruleset"), before, "applying again writes nothing");
    }

    /// Ours is deleted by the reference set and the reverse; only what all containers share stays.
    fn are_deleted_across_sets() {
        sh("ip netns add ctrA");
        let config = reference::chained("portmap", "pmnet", &["10.88.0.2/16", "fd00::2/64"], MAPPINGS);
        let owner = owner("pmnet", "ctrA", "eth0");
        let wanted = [mapped("10.88.0.2/16"), mapped("fd00::2/64")].concat();
        apply(&owner, &wanted).unwrap();
        reference::plugin("portmap", "DEL", "ctrA", &config);
        let shared = [save("iptables", "nat"), save("ip6tables", "nat")];
        assert!(!shared.join("").contains("CNI-DN-"), "{}", shared.join("\n"));

        reference::plugin("portmap", "ADD", "ctrA", &config);
        verify(&owner, &wanted).unwrap();
        remove(&owner, &[]);
        assert_eq!([save("iptables", "nat"), save("ip6tables", "nat")], shared);
    }

    /// A container that comes back with another address is not left behind the old translation.
    fn follow_a_new_address() {
        let owner = owner("pmnet", "ctrA", "eth0");
        apply(&owner, &[publish(8080, Tcp, "10.88.0.2/16", 80), publish(9090, Udp, "10.88.0.2/16", 90)]).unwrap();
        let wanted = [publish(8080, Tcp, "10.88.0.3/16", 80)];
        apply(&owner, &wanted).unwrap();
        verify(&owner, &wanted).unwrap();
        let now = save("iptables", "nat");
        assert!(!now.contains("10.88.0.2") && !now.contains("9090"), "{now}");
    }

    /// So is one whose old rules the reference set made.
    fn follow_a_new_address_from_the_reference_set() {
        sh("ip netns add ctrA");
        reference::plugin("portmap", "ADD", "ctrA", &reference::chained("portmap", "pmnet", &["10.88.0.2/16"], MAPPINGS));
        apply(&owner("pmnet", "ctrA", "eth0"), &mapped("10.88.0.3/16")).unwrap();
        assert!(!save("iptables", "nat").contains("10.88.0.2"));
        verify(&owner("pmnet", "ctrA", "eth0"), &mapped("10.88.0.3/16")).unwrap();
    }

    /// A port that lives is refused with the name of its owner, and nothing is changed.
    fn of_a_live_container_are_refused() {
        apply(&owner("pmnet", "ctrA", "eth0"), &[publish(8080, Tcp, "10.88.0.2/16", 80)]).unwrap();
        let before = sh("nft -a list ruleset");
        let error = apply(&owner("pmnet", "ctrB", "eth0"), &[publish(8080, Tcp, "10.88.0.3/16", 80)]).unwrap_err();
        assert!(matches!(&error, Error::PortTaken { port: 8080, holder, .. } if holder.container_id == "ctrA"));
        assert!(error.to_string().contains("ctrA") && error.to_string().contains("pmnet"), "{error}");
        assert_eq!(sh("nft -a list ruleset"), before);
        apply(&owner("pmnet", "ctrB", "eth0"), &[publish(8080, Udp, "10.88.0.3/16", 80)]).unwrap();
        let on = |host| publish_with(Some(host), 81, Tcp, "10.88.0.3/16", 80, Snat::Hairpin, MarkStyle::default());
        apply(&owner("pmnet", "ctrC", "eth0"), &[on("127.0.0.1")]).unwrap();
        apply(&owner("pmnet", "ctrD", "eth0"), &[on("127.0.0.2")]).unwrap();
        assert!(apply(&owner("pmnet", "ctrE", "eth0"), &[on("0.0.0.0")]).is_err());
        apply(&owner("other", "ctrA", "eth0"), &[publish(8080, Tcp, "10.89.0.2/16", 80)]).unwrap();
    }

    /// A dead container's claim, here one of the reference set's, is taken over with all that was left of it.
    fn of_a_dead_container_are_taken_over() {
        sh("ip netns add ctrA");
        reference::plugin("portmap", "ADD", "ctrA", &reference::chained("portmap", "pmnet", &["10.88.0.2/16"], MAPPINGS));
        let new = owner("pmnet", "ctrB", "eth0");
        let wanted = [publish(8080, Tcp, "10.88.0.3/16", 80)];
        assert!(matches!(apply(&new, &wanted), Err(Error::PortTaken { .. })));
        apply_if(&new, &wanted, &|holder, address| {
            assert_eq!((holder.container_id.as_str(), address.to_string().as_str()), ("ctrA", "10.88.0.2"));
            false
        }).unwrap();
        assert!(!save("iptables", "nat").contains("ctrA"));
        verify(&new, &wanted).unwrap();
    }

    /// One request cannot send a port to two places.
    fn are_not_published_twice_in_one_request() {
        let to = "10.88.0.2/16";
        let error = apply(&owner("n", "c", "eth0"), &[publish(80, Tcp, to, 80), publish(80, Tcp, to, 81)]).unwrap_err();
        assert!(matches!(error, Error::PortRepeated { port: 80, .. }));
        apply(&owner("n", "c", "eth0"), &[publish(80, Tcp, to, 80), publish(80, Tcp, to, 80), publish(80, Udp, to, 81)]).unwrap();
    }

    /// Two interfaces on one network have their ports in one chain; each leaves alone.
    fn of_two_interfaces_end_one_by_one() {
        let (first, second) = (owner("n", "c", "eth0"), owner("n", "c", "eth1"));
        let (a, b) = ([publish(8080, Tcp, "10.88.0.2/16", 80)], [publish(9090, Tcp, "10.88.0.3/16", 80)]);
        apply(&first, &a).unwrap();
        apply(&second, &b).unwrap();
        verify(&first, &a).unwrap();
        verify(&second, &b).unwrap();
        remove(&first, &[]);
        verify(&second, &b).unwrap();
        assert!(!save("iptables", "nat").contains("10.88.0.2:80"));
        remove(&second, &[]);
        assert!(!save("iptables", "nat").contains("CNI-DN-"));
    }

    /// More ports than one rule can list, conditions, both marks.
    fn may_be_many_and_conditional() {
        let many: Vec<_> = (1..=40).map(|port| publish(8000 + port, Tcp, "10.88.0.2/16", port)).collect();
        let owner = owner("n", "c", "eth0");
        apply(&owner, &many).unwrap();
        verify(&owner, &many).unwrap();
        assert_eq!(rules("iptables", "nat").iter().filter(|rule| rule.starts_with("-A CNI-HOSTPORT-DNAT")).count(), 3);
        let mut conditional = publish(80, Tcp, "10.88.0.2/16", 80);
        if let Intent::Publish { conditions, .. } = &mut conditional {
            *conditions = ["!", "-s", "192.0.2.0/24", "-m", "limit", "--limit", "5/s"].map(str::to_owned).to_vec();
        }
        apply(&owner, std::slice::from_ref(&conditional)).unwrap();
        verify(&owner, std::slice::from_ref(&conditional)).unwrap();
        let entry = rules("iptables", "nat").into_iter().find(|rule| rule.starts_with("-A CNI-HOSTPORT-DNAT")).unwrap();
        assert!(entry.contains("! -s 192.0.2.0/24") && entry.contains("--limit 5/sec"), "{entry}");
        let before = sh("nft -a list ruleset");
        apply(&owner, std::slice::from_ref(&conditional)).unwrap();
        assert_eq!(sh("nft -a list ruleset"), before);
    }

    /// A foreign mark chain is used where it is; where it is not, we mark ourselves.
    fn use_a_foreign_mark_chain_if_there_is_one() {
        let chain = MarkStyle::Chain("KUBE-MARK-MASQ".into());
        let wanted = [publish_with(None, 80, Tcp, "10.88.0.2/16", 80, Snat::Hairpin, chain)];
        let owner = owner("n", "c", "eth0");
        apply(&owner, &wanted).unwrap();
        verify(&owner, &wanted).unwrap();
        assert!(save("iptables", "nat").contains("-j CNI-HOSTPORT-SETMARK"));
        remove(&owner, &[]);
        sh("iptables -t nat -N KUBE-MARK-MASQ");
        apply(&owner, &wanted).unwrap();
        verify(&owner, &wanted).unwrap();
        assert!(!save("iptables", "nat").contains("-j CNI-HOSTPORT-SETMARK"));
        assert!(save("iptables", "nat").contains("-j KUBE-MARK-MASQ"));
    }

    /// Without source translation no mark is needed; with it for all, one rule.
    fn follow_the_snat_setting() {
        let with = |snat| [publish_with(None, 80, Tcp, "10.88.0.2/16", 80, snat, MarkStyle::Bit(3))];
        let owner = owner("n", "c", "eth0");
        apply(&owner, &with(Snat::None)).unwrap();
        assert!(!save("iptables", "nat").contains("MARK --set-xmark 0x8/0x8"));
        apply(&owner, &with(Snat::All)).unwrap();
        verify(&owner, &with(Snat::All)).unwrap();
        let now = save("iptables", "nat");
        assert!(now.contains("MARK --set-xmark 0x8/0x8"));
        assert!(now.lines().any(|line| line.ends_with("-p tcp -m tcp --dport 80 -j CNI-HOSTPORT-SETMARK")), "{now}");
    }

    /// Verification notices each lost piece.
    fn are_verified_rule_by_rule() {
        let owner = owner("pmnet", "ctrA", "eth0");
        let wanted = mapped("10.88.0.2/16");
        apply(&owner, &wanted).unwrap();
        let all = rules("iptables", "nat");
        for rule in all.iter().filter(|rule| !rule.contains("CONNMARK")) {
            sh(&format!("iptables -t nat -D {}", rule.strip_prefix("-A ").unwrap()));
            assert!(matches!(verify(&owner, &wanted), Err(Error::Missing { .. })), "{rule}");
            sh("iptables -t nat -F; iptables -t nat -X");
            apply(&owner, &wanted).unwrap();
        }
    }

    /// Collection: ports of lost attachments go, those of others stay.
    fn are_collected() {
        sh("ip netns add ctrA");
        reference::plugin("portmap", "ADD", "ctrA", &reference::chained("portmap", "pmnet", &["10.88.0.2/16"], MAPPINGS));
        let stays = [publish(9090, Tcp, "10.88.0.3/16", 80)];
        apply(&owner("pmnet", "ctrB", "eth0"), &stays).unwrap();
        apply(&owner("pmnet", "ctrB", "eth1"), &[publish(9091, Tcp, "10.88.0.4/16", 80)]).unwrap();
        apply(&owner("other", "ctrC", "eth0"), &[publish(9092, Tcp, "10.89.0.3/16", 80)]).unwrap();
        Netfilter::open().unwrap().collect("pmnet", &[owner("pmnet", "ctrB", "eth0")], Kinds::ALL).unwrap();
        let now = save("iptables", "nat");
        assert!(!now.contains("ctrA") && !now.contains("10.88.0.4"), "{now}");
        verify(&owner("pmnet", "ctrB", "eth0"), &stays).unwrap();
        verify(&owner("other", "ctrC", "eth0"), &[publish(9092, Tcp, "10.89.0.3/16", 80)]).unwrap();
    }
}
