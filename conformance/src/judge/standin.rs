//! Small plugins of our own: an IPAM plugin that answers what a check wants and records how it was called, and chained
//! plugins as anybody may have written them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::{Context, Result};

/// The name of the IPAM plugin.
pub const IPAM: &str = "judge-ipam";
/// The name of a chained plugin that hands the result on as it came.
pub const PASS: &str = "judge-pass";

const ROOT: &str = "/run/sandbox/tmp/standin";

const IPAM_SCRIPT: &str = r#"#!/bin/sh
key="$CNI_CONTAINERID-$CNI_IFNAME.$CNI_COMMAND"
cat >"$DIR/seen/$key.$$.stdin"
{ env; echo "OWN_NETNS=$(readlink /proc/self/ns/net)"; } >"$DIR/seen/$key.$$.env"
if [ -f "$DIR/tell/$key" ]; then cat "$DIR/tell/$key"; fi
if [ -f "$DIR/exit/$key" ]; then exit "$(cat "$DIR/exit/$key")"; fi
exit 0
"#;

// No JSON parser in sh: the result is everything after the key's colon up to its closing brace.
const PASS_SCRIPT: &str = r#"#!/bin/sh
case "$CNI_COMMAND" in
VERSION) echo '{"cniVersion":"1.1.0","supportedVersions":["0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}' ;;
ADD) awk '{ all = all $0 } END {
    at = index(all, "\"prevResult\":"); if (!at) exit 1
    rest = substr(all, at + 13); depth = 0
    for (i = 1; i <= length(rest); i++) { c = substr(rest, i, 1)
        if (c == "{") depth++
        if (c == "}" && --depth == 0) { print substr(rest, 1, i); exit }
    } }' ;;
*) cat >/dev/null ;;
esac
"#;

/// The directory of the stand-ins.
#[derive(Debug)]
pub struct Standins {
    root: PathBuf,
}

/// How the IPAM plugin was called.
#[derive(Clone, Debug)]
pub struct Called {
    /// Its environment, `KEY=value`.
    pub env: Vec<String>,
    /// What it read.
    pub stdin: Vec<u8>,
}

impl Called {
    /// A variable; empty if it was not set.
    pub fn var(&self, key: &str) -> &str {
        self.env
            .iter()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
            .unwrap_or_default()
    }
}

impl Standins {
    /// Writes them.
    pub fn write() -> Result<Self> {
        let root = PathBuf::from(ROOT);
        for directory in ["bin", "seen", "tell", "exit"] {
            let path = root.join(directory);
            fs::create_dir_all(&path).doing(|| format!("create {}", path.display()))?;
        }
        let ipam = IPAM_SCRIPT.replace("$DIR", ROOT);
        for (name, script) in [(IPAM, ipam.as_str()), (PASS, PASS_SCRIPT)] {
            let path = root.join("bin").join(name);
            let writing = || format!("write {}", path.display());
            fs::write(&path, script).doing(writing)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).doing(writing)?;
        }
        Ok(Self { root })
    }

    /// The directory to search for them.
    pub fn directory(&self) -> PathBuf {
        self.root.join("bin")
    }

    /// What the IPAM plugin prints for this command of this attachment, and its exit code.
    pub fn tell(&self, id: &str, ifname: &str, verb: &str, text: &str, code: u8) -> Result<()> {
        let key = format!("{id}-{ifname}.{verb}");
        let write = |directory: &str, text: &str| {
            let path = self.root.join(directory).join(&key);
            fs::write(&path, text).doing(|| format!("write {}", path.display()))
        };
        write("tell", text)?;
        write("exit", &code.to_string())
    }

    /// The result that the IPAM plugin gives this attachment.
    pub fn lease(&self, id: &str, ifname: &str, result: &Value) -> Result<()> {
        self.tell(id, ifname, "ADD", &result.to_string(), 0)
    }

    /// The calls of the IPAM plugin with this command for this attachment.
    pub fn calls(&self, id: &str, ifname: &str, verb: &str) -> Result<Vec<Called>> {
        let seen = self.root.join("seen");
        let prefix = format!("{id}-{ifname}.{verb}.");
        let mut calls = Vec::new();
        for entry in fs::read_dir(&seen).doing(|| format!("list {}", seen.display()))? {
            let path = entry.doing(|| format!("list {}", seen.display()))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(&prefix) && name.ends_with(".env") {
                calls.push(read(&path)?);
            }
        }
        Ok(calls)
    }

    /// Forgets the calls so far.
    pub fn forget(&self) -> Result<()> {
        let seen = self.root.join("seen");
        fs::remove_dir_all(&seen)
            .and_then(|()| fs::create_dir(&seen))
            .doing(|| format!("empty {}", seen.display()))
    }
}

fn read(env: &Path) -> Result<Called> {
    let reading = || format!("read {}", env.display());
    let text = fs::read(env).doing(reading)?;
    let stdin = fs::read(env.with_extension("stdin")).doing(reading)?;
    let env = String::from_utf8_lossy(&text);
    Ok(Called {
        env: env.lines().map(str::to_owned).collect(),
        stdin,
    })
}
