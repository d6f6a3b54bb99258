//! The file system of the machine: one archive that the kernel unpacks into memory.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use conformance::Result;
use conformance::chain::{find_tool, standard_path};
use conformance::error::Context;

use crate::Options;
use crate::cpio::Archive;
use crate::kernel::{Kernel, read_module};
use crate::tools::{Programs, output, test_programs};

/// Our binaries that are no plugins but needed in there.
const OWN: &[&str] = &["demo", "sandbox", "vm-guest"];

/// Binaries beside the plugins that have no business in there.
const NOT_PLUGINS: &[&str] = &["bench", "cnitool", "conformance", "vm"];

/// Tools of this machine that plugins, the demo and tests call. What is not here is not there either.
const TOOLS: &[&str] = &["conntrack", "ip", "nft", "unshare"];

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
    "sbin",
    "sys",
    "tests",
    "tmp",
    "usr",
    "usr/bin",
    "usr/lib",
    "usr/sbin",
    "var",
    "var/lib",
    "var/lib/cni",
    "var/tmp",
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
        for package in &options.tests {
            for (name, program) in test_programs(programs, package)? {
                self.program(&format!("tests/{package}:{name}"), &program)?;
            }
        }
        Ok(())
    }

    fn tools(&mut self) -> Result<()> {
        let tables = ["iptables", "ip6tables"];
        let tables = tables
            .iter()
            .flat_map(|family| TABLES.iter().map(move |kind| format!("{family}{kind}")));
        for tool in TOOLS.iter().map(|tool| (*tool).to_owned()).chain(tables) {
            match find_tool(&tool, &standard_path()) {
                Some(program) => self.tool(&tool, &program)?,
                None => eprintln!("{tool} is not on this machine, so it is not in there"),
            }
        }
        let Ok(extensions) = fs::read_dir(EXTENSIONS) else {
            return Ok(());
        };
        for extension in extensions {
            let path = extension.doing(|| format!("list {EXTENSIONS}"))?.path();
            self.copy(&path)?;
        }
        Ok(())
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
