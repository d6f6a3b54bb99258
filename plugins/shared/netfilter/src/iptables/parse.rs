//! The words of a rule, made a [`Rule`].

use ipnetwork::IpNetwork;

use super::rule::{Marked, Match, Rule, Target, canonical, state};

/// Understands the words after `-A <chain>`. What it has no field for lands in [`Rule::other`].
pub(crate) fn rule(words: &[String]) -> Rule {
    let mut reader = Reader {
        words: words.iter().map(String::as_str),
        rule: Rule::default(),
        module: String::new(),
    };
    let mut negated = false;
    while let Some(word) = reader.words.next() {
        if word == "!" {
            negated = true;
            continue;
        }
        reader.option(word, negated);
        negated = false;
    }
    reader.rule
}

/// Modules whose options the reader knows; naming them says nothing by itself.
const MODULES: [&str; 10] = [
    "comment",
    "tcp",
    "udp",
    "sctp",
    "multiport",
    "conntrack",
    "state",
    "mark",
    "connmark",
    "addrtype",
];

struct Reader<'a, I: Iterator<Item = &'a str>> {
    words: I,
    rule: Rule,
    /// The match or target that was named last: some options mean different things by it.
    module: String,
}

impl<'a, I: Iterator<Item = &'a str>> Reader<'a, I> {
    fn option(&mut self, option: &str, negated: bool) {
        if self.packet_option(option, negated) || (!negated && self.target_option(option)) {
            return;
        }
        self.match_option(option, negated);
    }

    /// Options every rule may have. Whether this was one.
    fn packet_option(&mut self, option: &str, negated: bool) -> bool {
        match option {
            "-s" | "--source" | "--src" => self.rule.source = self.network(negated),
            "-d" | "--destination" | "--dst" => self.rule.destination = self.network(negated),
            "-i" | "--in-interface" => self.rule.input = self.text(negated),
            "-o" | "--out-interface" => self.rule.output = self.text(negated),
            "-p" | "--protocol" | "--proto" => {
                self.rule.protocol = self.text(negated).map(|m| Match {
                    value: m.value.to_lowercase(),
                    ..m
                });
            }
            "-m" | "--match" => {
                let module = self.word();
                self.rule.multiport |= module == "multiport";
                if !MODULES.contains(&module.as_str()) {
                    self.rule.other.extend([option.to_owned(), module.clone()]);
                }
                self.module = module;
            }
            _ => return false,
        }
        true
    }

    /// `-j` and the options of targets. Whether this was one.
    fn target_option(&mut self, option: &str) -> bool {
        match option {
            "-j" | "--jump" => {
                let name = self.word();
                self.rule.target = target(&name);
                self.module = name;
            }
            "--to-destination" => self.rule.target = Target::Dnat(self.word()),
            "--set-xmark" | "--set-mark" => {
                let Some(marked) = marked(&self.word()) else {
                    return false;
                };
                self.rule.target = match self.module.as_str() {
                    "CONNMARK" => Target::Connmark(marked),
                    _ => Target::Mark(marked),
                };
            }
            _ => return false,
        }
        true
    }

    fn match_option(&mut self, option: &str, negated: bool) {
        let value = match option {
            "--comment"
            | "--dport"
            | "--dports"
            | "--destination-port"
            | "--destination-ports"
            | "--ctstate"
            | "--state"
            | "--mark"
            | "--dst-type"
                if !negated =>
            {
                self.word()
            }
            _ => return self.unknown(option, negated),
        };
        let understood = match option {
            "--comment" => {
                self.rule.comment = Some(value.clone());
                true
            }
            "--ctstate" | "--state" => states(&value).map(|s| self.rule.states = s).is_some(),
            "--mark" => self.mark(&value),
            "--dst-type" => {
                self.rule.to_host |= value == "LOCAL";
                value == "LOCAL"
            }
            _ => ports(&value).map(|p| self.rule.ports = p).is_some(),
        };
        if !understood {
            self.rule.other.extend([option.to_owned(), value]);
        }
    }

    fn mark(&mut self, value: &str) -> bool {
        let Some(marked) = marked(value) else {
            return false;
        };
        match self.module.as_str() {
            "connmark" => self.rule.connmark = Some(marked),
            _ => self.rule.mark = Some(marked),
        }
        true
    }

    fn unknown(&mut self, option: &str, negated: bool) {
        if negated {
            self.rule.other.push("!".to_owned());
        }
        self.rule.other.push(option.to_owned());
    }

    fn word(&mut self) -> String {
        self.words.next().unwrap_or_default().to_owned()
    }

    fn text(&mut self, negated: bool) -> Option<Match<String>> {
        Some(Match {
            value: self.word(),
            negated,
        })
    }

    fn network(&mut self, negated: bool) -> Option<Match<IpNetwork>> {
        let text = self.word();
        match text.parse::<IpNetwork>() {
            Ok(network) => canonical(network).map(|value| Match { value, negated }),
            Err(_) => {
                self.rule.other.push(text);
                None
            }
        }
    }
}

fn target(name: &str) -> Target {
    match name {
        "ACCEPT" => Target::Accept,
        "DROP" => Target::Drop,
        "RETURN" => Target::Return,
        "MASQUERADE" => Target::Masquerade,
        // Their option, which always follows, replaces these.
        "DNAT" | "MARK" | "CONNMARK" => Target::Other(name.to_owned()),
        "SNAT" | "LOG" | "REJECT" | "REDIRECT" | "NOTRACK" | "CT" | "NETMAP" | "TCPMSS"
        | "NFLOG" | "NFQUEUE" | "TPROXY" | "QUEUE" => Target::Other(name.to_owned()),
        chain => Target::Jump(chain.to_owned()),
    }
}

fn states(list: &str) -> Option<u16> {
    list.split(',').try_fold(0, |bits, name| {
        Some(
            bits | match name {
                "INVALID" => state::INVALID,
                "ESTABLISHED" => state::ESTABLISHED,
                "RELATED" => state::RELATED,
                "NEW" => state::NEW,
                "DNAT" => state::DNAT,
                "SNAT" => state::SNAT,
                "UNTRACKED" => state::UNTRACKED,
                _ => return None,
            },
        )
    })
}

fn ports(list: &str) -> Option<Vec<u16>> {
    list.split(',').map(|port| port.parse().ok()).collect()
}

fn marked(text: &str) -> Option<Marked> {
    let (value, mask) = text.split_once('/').unwrap_or((text, "0xffffffff"));
    Some(Marked {
        value: number(value)?,
        mask: number(mask)?,
    })
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::words;
    use super::*;

    fn parsed(text: &str) -> Rule {
        rule(&words(text))
    }

    #[test]
    fn networks_are_stored_as_the_kernel_does() {
        assert_eq!(
            parsed("-d 10.1.2.2/24 -j ACCEPT"),
            parsed("-d 10.1.2.0/24 -j ACCEPT")
        );
        assert_eq!(parsed("-s 10.1.2.2 -j X"), parsed("-s 10.1.2.2/32 -j X"));
        assert_eq!(parsed("-s 0.0.0.0/0 -j X").source, None);
        assert_eq!(
            parsed("-s fd00::2 -j X").source_host(),
            "fd00::2".parse().ok()
        );
        assert!(
            parsed("! -d 224.0.0.0/4 -j MASQUERADE")
                .destination
                .unwrap()
                .negated
        );
    }

    #[test]
    fn every_kind_of_rule_of_the_layout_is_understood() {
        for text in [
            r#"-d 10.1.2.0/24 -m comment --comment "name: \"n\" id: \"c\"" -j ACCEPT"#,
            "! -d 224.0.0.0/4 -j MASQUERADE",
            "-d 10.88.0.2/32 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
            "-m conntrack --ctstate DNAT -m connmark --mark 0x20000000/0x20000000 -j ACCEPT",
            "-i br0 ! -o br0 -j CNI-ISOLATION-STAGE-2",
            "-m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT",
            "-p tcp -m multiport --dports 1,2,3 -j CNI-DN-x",
            "-s 10.88.0.0/16 -d 127.0.0.2/32 -p udp -m udp --dport 53 -j CNI-HOSTPORT-SETMARK",
            "-p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.88.0.2:80",
            "-m mark --mark 0x2000/0x2000 -j MASQUERADE",
            "-j MARK --set-xmark 0x2000/0x2000",
            "-j CONNMARK --set-xmark 0x20000000/0x20000000",
        ] {
            let rule = parsed(text);
            assert!(rule.other.is_empty(), "{text}: {rule:?}");
            assert!(!matches!(rule.target, Target::Other(_)), "{text}: {rule:?}");
        }
    }

    #[test]
    fn marks_belong_to_their_module() {
        let rule = parsed("-m mark --mark 1 -m connmark --mark 0x2/0x3 -j ACCEPT");
        assert_eq!(
            rule.mark,
            Some(Marked {
                value: 1,
                mask: u32::MAX
            })
        );
        assert_eq!(rule.connmark, Some(Marked { value: 2, mask: 3 }));
    }

    #[test]
    fn what_is_not_understood_makes_rules_differ() {
        assert_ne!(
            parsed("-j RETURN"),
            parsed("-m limit --limit 1/s -j RETURN")
        );
        assert_ne!(
            parsed("-p tcp -j RETURN"),
            parsed("-p tcp --sport 5 -j RETURN")
        );
        assert_ne!(
            parsed("-p tcp --dport 5 -j RETURN"),
            parsed("-p tcp ! --dport 5 -j RETURN")
        );
        assert_ne!(
            parsed("-p tcp --dport 5:9 -j RETURN"),
            parsed("-p tcp -j RETURN")
        );
    }
}
