//! From a plugin's type to its executable.

use cni_types::nearest::did_you_mean;
use nix::unistd::{AccessFlags, access};
use std::path::PathBuf;

/// There is no plugin to execute.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// The type is empty.
    #[error("no plugin name provided")]
    NoName,
    /// The type is a path.
    #[error("invalid plugin name: {0}")]
    Name(String),
    /// There is nowhere to look.
    #[error("no paths provided: set CNI_PATH to the directory of the plugins")]
    NoDirs,
    /// No directory has it.
    #[error(
        "failed to find plugin {name:?} in path [{}]{}{}",
        list(dirs),
        near(name, dirs),
        hint(not_executable)
    )]
    Missing {
        /// The type.
        name: String,
        /// Where it was looked for.
        dirs: Vec<PathBuf>,
        /// Files of that name that may not be executed.
        not_executable: Vec<PathBuf>,
    },
}

/// The first regular file of that name that may be executed. Empty directory names are skipped.
///
/// # Errors
///
/// [`FindError`].
pub fn find(name: &str, dirs: &[PathBuf]) -> Result<PathBuf, FindError> {
    if name.is_empty() {
        return Err(FindError::NoName);
    }
    if name.contains(['/', '\0']) {
        return Err(FindError::Name(name.to_owned()));
    }
    let dirs: Vec<PathBuf> = dirs
        .iter()
        .filter(|dir| !dir.as_os_str().is_empty())
        .cloned()
        .collect();
    if dirs.is_empty() {
        return Err(FindError::NoDirs);
    }
    let mut not_executable = Vec::new();
    for file in dirs
        .iter()
        .map(|dir| dir.join(name))
        .filter(|file| file.is_file())
    {
        if access(&file, AccessFlags::X_OK).is_ok() {
            return Ok(file);
        }
        not_executable.push(file);
    }
    Err(FindError::Missing {
        name: name.to_owned(),
        dirs,
        not_executable,
    })
}

/// A file there whose name is like it.
fn near(name: &str, dirs: &[PathBuf]) -> String {
    let files = dirs.iter().filter_map(|dir| dir.read_dir().ok()).flatten();
    let names: Vec<String> = files
        .filter_map(|file| file.ok()?.file_name().into_string().ok())
        .filter(|file| file != name)
        .collect();
    did_you_mean(name, names.iter().map(String::as_str))
}

fn list(dirs: &[PathBuf]) -> String {
    dirs.iter()
        .map(|dir| dir.display().to_string())
        .collect::<Vec<_>>()
        .join(" ")
}

fn hint(not_executable: &[PathBuf]) -> String {
    match not_executable.first() {
        None => String::new(),
        Some(file) => format!(": {} is not executable", file.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn the_first_executable_file_wins() {
        let tmp = tempfile::tempdir().unwrap();
        let dirs: Vec<PathBuf> = ["a", "b", "c"]
            .iter()
            .map(|name| tmp.path().join(name))
            .collect();
        for dir in &dirs {
            fs::create_dir(dir).unwrap();
        }
        fs::create_dir(dirs[0].join("p")).unwrap();
        symlink("/nonexistent", dirs[0].join("q")).unwrap();
        fs::write(dirs[1].join("p"), "").unwrap();
        fs::set_permissions(dirs[1].join("p"), fs::Permissions::from_mode(0o644)).unwrap();
        let missing = find("p", &dirs).unwrap_err();
        assert!(
            missing.to_string().ends_with("b/p is not executable"),
            "{missing}"
        );
        fs::write(dirs[2].join("portmap"), "").unwrap();
        let said = find("protmap", &dirs).unwrap_err().to_string();
        assert!(said.ends_with("(did you mean \"portmap\"?)"), "{said}");
        fs::write(dirs[2].join("p"), "").unwrap();
        fs::set_permissions(dirs[2].join("p"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find("p", &dirs), Ok(dirs[2].join("p")));
        symlink(dirs[2].join("p"), dirs[1].join("q")).unwrap();
        assert_eq!(find("q", &dirs), Ok(dirs[1].join("q")));
    }

    #[test]
    fn names_and_directories_are_checked() {
        let here = [PathBuf::from("/bin")];
        assert_eq!(find("", &here), Err(FindError::NoName));
        assert_eq!(
            find("../bin/sh", &here),
            Err(FindError::Name("../bin/sh".into()))
        );
        assert_eq!(find("sh", &[]), Err(FindError::NoDirs));
        assert_eq!(find("sh", &[PathBuf::new()]), Err(FindError::NoDirs));
        let missing = find("nope-nope", &here).unwrap_err().to_string();
        assert_eq!(
            missing,
            r#"failed to find plugin "nope-nope" in path [/bin]"#
        );
    }
}
