//! A process in a sandbox that carries out orders, so that two kinds of plugins can take turns, each on a
//! host of its own that keeps its containers.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::crowd::Crowd;
use super::leases::{Filling, leases};
use crate::chain::{Network, Runtime};
use crate::error::{Context, Error, Result};
use crate::net::Host;
use crate::sandbox::Launcher;

/// What a worker can be told to do; one line of JSON each way.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum Order {
    /// Attach containers until there are so many; answers [`super::Rush`].
    Grow {
        /// How many there shall be.
        size: usize,
        /// How many at a time.
        parallel: usize,
    },
    /// Detach containers until there are so many; answers [`super::Rush`].
    Shrink {
        /// How many there shall be.
        size: usize,
        /// How many at a time.
        parallel: usize,
    },
    /// One more container comes and goes; answers [`super::Cycle`].
    Cycle {
        /// A program to run every plugin under.
        wrapper: Vec<String>,
    },
    /// What one more container costs besides time; answers [`super::Counts`].
    Count {
        /// The program that reports memory.
        peak: PathBuf,
    },
    /// How fast packets pass; answers [`super::PacketRates`].
    Packets,
    /// Leases of host-local alone; answers a list of [`super::Cycle`]s for each directory.
    Leases {
        /// The plugin directories to compare.
        plugins: Vec<PathBuf>,
        /// How many leases there shall be.
        count: u32,
        /// How they lie in the range.
        filling: Filling,
        /// How often each directory takes its turn.
        rounds: u32,
    },
    /// The least that one container can cost; answers a list of [`super::Floor`]s.
    Floor {
        /// The floor program.
        program: PathBuf,
        /// The program that does nothing.
        empty: PathBuf,
        /// How often.
        rounds: u32,
    },
    /// Whether the host is as it should be; answers a list of what is not.
    Judge,
}

/// Carries out orders from standard input until it ends.
///
/// # Errors
/// What the sandbox refuses, and orders that are none.
pub fn work(plugins: &Path, list: &str) -> Result<()> {
    let host = Host::new()?;
    let network = Network::parse(list)?;
    let mut crowd = Crowd::new(&host, Runtime::new(plugins), network);
    for line in std::io::stdin().lines() {
        let line = line.doing(|| "read an order")?;
        let order: Order = serde_json::from_str(&line).map_err(|error| malformed(&error))?;
        let answer = match order {
            Order::Grow { size, parallel } => json(&crowd.grow(size, parallel)?),
            Order::Shrink { size, parallel } => json(&crowd.shrink(size, parallel)),
            Order::Cycle { wrapper } => {
                let wrapper: Vec<OsString> = wrapper.into_iter().map(OsString::from).collect();
                json(&crowd.cycle(&wrapper)?)
            }
            Order::Count { peak } => json(&crowd.counts(&peak)?),
            Order::Packets => json(&crowd.packet_rates()?),
            Order::Leases {
                plugins,
                count,
                filling,
                rounds,
            } => json(&leases(&plugins, count, filling, rounds)?),
            Order::Floor {
                program,
                empty,
                rounds,
            } => json(&crowd.floors(&program, &empty, rounds)?),
            Order::Judge => json(&crowd.judge()?),
        }?;
        println!("{answer}");
    }
    Ok(())
}

fn json(answer: &impl Serialize) -> Result<String> {
    serde_json::to_string(answer).map_err(|error| malformed(&error))
}

fn malformed(error: &serde_json::Error) -> Error {
    Error::Malformed {
        what: format!("a message between the benchmark and its worker: {error}"),
    }
}

/// A worker as its employer sees it; it ends when dropped.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts `program` as a worker in a sandbox of its own.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(launcher: &Launcher, program: &Path, plugins: &Path, list: &str) -> Result<Self> {
        let starting = || format!("start a worker for {}", plugins.display());
        let mut child = launcher
            .command(program)
            .arg("worker")
            .arg(plugins)
            .arg(list)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .doing(starting)?;
        let missing = || Error::Missing { what: starting() };
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().ok_or_else(missing)?);
        Ok(Self {
            child,
            orders,
            answers,
        })
    }

    /// Gives an order and waits for the answer.
    ///
    /// # Errors
    /// When the worker has ended, for a reason that it has told on standard error.
    pub fn order<T: DeserializeOwned>(&mut self, order: &Order) -> Result<T> {
        let ended = || Error::Missing {
            what: "an answer of the benchmark's worker".into(),
        };
        let mut orders = self.orders.as_ref().ok_or_else(ended)?;
        writeln!(orders, "{}", json(order)?).doing(|| "give an order")?;
        let mut answer = String::new();
        self.answers
            .read_line(&mut answer)
            .doing(|| "read an answer")?;
        if answer.is_empty() {
            return Err(ended());
        }
        serde_json::from_str(&answer).map_err(|error| malformed(&error))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.orders.take());
        // Its sandbox goes with it, whatever it says at the end.
        let _ = self.child.wait();
    }
}
