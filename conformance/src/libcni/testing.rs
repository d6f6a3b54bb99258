//! Scripted plugins that write down how they were called.

use super::{Cached, Cni, Key, RuntimeConf};
use cni_types::{ContainerId, IfName, NetworkList, NetworkName, Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Writes the call and the request down, then answers as told by the files beside it.
const PLUGIN: &str = r#"
me="${0##*/}"; dir="${0%/*}"
echo "$me $CNI_COMMAND $CNI_CONTAINERID $CNI_IFNAME $CNI_ARGS" >> "$dir/calls"
cat > "$dir/$me.$CNI_COMMAND.stdin"
[ ! -e "$dir/$me.$CNI_COMMAND.hangs" ] || exec sleep 1000
[ ! -e "$dir/$me.$CNI_COMMAND.out" ] || cat "$dir/$me.$CNI_COMMAND.out"
[ ! -e "$dir/$me.$CNI_COMMAND.fails" ]
"#;

/// An executable shell script in a directory of its own.
pub(super) fn script(body: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plugin");
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    (dir, path)
}

/// A plugin directory and a cache.
pub(super) struct Bench {
    dir: TempDir,
}

impl Bench {
    pub(super) fn new() -> Self {
        let (dir, plugin) = script(PLUGIN);
        for name in ["one", "two", "three"] {
            symlink(&plugin, dir.path().join(name)).unwrap();
        }
        Bench { dir }
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn cni(&self) -> Cni {
        Cni::new([self.path().to_owned()])
            .cache_dir(self.path().join("cache"))
            .quiet()
    }

    /// From now on the plugin succeeds and prints this.
    pub(super) fn answers(&self, plugin: &str, command: &str, printed: &str) {
        let base = format!("{plugin}.{command}");
        fs::write(self.path().join(format!("{base}.out")), printed).unwrap();
        let _ = fs::remove_file(self.path().join(format!("{base}.fails")));
    }

    /// From now on the plugin prints this and fails.
    pub(super) fn fails(&self, plugin: &str, command: &str, printed: &str) {
        self.answers(plugin, command, printed);
        fs::write(self.path().join(format!("{plugin}.{command}.fails")), "").unwrap();
    }

    /// From now on the plugin does not end.
    pub(super) fn hangs(&self, plugin: &str, command: &str) {
        fs::write(self.path().join(format!("{plugin}.{command}.hangs")), "").unwrap();
    }

    /// A list of that content; without a name it is called `net`.
    pub(super) fn list(&self, mut value: Value) -> NetworkList {
        if value.get("name").is_none() {
            value["name"] = "net".into();
        }
        NetworkList::parse(json::to_string(&value).as_bytes()).unwrap()
    }

    pub(super) fn attachment(&self) -> RuntimeConf {
        let ifname = IfName::new("eth0").unwrap();
        RuntimeConf::new(ContainerId::new("c1").unwrap(), "/run/netns/x", ifname)
    }

    /// What is remembered of [`attachment`](Self::attachment) to `net`.
    pub(super) fn cached(&self) -> Option<Cached> {
        let rt = self.attachment();
        let network = NetworkName::new("net").unwrap();
        self.cni()
            .cache()
            .get(&Key::new(&network, &rt.container_id, &rt.ifname))
            .unwrap()
    }

    /// The calls so far: plugin, command, container, interface, arguments.
    pub(super) fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path().join("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(super) fn forget_calls(&self) {
        fs::remove_file(self.path().join("calls")).unwrap();
    }

    /// The plugin's last request.
    pub(super) fn stdin(&self, plugin: &str, command: &str) -> Value {
        let path = self.path().join(format!("{plugin}.{command}.stdin"));
        json::parse(&fs::read(path).unwrap()).unwrap()
    }

    pub(super) fn write_cache_file(&self, name: &str, content: &str) {
        let dir = self.path().join("cache/results");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(name), content).unwrap();
    }

    pub(super) fn cache_files(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path().join("cache/results")) else {
            return vec![];
        };
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}
