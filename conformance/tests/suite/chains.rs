//! The lists of real runtimes where the host is not as usual.

use conformance::demo::{Circumstances, Scene, play};

use super::support::{Lab, hide_tools, nft, plugins, sandboxed, tool};

/// Plays a list with every kind of traffic; see the demo.
fn play_list(lab: &Lab, key: &str, circumstances: Circumstances) {
    let scene = Scene::named(key).unwrap();
    assert!(
        play(&scene, &lab.host, &plugins(), circumstances).unwrap(),
        "list {key}"
    );
}

/// A `nat` table that iptables cannot read, as native rulesets make it.
fn foreign_table() {
    tool("nft", "nftables");
    nft(
        "add table ip nat; add set ip nat mine { type ipv4_addr; }; \
         add chain ip nat POSTROUTING { type nat hook postrouting priority 100; }; \
         add rule ip nat POSTROUTING ip saddr @mine masquerade",
    );
}

sandboxed! {
    fn list_b_with_an_admin_chain_made_beforehand(lab) {
        tool("iptables", "iptables");
        play_list(lab, "b", Circumstances { admin_chain: true });
    }

    fn list_b_as_usual(lab) {
        tool("iptables", "iptables");
        play_list(lab, "b", Circumstances::default());
    }

    fn list_a_as_usual(lab) {
        play_list(lab, "a", Circumstances::default());
    }

    fn list_c_as_usual(lab) {
        play_list(lab, "c", Circumstances::default());
    }

    fn list_d_as_usual(lab) {
        play_list(lab, "d", Circumstances::default());
    }

    fn list_a_without_iptables_and_nft(lab) {
        plugins();
        hide_tools(&["iptables", "nft", "ip6tables"]);
        play_list(lab, "a", Circumstances::default());
    }

    fn list_c_without_iptables_and_nft(lab) {
        plugins();
        hide_tools(&["iptables", "nft", "ip6tables"]);
        play_list(lab, "c", Circumstances::default());
    }

    fn list_d_without_iptables_and_nft(lab) {
        plugins();
        hide_tools(&["iptables", "nft", "ip6tables"]);
        play_list(lab, "d", Circumstances::default());
    }

    fn list_a_beside_a_foreign_nat_table(lab) {
        foreign_table();
        play_list(lab, "a", Circumstances::default());
    }

    fn list_c_beside_a_foreign_nat_table(lab) {
        foreign_table();
        play_list(lab, "c", Circumstances::default());
    }

    fn list_d_beside_a_foreign_nat_table(lab) {
        foreign_table();
        play_list(lab, "d", Circumstances::default());
    }
}
