//! `dhcp daemon`: keeps the leases that the plugin is given.

mod attachment;
mod closer;
mod connection;
mod flags;
mod keeper;
mod listen;
mod serve;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use skel::log;

use crate::books::{self, Books, BooksError};
use crate::clock::now;
use attachment::World;
use closer::Closer;
use flags::{FlagError, Flags, USAGE};
use keeper::Keeper;
use listen::Listener;
use serve::Server;

/// How long the daemon waits for a plugin that is at the leases.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why the daemon ends.
#[derive(Debug, thiserror::Error)]
enum DaemonError {
    #[error(transparent)]
    Books(#[from] BooksError),
    #[error("cannot listen at {0}: {1}")]
    Listen(String, io::Error),
    #[error("cannot write {0}: {1}")]
    Pidfile(String, io::Error),
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Runs the daemon until a signal ends it. The leases stay, on disk and in use, for the next one.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let flags = match Flags::parse(arguments) {
        Ok(flags) => flags,
        Err(error) => {
            let help = error == FlagError::Help;
            let text = if help {
                String::new()
            } else {
                format!("dhcp daemon: {error}\n")
            };
            // There is nobody else to tell.
            let _ = write!(io::stderr(), "{text}{USAGE}");
            return ExitCode::from(if help { 0 } else { 2 });
        }
    };
    let mut asked = log::Asked::read(std::env::var("CNI_LOG").ok().as_deref(), None, None);
    // Unlike a plugin it has nobody to answer to, so it always says what it does.
    asked.place.get_or_insert(log::Place::Stderr);
    let context = log::Context {
        plugin: "dhcp".to_owned(),
        command: "daemon".to_owned(),
        ..log::Context::default()
    };
    log::init(Instant::now(), context, &asked);
    match run(&flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::warn(format_args!("{error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(flags: &Flags) -> Result<(), DaemonError> {
    // Held back first, so that no later thread is ended by one.
    let signals = hold_signals()?;
    allow_many_files();
    let path = flags.socket();
    let books = Books::create(&books::directory(&path), PATIENCE)?;
    let pidfile = flags.pidfile.as_deref().map(Pidfile::write).transpose();
    let _pidfile = pidfile.map_err(|(path, error)| DaemonError::Pidfile(path, error))?;
    let listener = Listener::open(&path)
        .map_err(|error| DaemonError::Listen(path.display().to_string(), error))?;
    let world = World {
        prefix: flags.prefix.clone(),
        timing: flags.timing,
        books,
        closer: Closer::start()?,
    };
    let keeper = Keeper::open(world, flags.broadcast, now());
    log::info(format_args!("listening at {}", path.display()));
    Server::new(keeper, listener, signals)?.run()?;
    log::info(format_args!("stopped; the leases stay"));
    Ok(())
}

fn hold_signals() -> io::Result<SignalFd> {
    let mut set = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        set.add(signal);
    }
    set.thread_block()?;
    let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
    Ok(SignalFd::with_flags(&set, flags)?)
}

/// Each ADD that waits for its lease has two files open.
fn allow_many_files() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE)
        && let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, most, most)
    {
        log::debug(format_args!("cannot have more files open: {error}"));
    }
}

/// A file with the process's number, as long as it runs.
struct Pidfile<'a>(&'a Path);

impl<'a> Pidfile<'a> {
    fn write(path: &'a Path) -> Result<Self, (String, io::Error)> {
        std::fs::write(path, std::process::id().to_string())
            .map(|()| Self(path))
            .map_err(|error| (path.display().to_string(), error))
    }
}

impl Drop for Pidfile<'_> {
    fn drop(&mut self) {
        // Somebody may have removed it before.
        let _ = std::fs::remove_file(self.0);
    }
}
