//! A [`Rule`] as the words `iptables-restore` reads, in the order `iptables-save` prints them.

use std::fmt::Display;

use super::rule::{Marked, Match, Rule, Target, state};
use super::text::quoted;

/// The text after `-A <chain> `.
pub(crate) fn text(rule: &Rule) -> String {
    let mut out = Words(Vec::new());
    out.option("-s", rule.source.as_ref());
    out.option("-d", rule.destination.as_ref());
    out.option("-i", rule.input.as_ref());
    out.option("-o", rule.output.as_ref());
    out.option("-p", rule.protocol.as_ref());
    matches(rule, &mut out);
    target(&rule.target, &mut out);
    out.0.join(" ")
}

fn matches(rule: &Rule, out: &mut Words) {
    let list = rule
        .ports
        .iter()
        .map(u16::to_string)
        .collect::<Vec<_>>()
        .join(",");
    if let (false, false, Some(protocol)) = (rule.ports.is_empty(), rule.multiport, &rule.protocol)
    {
        out.all(["-m", &protocol.value, "--dport", &list]);
    }
    if let Some(comment) = &rule.comment {
        out.all(["-m", "comment", "--comment", comment]);
    }
    if rule.multiport {
        out.all(["-m", "multiport", "--dports", &list]);
    }
    if rule.to_host {
        out.all(["-m", "addrtype", "--dst-type", "LOCAL"]);
    }
    if rule.states != 0 {
        out.all(["-m", "conntrack", "--ctstate", &states(rule.states)]);
    }
    for (module, mark) in [("connmark", rule.connmark), ("mark", rule.mark)] {
        if let Some(mark) = mark {
            out.all(["-m", module, "--mark", &marked(mark)]);
        }
    }
    out.all(rule.other.iter().map(String::as_str));
}

fn target(target: &Target, out: &mut Words) {
    match target {
        Target::None => {}
        Target::Accept => out.all(["-j", "ACCEPT"]),
        Target::Drop => out.all(["-j", "DROP"]),
        Target::Return => out.all(["-j", "RETURN"]),
        Target::Masquerade => out.all(["-j", "MASQUERADE"]),
        Target::Jump(name) | Target::Other(name) => out.all(["-j", name]),
        Target::Dnat(to) => out.all(["-j", "DNAT", "--to-destination", to]),
        Target::Mark(mark) => out.all(["-j", "MARK", "--set-xmark", &marked(*mark)]),
        Target::Connmark(mark) => out.all(["-j", "CONNMARK", "--set-xmark", &marked(*mark)]),
    }
}

fn states(bits: u16) -> String {
    // The order in which iptables prints them.
    let names = [
        (state::INVALID, "INVALID"),
        (state::NEW, "NEW"),
        (state::RELATED, "RELATED"),
        (state::ESTABLISHED, "ESTABLISHED"),
        (state::UNTRACKED, "UNTRACKED"),
        (state::SNAT, "SNAT"),
        (state::DNAT, "DNAT"),
    ];
    let set = names.into_iter().filter(|(bit, _)| bits & bit != 0);
    set.map(|(_, name)| name).collect::<Vec<_>>().join(",")
}

fn marked(mark: Marked) -> String {
    format!("{:#x}/{:#x}", mark.value, mark.mask)
}

struct Words(Vec<String>);

impl Words {
    fn all<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) {
        self.0.extend(words.into_iter().map(quoted));
    }

    fn option<T: Display>(&mut self, option: &str, value: Option<&Match<T>>) {
        let Some(value) = value else { return };
        if value.negated {
            self.0.push("!".to_owned());
        }
        self.all([option, &value.value.to_string()]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::super::text::words;

    #[test]
    fn rules_are_written_as_iptables_save_prints_them() {
        for text in [
            r#"-s 10.1.2.2/32 -m comment --comment "name: \"net1\" id: \"c1\"" -j CNI-c2d892b58e87e28a12fe6479"#,
            r#"! -d 224.0.0.0/4 -m comment --comment "name: \"net1\" id: \"c1\"" -j MASQUERADE"#,
            "-d 10.88.0.2/32 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
            r#"-m comment --comment "CNI firewall plugin published ports" -m conntrack --ctstate DNAT -m connmark --mark 0x20000000/0x20000000 -j ACCEPT"#,
            r#"-i br0 ! -o br0 -m comment --comment "CNI firewall plugin rules (ingressPolicy: same-bridge)" -j CNI-ISOLATION-STAGE-2"#,
            "-m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT",
            r#"-p tcp -m comment --comment "dnat name: \"pmnet\" id: \"ctrA\"" -m multiport --dports 8080,8082 -j CNI-DN-200274210e915d5940e1a"#,
            "-s 10.88.0.0/16 -d 127.0.0.2/32 -p tcp -m tcp --dport 8080 -j CNI-HOSTPORT-SETMARK",
            "-p tcp -m tcp --dport 8080 -m comment --comment owner -j CONNMARK --set-xmark 0x20000000/0x20000000",
            "-s fd00::/64 -p udp -m udp --dport 53 -j DNAT --to-destination [fd00::2]:53",
            "-m mark --mark 0x2000/0x2000 -j MASQUERADE",
            r#"-m comment --comment "CNI portfwd masquerade mark" -j MARK --set-xmark 0x2000/0x2000"#,
            "-s 10.0.0.9/32 -m comment --comment marker",
        ] {
            assert_eq!(super::text(&parse::rule(&words(text))), text);
        }
    }
}
