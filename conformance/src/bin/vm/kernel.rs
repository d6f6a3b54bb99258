//! A kernel of Debian's and its modules, unpacked beside our own build and installed nowhere.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use conformance::error::Context;
use conformance::{Error, Result};

use crate::tools::output;

/// What the machine loads at boot, before anything asks for it: there is no `modprobe` in there.
/// A final `*` stands for all whose names go on from there.
const MODULES: &[&str] = &[
    "bridge",
    "br_netfilter",
    "veth",
    "8021q",
    "macvlan",
    "ipvlan",
    "dummy",
    "tun",
    "ifb",
    "vrf",
    "virtio_pci",
    "virtio_net",
    "sctp",
    "nf_tables",
    "nf_conntrack_bridge",
    "nf_conntrack_netlink",
    "nft_*",
    "iptable_*",
    "ip6table_*",
    "ipt_*",
    "ip6t_*",
    "xt_*",
    "sch_ingress",
    "sch_tbf",
    "act_mirred",
    "cls_u32",
];

/// A kernel image and its modules.
#[derive(Debug)]
pub struct Kernel {
    /// The image.
    pub image: PathBuf,
    /// Files of modules, each behind those it needs.
    pub modules: Vec<PathBuf>,
}

impl Kernel {
    /// Fetches the package unless it is here already, and unpacks it.
    pub fn provide(cache: &Path, package: &str) -> Result<Self> {
        let place = cache.join(package);
        if !place.join("boot").is_dir() {
            fetch(cache, package, &place)?;
        }
        let image = entry(&place.join("boot"), |name| name.starts_with("vmlinuz-"))?;
        let tree = entry(&module_root(&place), |_| true)?;
        let mut supply = Supply {
            files: BTreeMap::new(),
            built_in: built_in(&tree)?,
        };
        collect(&tree, &mut supply.files)?;
        let mut modules = Vec::new();
        for pattern in MODULES {
            for name in supply.matching(pattern)? {
                supply.resolve(&name, &mut modules)?;
            }
        }
        Ok(Self { image, modules })
    }
}

/// A package for "the newest of its kind" holds nothing but the name of the real one.
fn fetch(cache: &Path, package: &str, place: &Path) -> Result<()> {
    let wanted = output("apt-cache", &["depends".as_ref(), package.as_ref()], cache)?;
    let wanted = String::from_utf8_lossy(&wanted.stdout).into_owned();
    let real = wanted
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .find(|name| name.starts_with("linux-image-"))
        .unwrap_or(package);
    eprintln!("Fetching {real} ...");
    output("apt-get", &["download".as_ref(), real.as_ref()], cache)?;
    let archive = entry(cache, |name| name.starts_with(&format!("{real}_")))?;
    let unpacked = cache.join(format!("{package}.unpacking"));
    let _ = fs::remove_dir_all(&unpacked);
    let arguments: [&OsStr; 3] = ["-x".as_ref(), archive.as_ref(), unpacked.as_ref()];
    output("dpkg-deb", &arguments, cache)?;
    fs::remove_file(&archive).doing(|| format!("remove {}", archive.display()))?;
    fs::rename(&unpacked, place).doing(|| format!("keep {}", place.display()))
}

/// `/lib` was merged into `/usr/lib` in Debian 13.
fn module_root(place: &Path) -> PathBuf {
    let merged = place.join("usr/lib/modules");
    if merged.is_dir() {
        merged
    } else {
        place.join("lib/modules")
    }
}

fn entry(directory: &Path, wanted: impl Fn(&str) -> bool) -> Result<PathBuf> {
    let mut names = fs::read_dir(directory).doing(|| format!("list {}", directory.display()))?;
    let found = names.find_map(|name| {
        let path = name.ok()?.path();
        wanted(path.file_name()?.to_str()?).then_some(path)
    });
    found.ok_or_else(|| Error::Missing {
        what: format!("the file wanted in {}", directory.display()),
    })
}

/// All modules by their names, in which the kernel takes `-` and `_` for the same.
fn collect(directory: &Path, all: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory).doing(|| format!("list {}", directory.display()))? {
        let path = entry
            .doing(|| format!("list {}", directory.display()))?
            .path();
        if path.is_dir() && !path.is_symlink() {
            collect(&path, all)?;
        } else if let Some((name, "ko" | "ko.xz")) = path
            .file_name()
            .and_then(OsStr::to_str)
            .and_then(|n| n.split_once('.'))
        {
            all.insert(name.replace('-', "_"), path);
        }
    }
    Ok(())
}

/// The names of what is no module because the kernel itself has it.
fn built_in(tree: &Path) -> Result<BTreeSet<String>> {
    let list = tree.join("modules.builtin");
    let text = fs::read_to_string(&list).doing(|| format!("read {}", list.display()))?;
    let names = text.lines().filter_map(|line| {
        let name = Path::new(line).file_stem()?.to_str()?;
        Some(name.replace('-', "_"))
    });
    Ok(names.collect())
}

/// What a kernel has.
struct Supply {
    /// Modules by their names.
    files: BTreeMap<String, PathBuf>,
    /// What needs no module.
    built_in: BTreeSet<String>,
}

impl Supply {
    /// The names a pattern stands for, at least one.
    fn matching(&self, pattern: &str) -> Result<Vec<String>> {
        let Some(start) = pattern.strip_suffix('*') else {
            return Ok(vec![pattern.to_owned()]);
        };
        let names = self.files.keys().filter(|name| name.starts_with(start));
        let names: Vec<String> = names.cloned().collect();
        if names.is_empty() {
            return Err(missing(pattern));
        }
        Ok(names)
    }

    /// Puts a module behind those it needs.
    fn resolve(&self, name: &str, order: &mut Vec<PathBuf>) -> Result<()> {
        let name = name.replace('-', "_");
        let Some(path) = self.files.get(&name) else {
            let there = self.built_in.contains(&name);
            return if there { Ok(()) } else { Err(missing(&name)) };
        };
        if order.contains(path) {
            return Ok(());
        }
        for needed in needs(&read_module(path)?) {
            self.resolve(&needed, order)?;
        }
        order.push(path.clone());
        Ok(())
    }
}

/// Checks that need it would have to be skipped.
fn missing(module: &str) -> Error {
    Error::Missing {
        what: format!("the module {module} in the kernel's package"),
    }
}

/// The module as the kernel loads it.
pub fn read_module(path: &Path) -> Result<Vec<u8>> {
    if path.extension() == Some(OsStr::new("xz")) {
        return Ok(output("xz", &["-dc".as_ref(), path.as_ref()], Path::new("/"))?.stdout);
    }
    fs::read(path).doing(|| format!("read {}", path.display()))
}

/// The names behind `depends=` in the strings of a module's `.modinfo` section.
fn needs(module: &[u8]) -> Vec<String> {
    let key = b"\0depends=";
    let Some(start) = module.windows(key.len()).position(|window| window == key) else {
        return Vec::new();
    };
    let list = module.get(start + key.len()..).unwrap_or_default();
    let list = list.split(|byte| *byte == 0).next().unwrap_or_default();
    let list = String::from_utf8_lossy(list);
    list.split(',')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}
