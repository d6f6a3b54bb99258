//! The iptables tool, for what an administrator does with it before a container comes.

use std::process::Command;

use crate::chain::{find_tool, standard_path};
use crate::{Error, Result};

/// What to say where the tool is missing.
pub const INSTALL: &str = "iptables is not installed; Debian, Ubuntu: apt-get install -y iptables; \
     Fedora: dnf install -y iptables-nft; Arch: pacman -S iptables-nft; Alpine: apk add iptables";

/// Whether the tool is there.
pub fn is_installed() -> bool {
    find_tool("iptables", &standard_path()).is_some()
}

/// Makes Nomad's admin chain with the rule that Nomad puts there.
pub fn prepare_admin_chain() -> Result<()> {
    run("iptables", &["-N", "NOMAD-ADMIN"])?;
    run(
        "iptables",
        &[
            "-A",
            "NOMAD-ADMIN",
            "-o",
            "nomad",
            "-d",
            "172.26.64.0/20",
            "-j",
            "ACCEPT",
        ],
    )
}

/// Sets the FORWARD policy to DROP for both families, as container engines do.
pub fn forward_policy_drop() -> Result<()> {
    for tool in ["iptables", "ip6tables"] {
        run(tool, &["-P", "FORWARD", "DROP"])?;
    }
    Ok(())
}

fn run(tool: &str, arguments: &[&str]) -> Result<()> {
    let program = find_tool(tool, &standard_path()).ok_or_else(|| Error::Missing {
        what: INSTALL.into(),
    })?;
    let output = Command::new(&program)
        .arg("-w")
        .args(arguments)
        .output()
        .map_err(|source| Error::System {
            what: format!("run {}", program.display()),
            source,
        })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Missing {
        what: format!("success of {tool} {}: {said}", arguments.join(" ")),
    })
}
