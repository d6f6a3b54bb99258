//! What the workspace holds, by `cargo metadata`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::command;
use crate::error::Error;

/// The directories of the plugins.
const KINDS: [&str; 3] = ["plugins/main", "plugins/ipam", "plugins/meta"];

/// A workspace and everything it is built of, for one target.
pub struct Workspace {
    /// The version of all members.
    pub version: String,
    /// The plugins' names, sorted.
    pub plugins: Vec<String>,
    metadata: Value,
}

/// A package that ends up in the binaries.
#[derive(Debug)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence, as an SPDX expression.
    pub license: String,
    /// Whether it is from elsewhere.
    pub foreign: bool,
    /// References of the packages that it needs, sorted.
    pub needs: Vec<String>,
}

impl Package {
    /// How the package is referred to.
    pub fn reference(&self) -> String {
        reference(&self.name, &self.version)
    }
}

fn reference(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{version}")
}

impl Workspace {
    /// Asks cargo.
    pub fn read(root: &Path, target: &str) -> Result<Self, Error> {
        let printed = command::output(
            Command::new(cargo())
                .current_dir(root)
                .args(["metadata", "--format-version=1", "--locked"])
                .args(["--filter-platform", target]),
        )?;
        let metadata: Value =
            serde_json::from_slice(&printed).map_err(|e| answer(e.to_string()))?;
        let mut plugins = Vec::new();
        let mut version = None;
        for package in array(&metadata, "packages") {
            let manifest = Path::new(text(package, "manifest_path"));
            let directory = manifest.parent().unwrap_or(manifest);
            if KINDS
                .iter()
                .any(|kind| directory.parent() == Some(&root.join(kind)))
            {
                plugins.push(text(package, "name").to_owned());
                version = Some(text(package, "version").to_owned());
            }
        }
        plugins.sort();
        Ok(Self {
            version: version.ok_or_else(|| answer("there is no plugin".to_owned()))?,
            plugins,
            metadata,
        })
    }

    /// Everything that ends up in the plugins and in `cnitool`, by reference: they, and what they need at run time. What is
    /// only needed to build them, procedural macros among it, is left out.
    pub fn closure(&self) -> BTreeMap<String, Package> {
        let packages: BTreeMap<&str, &Value> = array(&self.metadata, "packages")
            .map(|package| (text(package, "id"), package))
            .collect();
        let nodes: BTreeMap<&str, &Value> = self
            .metadata
            .get("resolve")
            .map(|resolve| array(resolve, "nodes"))
            .into_iter()
            .flatten()
            .map(|node| (text(node, "id"), node))
            .collect();
        let mut open: Vec<&str> = packages
            .iter()
            .filter(|(_, package)| self.ships(text(package, "name")))
            .map(|(id, _)| *id)
            .collect();
        let mut found = BTreeMap::new();
        while let Some(id) = open.pop() {
            let Some(package) = packages.get(id) else {
                continue;
            };
            let (name, version) = (text(package, "name"), text(package, "version"));
            if found.contains_key(&reference(name, version)) {
                continue;
            }
            let needed: Vec<&str> = nodes
                .get(id)
                .map(|node| array(node, "deps"))
                .into_iter()
                .flatten()
                .filter(|dep| is_normal(dep))
                .map(|dep| text(dep, "pkg"))
                .filter(|id| packages.get(id).is_some_and(|one| !is_macro(one)))
                .collect();
            let mut needs: Vec<String> = needed
                .iter()
                .filter_map(|id| packages.get(id))
                .map(|one| reference(text(one, "name"), text(one, "version")))
                .collect();
            needs.sort();
            needs.dedup();
            found.insert(
                reference(name, version),
                Package {
                    name: name.to_owned(),
                    version: version.to_owned(),
                    license: text(package, "license").to_owned(),
                    foreign: !text(package, "source").is_empty(),
                    needs,
                },
            );
            open.extend(needed);
        }
        found
    }

    /// Whether a package's program is shipped.
    fn ships(&self, name: &str) -> bool {
        name == "conformance" || self.plugins.iter().any(|plugin| plugin == name)
    }
}

fn is_normal(dependency: &Value) -> bool {
    array(dependency, "dep_kinds").any(|kind| kind.get("kind").is_none_or(Value::is_null))
}

fn is_macro(package: &Value) -> bool {
    array(package, "targets")
        .flat_map(|target| array(target, "kind"))
        .any(|kind| kind == "proc-macro")
}

fn array<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn answer(why: String) -> Error {
    Error::Answer {
        program: "cargo metadata",
        why,
    }
}

/// The cargo that runs us.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// The checkout that this program was built from.
pub fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// The target of this machine's compiler.
pub fn host_target() -> Result<String, Error> {
    let printed = command::output(Command::new("rustc").arg("-vV"))?;
    let printed = String::from_utf8_lossy(&printed);
    printed
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .ok_or(Error::Answer {
            program: "rustc -vV",
            why: "it names no host".to_owned(),
        })
}

/// The time that everything shipped carries, in seconds since 1970: `SOURCE_DATE_EPOCH`, else that of the last commit.
pub fn epoch(root: &Path) -> Result<u64, Error> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => {
            let mut git = Command::new("git");
            git.current_dir(root).args(["log", "-1", "--format=%ct"]);
            String::from_utf8_lossy(&command::output(&mut git)?).into_owned()
        }
    };
    text.trim().parse().map_err(|_| Error::Answer {
        program: "SOURCE_DATE_EPOCH or git log",
        why: format!("{text:?} is no number of seconds"),
    })
}
