//! Runs host-local as a runtime would: a process with an environment, JSON on stdin and a directory of its own.
#![allow(dead_code)]

use std::fs;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

pub const OURS: &str = env!("CARGO_BIN_EXE_host-local");

pub const VERSIONS: [&str; 7] = [
    "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0",
];

/// The reference set's binary.
pub fn reference() -> PathBuf {
    let dir =
        std::env::var_os("FERRULE_REFERENCE_PLUGINS").unwrap_or_else(|| "/usr/lib/cni".into());
    let path = Path::new(&dir).join("host-local");
    assert!(
        path.is_file(),
        "{} is missing: install it (Debian: apt-get install containernetworking-plugins) or set FERRULE_REFERENCE_PLUGINS to the reference set's directory",
        path.display()
    );
    path
}

/// What a call answered.
#[derive(Debug)]
pub struct Answer {
    pub ok: bool,
    pub stdout: String,
    pub stderr: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The addresses of a successful ADD of any version, with their prefixes.
    pub fn addresses(&self) -> Vec<String> {
        assert!(self.ok, "{self:?}");
        let result = self.json();
        let lists = result["ips"].as_array().cloned().unwrap_or_default();
        let text = |v: &Value| v.as_str().map(str::to_owned);
        lists
            .iter()
            .filter_map(|ip| text(&ip["address"]))
            .chain(text(&result["ip4"]["ip"]))
            .chain(text(&result["ip6"]["ip"]))
            .collect()
    }

    /// Code and whole text of an error.
    pub fn error(&self) -> (u64, String) {
        assert!(!self.ok, "{self:?}");
        let object = self.json();
        let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
        let code = object["code"].as_u64().unwrap();
        (code, format!("{}; {}", text("msg"), text("details")))
    }
}

/// A network with its own data directory, gone when dropped.
pub struct Net {
    pub tmp: tempfile::TempDir,
    pub version: String,
    pub ipam: Value,
    /// Other keys of the configuration.
    pub extra: Value,
    pub program: PathBuf,
}

impl Net {
    pub fn new(version: &str, ipam: Value) -> Self {
        let tmp = tempfile::tempdir().unwrap();
        Self {
            tmp,
            version: version.to_owned(),
            ipam,
            extra: json!({}),
            program: OURS.into(),
        }
    }

    /// One range set for each list of subnets.
    pub fn with_ranges(version: &str, sets: &[&[&str]]) -> Self {
        let sets: Vec<Vec<Value>> = sets
            .iter()
            .map(|set| set.iter().map(|s| json!({"subnet": s})).collect())
            .collect();
        Self::new(version, json!({ "ranges": sets }))
    }

    pub fn dir(&self) -> PathBuf {
        self.tmp.path().join("net1")
    }

    pub fn config(&self) -> Value {
        let mut config = json!({"cniVersion": self.version, "name": "net1", "type": "bridge", "ipam": self.ipam});
        if let Some(ipam) = config["ipam"].as_object_mut() {
            ipam.entry("type").or_insert_with(|| "host-local".into());
            ipam.entry("dataDir")
                .or_insert_with(|| self.tmp.path().to_str().unwrap().into());
        }
        for (key, value) in self.extra.as_object().unwrap() {
            config[key] = value.clone();
        }
        config
    }

    pub fn call(&self, command: &str, id: &str, ifname: &str, args: &str) -> Answer {
        self.call_with(command, id, ifname, args, &self.config().to_string())
    }

    pub fn call_with(
        &self,
        command: &str,
        id: &str,
        ifname: &str,
        args: &str,
        stdin: &str,
    ) -> Answer {
        run(&self.program, command, id, ifname, args, stdin)
    }

    pub fn add(&self, id: &str) -> Answer {
        self.call("ADD", id, "eth0", "")
    }

    pub fn del(&self, id: &str) -> Answer {
        self.call("DEL", id, "eth0", "")
    }

    pub fn check(&self, id: &str) -> Answer {
        self.call("CHECK", id, "eth0", "")
    }

    /// All file names in the network's directory, in order, without those that are Ferrule's own.
    pub fn files(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.dir()) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.retain(|name| !name.starts_with(".ferrule-"));
        names.sort();
        names
    }

    pub fn leases(&self) -> Vec<String> {
        let mut names = self.files();
        names.retain(|name| name.parse::<IpAddr>().is_ok());
        names
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.dir().join(name)).unwrap()
    }

    pub fn write(&self, name: &str, content: &str) {
        fs::create_dir_all(self.dir()).unwrap();
        fs::write(self.dir().join(name), content).unwrap();
    }
}

/// Runs a plugin that ends by itself.
pub fn run(
    program: &Path,
    command: &str,
    id: &str,
    ifname: &str,
    args: &str,
    stdin: &str,
) -> Answer {
    let mut plugin = Command::new(program);
    plugin.env_clear();
    environment(&mut plugin, command, id, ifname, args);
    let output = feed(plugin, stdin);
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 1)), "{output:?}");
    Answer {
        ok: code == Some(0),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Sets a call's variables.
pub fn environment(plugin: &mut Command, command: &str, id: &str, ifname: &str, args: &str) {
    plugin
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("CNI_COMMAND", command)
        .env("CNI_CONTAINERID", id)
        .env("CNI_NETNS", "/nonexistent/netns")
        .env("CNI_IFNAME", ifname)
        .env("CNI_ARGS", args)
        .env("CNI_PATH", "/nonexistent");
}

/// Runs a command with a text on stdin, which it need not read.
pub fn feed(mut command: Command, stdin: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child.wait_with_output().unwrap()
}
