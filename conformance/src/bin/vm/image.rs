//! The file system of the machine: one archive that the kernel unpacks into memory.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use conformance::chain::{find_tool, standard_path};
use conformance::error::Context;
use conformance::{Error, Result};

use crate::Options;
use crate::cpio::Archive;
use crate::kernel::{Kernel, read_module};
use crate::tools::{Programs, output, test_programs};

/// Our binaries that are no plugins but needed in there.
const OWN: &[&str] = &["demo", "sandbox", "torture", "vm-guest"];

/// Binaries beside the plugins that have no business in there.
const NOT_PLUGINS: &[&str] = &["bench", "cnitool", "floor", "noop", "peak", "record", "vm"];

/// Tools of this machine that plugins, the demo and tests call.
const TOOLS: &[&str] = &[
    "cat",
    "chmod",
    "conntrack",
    "cp",
    "env",
    "false",
    "grep",
    "head",
    "id",
    "ip",
    "kill",
    "ln",
    "ls",
    "mkdir",
    "mount",
    "mv",
    "nft",
    "nsenter",
    "rm",
    "rmdir",
    "sed",
    "setpriv",
    "sh",
    "sleep",
    "sort",
    "sysctl",
    "tail",
    "test",
    "timeout",
    "touch",
    "tr",
    "true",
    "umount",
    "uname",
    "unshare",
    "wc",
];

/// Where Debian puts the reference set, which tests compare with.
const REFERENCE_SET: &str = "/usr/lib/cni";

/// Its plugins that checks compare with.
const REFERENCE_PLUGINS: &[&str] = &["vrf"];

/// The names of iptables' programs, for each of `iptables` and `ip6tables`.
const TABLES: &[&str] = &[
    "",
    "-save",
    "-restore",
    "-nft",
    "-nft-save",
    "-nft-restore",
    "-legacy",
    "-legacy-save",
    "-legacy-restore",
];

/// Names of protocols and ports, which `nft` prints instead of numbers where it finds them.
const TABLES_OF_NAMES: &[&str] = &["/etc/protocols", "/etc/services"];

/// Where iptables looks for its extensions.
const EXTENSIONS: &str = "/usr/lib/x86_64-linux-gnu/xtables";

const DIRECTORIES: &[&str] = &[
    "bin",
    "dev",
    "etc",
    "etc/cni",
    "lib",
    "modules",
    "opt",
    "opt/cni",
    "opt/cni/bin",
    "proc",
    "root",
    "run",
    "sys",
    "tests",
    "tmp",
    "usr",
    "usr/lib",
    "var",
    "var/lib",
    "var/lib/cni",
    "var/log",
    "var/tmp",
];

/// One directory under all the names that programs are looked for in.
const LINKS: &[(&str, &str)] = &[
    ("sbin", "bin"),
    ("usr/bin", "../bin"),
    ("usr/sbin", "../bin"),
    ("var/run", "../run"),
];

struct Tree {
    archive: Archive<BufWriter<File>>,
    directories: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
}

/// Writes the archive.
pub fn write(options: &Options, programs: &Programs, kernel: &Kernel) -> Result<PathBuf> {
    let path = programs.cache.join("image.cpio");
    let file = File::create(&path).doing(|| format!("create {}", path.display()))?;
    let mut tree = Tree {
        archive: Archive::new(BufWriter::new(file)),
        directories: BTreeSet::new(),
        files: BTreeSet::new(),
    };
    for directory in DIRECTORIES {
        tree.directory(Path::new(directory))?;
    }
    for (link, target) in LINKS {
        tree.archive
            .link(link, target)
            .doing(|| "write the archive")?;
    }
    tree.file("etc/resolv.conf", b"nameserver 192.0.2.53\n")?;
    for name in OWN {
        tree.program(&format!("bin/{name}"), &programs.directory.join(name))?;
    }
    tree.archive
        .link("init", "bin/vm-guest")
        .doing(|| "write the archive")?;
    let plugins = options.plugins.as_ref().unwrap_or(&programs.directory);
    for plugin in plugins_in(plugins)? {
        tree.program_with_libraries(&format!("opt/cni/bin/{}", name_of(&plugin)), &plugin)?;
    }
    for (number, module) in kernel.modules.iter().enumerate() {
        tree.file(
            &format!("modules/{number:03}-{}", name_of(module)),
            &read_module(module)?,
        )?;
    }
    tree.tools()?;
    tree.tests(options, programs)?;
    tree.archive
        .finish()
        .doing(|| format!("write {}", path.display()))?;
    Ok(path)
}

fn plugins_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut plugins = Vec::new();
    for entry in fs::read_dir(directory).doing(|| format!("list {}", directory.display()))? {
        let path = entry
            .doing(|| format!("list {}", directory.display()))?
            .path();
        let name = name_of(&path);
        let ours = OWN.contains(&name.as_str()) || NOT_PLUGINS.contains(&name.as_str());
        if path.is_file() && !name.contains('.') && !ours {
            plugins.push(path);
        }
    }
    plugins.sort();
    Ok(plugins)
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

impl Tree {
    fn tests(&mut self, options: &Options, programs: &Programs) -> Result<()> {
        for plugin in REFERENCE_PLUGINS {
            let program = Path::new(REFERENCE_SET).join(plugin);
            if program.is_file() {
                let path = program.to_string_lossy().into_owned();
                self.program_with_libraries(path.trim_start_matches('/'), &program)?;
            }
        }
        if !options.tests.is_empty() {
            self.directory_of_files(REFERENCE_SET)?;
        }
        for package in &options.tests {
            for (name, program) in test_programs(programs, package)? {
                self.program(&format!("tests/{package}:{name}"), &program)?;
            }
        }
        Ok(())
    }

    fn tools(&mut self) -> Result<()> {
        let mut missing = Vec::new();
        let tables = ["iptables", "ip6tables"];
        let tables = tables
            .iter()
            .flat_map(|family| TABLES.iter().map(move |kind| format!("{family}{kind}")));
        for tool in TOOLS.iter().map(|tool| (*tool).to_owned()).chain(tables) {
            match find_tool(&tool, &standard_path()) {
                Some(program) => self.tool(&tool, &program)?,
                None => missing.push(tool),
            }
        }
        if !missing.is_empty() {
            return Err(Error::Missing {
                what: format!(
                    "on this machine, to put it into the other one: {}",
                    missing.join(", ")
                ),
            });
        }
        for file in TABLES_OF_NAMES {
            if Path::new(file).is_file() {
                self.copy(Path::new(file))?;
            }
        }
        self.directory_of_files(EXTENSIONS)
    }

    /// Many names can stand for one program, which goes by the name it is called by.
    fn tool(&mut self, name: &str, program: &Path) -> Result<()> {
        let real = fs::canonicalize(program).doing(|| format!("find {}", program.display()))?;
        let real_name = name_of(&real);
        self.program_with_libraries(&format!("bin/{real_name}"), &real)?;
        let path = format!("bin/{name}");
        if self.files.insert(PathBuf::from(&path)) {
            self.archive
                .link(&path, &real_name)
                .doing(|| format!("write {path} into the archive"))?;
        }
        Ok(())
    }

    /// The files of a directory of this machine.
    fn directory_of_files(&mut self, directory: &str) -> Result<()> {
        for file in fs::read_dir(directory).doing(|| format!("list {directory}"))? {
            self.copy(&file.doing(|| format!("list {directory}"))?.path())?;
        }
        Ok(())
    }

    /// A file of this machine at its own place.
    fn copy(&mut self, file: &Path) -> Result<()> {
        let bytes = fs::read(file).doing(|| format!("read {}", file.display()))?;
        self.file(file.to_string_lossy().trim_start_matches('/'), &bytes)
    }

    /// A program of our own: static, and without the debugging information that only takes room in memory.
    fn program(&mut self, path: &str, program: &Path) -> Result<()> {
        if self.files.contains(Path::new(path)) {
            return Ok(());
        }
        let stripped = tempfile::NamedTempFile::new().doing(|| "create a temporary file")?;
        let arguments = [
            "--strip-debug".as_ref(),
            "-o".as_ref(),
            stripped.path().as_ref(),
            program.as_ref(),
        ];
        output("strip", &arguments, Path::new("/"))?;
        let bytes = fs::read(stripped.path()).doing(|| format!("read {}", program.display()))?;
        self.file(path, &bytes)
    }

    /// A program of somebody else's with the libraries it loads, where the loader looks for them.
    fn program_with_libraries(&mut self, path: &str, program: &Path) -> Result<()> {
        self.program(path, program)?;
        // A static program has none, and `ldd` calls that a failure.
        let Ok(list) = output("ldd", &[program.as_ref()], Path::new("/")) else {
            return Ok(());
        };
        let list = String::from_utf8_lossy(&list.stdout).into_owned();
        for library in list.split_whitespace().filter(|word| word.starts_with('/')) {
            self.copy(Path::new(library))?;
        }
        Ok(())
    }

    fn file(&mut self, path: &str, bytes: &[u8]) -> Result<()> {
        let path = Path::new(path);
        if !self.files.insert(path.to_owned()) {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.directory(parent)?;
        }
        self.archive
            .file(&path.to_string_lossy(), bytes)
            .doing(|| format!("write {} into the archive", path.display()))
    }

    fn directory(&mut self, path: &Path) -> Result<()> {
        if path.as_os_str().is_empty() || !self.directories.insert(path.to_owned()) {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.directory(parent)?;
        }
        self.archive
            .directory(&path.to_string_lossy())
            .doing(|| format!("write {} into the archive", path.display()))
    }
}
