//! Guarding the host's loopback services where `route_localnet` is on and the kernel has no nf_tables.

use ipnetwork::IpNetwork;

use super::family::Family;
use super::plan::{Place, Plan};
use super::rule::{Match, Rule, Target};
use super::script::FILTER;
use super::variant::Variant;
use super::view::View;
use super::write;
use crate::carrier::Context;
use crate::error::Result;
use crate::lock::Lock;
use crate::netfilter::ApplyOptions;

const INPUT: &str = "INPUT";
const COMMENT: &str = "CNI portfwd loopback guard";

/// Drops packets for 127.0.0.0/8 that come in from elsewhere, unless they belong to a connection from here. One
/// rule for all interfaces; nothing happens if it is there.
pub(crate) fn guard(context: &mut Context<'_>) -> Result<()> {
    let _lock = Lock::take("iptables", ApplyOptions::default().timeout)?;
    let variant = Variant::live(context.socket);
    let mut view = View::new(context.socket, variant, Family::V4);
    let mut plan = Plan::new(&mut view);
    let same =
        |there: &Rule| there.comment.as_deref() == Some(COMMENT) && there.target == Target::Drop;
    plan.ensure_rule(FILTER, INPUT, Place::First, rule(), same)?;
    let edits = plan.edits;
    write::all(context, variant, &[edits], "").map(drop)
}

fn rule() -> Rule {
    let loopback: Option<IpNetwork> = "127.0.0.0/8".parse().ok();
    let words = [
        "-m",
        "conntrack",
        "!",
        "--ctstate",
        "RELATED,ESTABLISHED,DNAT",
    ];
    Rule {
        source: loopback.map(|value| Match {
            value,
            negated: true,
        }),
        destination: loopback.map(Match::is),
        other: words.map(str::to_owned).to_vec(),
        ..Rule::to(Target::Drop).comment(COMMENT)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::nfnl::Socket;

    const MARK: &str = "LOCALNET_TEST_SANDBOX";

    fn output(command: &mut Command) -> String {
        let output = command
            .output()
            .expect("this test needs unshare (util-linux) and iptables");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        text
    }

    /// Runs itself again in namespaces of its own, there with each variant's tables.
    #[test]
    fn the_guard_is_set_once() {
        if std::env::var_os(MARK).is_none() {
            let mut command = Command::new("unshare");
            if !nix::unistd::geteuid().is_root() {
                command.args(["--map-root-user", "--user", "unshare"]);
            }
            command.args([
                "--net",
                "--mount",
                "sh",
                "-ec",
                "mount -t tmpfs tmpfs /run; exec \"$0\" \"$@\"",
            ]);
            command.arg(std::env::current_exe().unwrap());
            command.args([
                "--exact",
                "iptables::localnet::tests::the_guard_is_set_once",
                "--nocapture",
            ]);
            assert!(output(command.env(MARK, "1")).contains("1 passed"));
            return;
        }
        let (mut socket, mut warnings) = (Socket::open().unwrap(), Vec::new());
        let mut context = Context {
            socket: &mut socket,
            warnings: &mut warnings,
        };
        for tool in ["/usr/sbin/iptables-legacy", "/usr/sbin/iptables-nft"] {
            output(Command::new(tool).args(["-N", "MINE"]));
            for _ in 0..2 {
                guard(&mut context).unwrap();
            }
            let rules = output(Command::new(tool).args(["-S", INPUT]));
            let expected = format!(
                "-A INPUT ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment \"{COMMENT}\" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP"
            );
            assert_eq!(rules.matches(&expected).count(), 1, "{rules}");
        }
    }
}
