//! Network lists out of files.

use cni_types::conf::{ListError, PluginError};
use cni_types::nearest::did_you_mean;
use cni_types::{NetworkList, NetworkName, PluginConf};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A configuration cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file or directory cannot be read.
    #[error("error reading {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is no network list.
    #[error("{}: {source}", path.display())]
    List {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ListError,
    },
    /// A file is no plugin's configuration.
    #[error("{}: {source}", path.display())]
    Plugin {
        /// The file.
        path: PathBuf,
        /// Why.
        source: PluginError,
    },
    /// A list has no plugins, and neither has the folder beside it.
    #[error("{}: no plugin configs found", path.display())]
    NoPlugins {
        /// The file.
        path: PathBuf,
    },
    /// There is nothing to look at.
    #[error("no net configurations found in {}: put a .conflist there, or name another directory in NETCONFPATH", dir.display())]
    NoneFound {
        /// The directory.
        dir: PathBuf,
    },
    /// There are configurations, but not of this network.
    #[error("no net configuration with name {name:?} in {}{}{}", dir.display(), meant(name, known), others(unusable))]
    NotFound {
        /// The network.
        name: String,
        /// The directory.
        dir: PathBuf,
        /// The names of the networks that are there.
        known: Vec<String>,
        /// Files there that could not be loaded; the network may be in one of them.
        unusable: Vec<LoadError>,
    },
}

type Result<T> = std::result::Result<T, LoadError>;

/// The list in a file, with the plugins in the folder beside it that has the network's name,
/// unless the list says `loadOnlyInlinedPlugins`.
///
/// # Errors
///
/// [`LoadError`], also if there are no plugins at all.
pub fn list_from_file(path: &Path) -> Result<NetworkList> {
    let mut list = NetworkList::parse(&read(path)?).map_err(|source| LoadError::List {
        path: path.to_owned(),
        source,
    })?;
    // A name that cannot be a network's must not become part of a path either.
    if !list.load_only_inlined_plugins && NetworkName::new(list.name.as_str()).is_ok() {
        let folder = path.with_file_name(&list.name);
        let plugins: Result<Vec<PluginConf>> = files(&folder, &["conf"])?
            .iter()
            .map(|file| plugin_from_file(file))
            .collect();
        list.append(plugins?);
    }
    if list.plugins.is_empty() {
        return Err(LoadError::NoPlugins {
            path: path.to_owned(),
        });
    }
    Ok(list)
}

/// The single plugin's configuration in a file.
///
/// # Errors
///
/// [`LoadError`].
pub fn plugin_from_file(path: &Path) -> Result<PluginConf> {
    PluginConf::parse(&read(path)?).map_err(|source| LoadError::Plugin {
        path: path.to_owned(),
        source,
    })
}

/// The network of that name out of a directory: the first `.conflist` with it, else the first
/// `.conf` or `.json`, in order of file names.
///
/// A file that cannot be loaded is passed over; it is mentioned if the network is not found.
///
/// # Errors
///
/// [`LoadError::NoneFound`] if there is no file of either kind, else [`LoadError::NotFound`].
pub fn load(dir: &Path, name: &str) -> Result<NetworkList> {
    let all = all(dir)?;
    if all.is_empty() {
        return Err(LoadError::NoneFound {
            dir: dir.to_owned(),
        });
    }
    let mut unusable = Vec::new();
    let mut known = Vec::new();
    for (_, loaded) in all {
        match loaded {
            Ok(list) if list.name == name => return Ok(list),
            Ok(list) => known.push(list.name),
            Err(error) => unusable.push(error),
        }
    }
    Err(LoadError::NotFound {
        name: name.to_owned(),
        dir: dir.to_owned(),
        known,
        unusable,
    })
}

/// Every file of a directory that should hold a network, lists before single configurations, each with what it holds.
///
/// # Errors
///
/// [`LoadError::Read`] if the directory is there and cannot be read.
pub fn all(dir: &Path) -> Result<Vec<(PathBuf, Result<NetworkList>)>> {
    let lists = files(dir, &["conflist"])?.into_iter().map(|path| {
        let list = list_from_file(&path);
        (path, list)
    });
    let singles = files(dir, &["conf", "json"])?.into_iter().map(|path| {
        let list = plugin_from_file(&path).map(NetworkList::from_single);
        (path, list)
    });
    Ok(lists.chain(singles).collect())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|source| LoadError::Read {
        path: path.to_owned(),
        source,
    })
}

/// The files of a directory with one of the extensions, sorted. A directory that is not there
/// has none.
fn files(dir: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    let failed = |source| LoadError::Read {
        path: dir.to_owned(),
        source,
    };
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        // A pipe or a device would keep us waiting.
        let readable = kind.is_file() || kind.is_symlink();
        if readable && has_extension(&entry.path(), extensions) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// The extension is the text from the last dot, even if there is nothing before it.
fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| name.rsplit_once('.'))
        .is_some_and(|(_, extension)| extensions.contains(&extension))
}

/// A name like the one that was asked for, or all of them if they are few.
fn meant(name: &str, known: &[String]) -> String {
    let near = did_you_mean(name, known.iter().map(String::as_str));
    if !near.is_empty() || known.is_empty() || known.len() > 8 {
        return near;
    }
    format!("; the networks there are {}", known.join(", "))
}

fn others(unusable: &[LoadError]) -> String {
    if unusable.is_empty() {
        return String::new();
    }
    let list: Vec<String> = unusable.iter().map(LoadError::to_string).collect();
    format!("; these files there cannot be used: {}", list.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Dir(tempfile::TempDir);

    impl Dir {
        fn new(files: &[(&str, &str)]) -> Self {
            let dir = Dir(tempfile::tempdir().unwrap());
            for (name, text) in files {
                let path = dir.0.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            dir
        }

        fn load(&self, name: &str) -> Result<NetworkList> {
            load(self.0.path(), name)
        }

        fn types(&self, name: &str) -> Vec<String> {
            let list = self.load(name).unwrap_or_else(|error| panic!("{error}"));
            list.plugins
                .iter()
                .map(|plugin| plugin.plugin_type.clone())
                .collect()
        }
    }

    const LIST: &str = r#"{"name":"n","plugins":[{"type":"listed"}]}"#;

    #[test]
    fn lists_come_before_single_files() {
        let single = r#"{"name":"n","type":"single"}"#;
        let dir = Dir::new(&[("1.conf", single), ("2.conflist", LIST)]);
        assert_eq!(dir.types("n"), ["listed"]);
        let dir = Dir::new(&[
            ("1.conf", single),
            ("2.conflist", r#"{"name":"m","plugins":[{"type":"x"}]}"#),
        ]);
        assert_eq!(dir.types("n"), ["single"]);
        let dir = Dir::new(&[
            ("1.json", single),
            ("2.conf", r#"{"name":"n","type":"later"}"#),
        ]);
        assert_eq!(dir.types("n"), ["single"]);
        let dir = Dir::new(&[(".conflist", LIST)]);
        assert_eq!(dir.types("n"), ["listed"]);
    }

    #[test]
    fn a_bad_file_does_not_hide_a_network() {
        let dir = Dir::new(&[("1.conflist", "{"), ("2.conflist", LIST), ("3.conf", "[]")]);
        symlink("/", dir.0.path().join("0.conflist")).unwrap();
        assert_eq!(dir.types("n"), ["listed"]);
        let error = dir.load("m").unwrap_err().to_string();
        assert!(
            error.starts_with("no net configuration with name \"m\" in "),
            "{error}"
        );
        for part in ["0.conflist", "1.conflist", "3.conf"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_name_like_it_is_told() {
        let other = r#"{"name":"office","plugins":[{"type":"x"}]}"#;
        let dir = Dir::new(&[("1.conflist", LIST), ("2.conflist", other)]);
        let said = |name| dir.load(name).unwrap_err().to_string();
        assert!(
            said("offcie").ends_with("(did you mean \"office\"?)"),
            "{}",
            said("offcie")
        );
        assert!(
            said("elsewhere").ends_with("; the networks there are n, office"),
            "{}",
            said("elsewhere")
        );
    }

    #[test]
    fn nothing_to_load() {
        assert!(matches!(
            Dir::new(&[]).load("n"),
            Err(LoadError::NoneFound { .. })
        ));
        assert!(matches!(
            load(Path::new("/nonexistent"), "n"),
            Err(LoadError::NoneFound { .. })
        ));
        let dir = Dir::new(&[("sub/1.conflist", LIST), ("x.CONF", LIST), ("conf", LIST)]);
        assert!(matches!(dir.load("n"), Err(LoadError::NoneFound { .. })));
        assert!(matches!(
            load(Path::new("/dev/null"), "n"),
            Err(LoadError::Read { .. })
        ));
    }

    #[test]
    fn plugins_of_the_folder_come_after_those_of_the_list() {
        let files = [
            ("1.conflist", LIST),
            ("n/20.conf", r#"{"type":"b"}"#),
            ("n/10.conf", r#"{"type":"a"}"#),
            ("n/30.json", r#"{"type":"c"}"#),
        ];
        let dir = Dir::new(&files);
        assert_eq!(dir.types("n"), ["listed", "a", "b"]);
        let cached = NetworkList::parse(dir.load("n").unwrap().bytes()).unwrap();
        assert_eq!(cached.plugins.len(), 3);
        let bare = Dir::new(&[
            ("1.conflist", r#"{"name":"n"}"#),
            ("n/1.conf", r#"{"type":"a"}"#),
        ]);
        assert_eq!(bare.types("n"), ["a"]);
        let only = r#"{"name":"n","loadOnlyInlinedPlugins":"true","plugins":[{"type":"listed"}]}"#;
        let dir = Dir::new(&[("1.conflist", only), ("n/1.conf", "{")]);
        assert_eq!(dir.types("n"), ["listed"]);
    }

    #[test]
    fn a_list_without_any_plugin_or_with_a_bad_folder_is_unusable() {
        for files in [
            &[("1.conflist", r#"{"name":"n"}"#)][..],
            &[("1.conflist", r#"{"name":"n"}"#), ("n/1.json", "{}")],
            &[("1.conflist", LIST), ("n/1.conf", "{}")],
            &[
                ("a/1.conflist", r#"{"name":"../b"}"#),
                ("b/1.conf", r#"{"type":"x"}"#),
            ],
        ] {
            let dir = Dir::new(files);
            assert!(
                list_from_file(&dir.0.path().join(files[0].0)).is_err(),
                "{files:?}"
            );
        }
    }
}
