//! Images without a registry: busybox in a `docker save` archive.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::support::{run, tool};

/// A process that waits, as PID 1 of a container.
pub const WAIT: &[&str] = &["sleep", "3600"];

/// A web server that tells the name of its container.
pub const SERVE: &[&str] = &[
    "sh",
    "-c",
    "mkdir -p /www; hostname >/www/index.html; exec httpd -f -p 80 -h /www",
];

/// Writes the archive of an image with this command below `work` and returns its path.
pub fn archive(work: &Path, name: &str, command: &[&str]) -> PathBuf {
    let place = work.join(name.replace(['/', ':'], "-"));
    let root = place.join("root");
    for directory in ["bin", "etc", "tmp", "dev", "proc", "sys"] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    let busybox = tool("busybox", "busybox-static");
    fs::copy(&busybox, root.join("bin/busybox")).unwrap();
    for applet in run(&busybox, &["--list"])
        .lines()
        .filter(|name| *name != "busybox")
    {
        std::os::unix::fs::symlink("busybox", root.join("bin").join(applet)).unwrap();
    }
    fs::write(root.join("etc/passwd"), "root:x:0:0:root:/:/bin/sh\n").unwrap();
    fs::write(root.join("etc/group"), "root:x:0:\n").unwrap();
    pack(&root, &place.join("layer.tar"));
    fs::remove_dir_all(&root).unwrap();
    let layer = hash(&fs::read(place.join("layer.tar")).unwrap());
    let config = json!({
        "architecture": "amd64",
        "os": "linux",
        // Busybox as the first process of a container takes no SIGTERM: no stop has to wait for it.
        "config": {"Cmd": command, "Env": ["PATH=/bin"], "StopSignal": "SIGKILL"},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
    });
    let config = config.to_string();
    let file = format!("{}.json", hash(config.as_bytes()));
    fs::write(place.join(&file), config).unwrap();
    let manifest = json!([{"Config": file, "RepoTags": [name], "Layers": ["layer.tar"]}]);
    fs::write(place.join("manifest.json"), manifest.to_string()).unwrap();
    let archive = place.with_extension("tar");
    pack(&place, &archive);
    fs::remove_dir_all(&place).unwrap();
    archive
}

/// Packs the entries of a directory under their plain names, as readers of archives expect them.
fn pack(directory: &Path, to: &Path) {
    let names = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    let status = Command::new("tar")
        .args(["--sort=name", "--owner=0", "--group=0", "--mtime=@0", "-cf"])
        .arg(to)
        .arg("-C")
        .arg(directory)
        .args(names)
        .status()
        .unwrap();
    assert!(status.success());
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
