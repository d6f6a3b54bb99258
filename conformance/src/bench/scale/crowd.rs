//! Many containers on one network of a sandbox's host.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::chain::{Attachment, Network, Runtime};
use crate::error::Result;
use crate::facts::addresses;
use crate::lists::nomad_ports;
use crate::net::{Host, Netns};
use crate::snapshot::{Item, Snapshot};

/// Host port of the first container; the others follow.
pub const FIRST_PORT: usize = 20_000;

/// A container and its attachment.
#[derive(Debug)]
pub struct Member {
    /// Its namespace.
    pub netns: Netns,
    /// What the runtime knows of it.
    pub attachment: Attachment,
}

/// The containers of one network, by the plugins of one directory.
#[derive(Debug)]
pub struct Crowd<'a> {
    pub(super) host: &'a Host,
    pub(super) runtime: Runtime,
    pub(super) network: Network,
    members: Vec<Member>,
    made: usize,
    name: String,
    first_port: usize,
}

/// What became of many commands at once.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Rush {
    /// From the first start to the last end.
    pub took: Duration,
    /// The longest single command along the list.
    pub longest: Duration,
    /// What failed.
    pub failures: Vec<String>,
}

impl<'a> Crowd<'a> {
    /// Nobody yet.
    #[must_use]
    pub fn new(host: &'a Host, runtime: Runtime, network: Network) -> Self {
        Self {
            host,
            runtime,
            network,
            members: Vec::new(),
            made: 0,
            name: "crowd".to_owned(),
            first_port: FIRST_PORT,
        }
    }

    /// Tells several crowds on one host apart: by name, and by ports 1,000 behind those of the crowd whose name
    /// begins with the letter before.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        let letter = name.bytes().next().unwrap_or_default().saturating_sub(b'a');
        self.first_port = FIRST_PORT + 1000 * usize::from(letter);
        name.clone_into(&mut self.name);
        self
    }

    /// The containers that are attached.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Attaches containers until there are `size`, `parallel` at a time.
    ///
    /// # Errors
    /// When a namespace cannot be made; what plugins refuse is in the answer.
    pub fn grow(&mut self, size: usize, parallel: usize) -> Result<Rush> {
        let mut fresh = Vec::new();
        while self.members.len() + fresh.len() < size {
            fresh.push(self.newcomer()?);
        }
        let (rush, fresh) = rush(fresh, parallel, |member| {
            self.runtime
                .add(&self.network, &mut member.attachment)
                .map(drop)
        });
        self.members.extend(fresh);
        Ok(rush)
    }

    /// Detaches the last containers until there are `size`, `parallel` at a time.
    pub fn shrink(&mut self, size: usize, parallel: usize) -> Rush {
        let leaving = self.members.split_off(size.min(self.members.len()));
        let (rush, _) = rush(leaving, parallel, |member| {
            self.runtime.del(&self.network, &member.attachment)
        });
        rush
    }

    /// Checks every container, `parallel` at a time.
    pub fn check(&mut self, parallel: usize) -> Rush {
        let members = std::mem::take(&mut self.members);
        let (rush, members) = rush(members, parallel, |member| {
            self.runtime.check(&self.network, &member.attachment)
        });
        self.members = members;
        rush
    }

    /// A container that is not attached yet. Its name and its port are nobody else's.
    ///
    /// # Errors
    /// When its namespace cannot be made.
    pub fn newcomer(&mut self) -> Result<Member> {
        self.made += 1;
        let netns = self
            .host
            .container(&format!("{}{}", self.name, self.made))?;
        // Ports wrap around long after their first holders have gone.
        let port = self.first_port + self.made % 30_000;
        let port = u16::try_from(port).unwrap_or(u16::MAX);
        let attachment = Attachment::new(&format!("{}{}", self.prefix(), self.made), netns.path())
            .capability("portMappings", nomad_ports(port, 80));
        Ok(Member { netns, attachment })
    }

    /// What no host with these containers may hold: an address that was given twice, a rule or an element
    /// that is there twice, anything of a container that has left.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn judge(&self) -> Result<Vec<String>> {
        let mut faults = doubled(self.addresses());
        let snapshot = Snapshot::take(self.host)?;
        let shared = |item: &&Item| matches!(item, Item::Rule { .. } | Item::Xtables { .. });
        let rules = snapshot.items().iter().filter(shared);
        faults.extend(doubled(rules.map(ToString::to_string).collect()));
        let ids: Vec<&str> = self
            .members
            .iter()
            .map(|member| member.attachment.container_id.as_str())
            .collect();
        let prefix = self.prefix();
        for item in snapshot.mentioning(&prefix) {
            let text = item.to_string();
            let named = text.split(&prefix).skip(1).map(|rest| {
                let digits = rest
                    .find(|c: char| !c.is_ascii_digit())
                    .unwrap_or(rest.len());
                format!("{prefix}{}", rest.get(..digits).unwrap_or_default())
            });
            faults.extend(
                named
                    .filter(|id| !ids.contains(&id.as_str()))
                    .map(|id| format!("{id} has left, but: {item}")),
            );
        }
        Ok(faults)
    }

    /// What every container's id begins with.
    fn prefix(&self) -> String {
        format!("5d3c0ff3-{}-", self.name)
    }

    /// The addresses the containers were given.
    fn addresses(&self) -> Vec<String> {
        let results = self
            .members
            .iter()
            .filter_map(|member| member.attachment.result.as_ref());
        let all = results.flat_map(addresses);
        all.map(|one| format!("address {}", one.address.ip()))
            .collect()
    }
}

/// What is in a list more than once.
fn doubled(mut list: Vec<String>) -> Vec<String> {
    list.sort();
    let twice = list.windows(2).filter_map(|pair| match pair {
        [one, other] if one == other => Some(format!("twice: {one}")),
        _ => None,
    });
    twice.collect()
}

/// Does the same to all, `parallel` at a time.
fn rush<T: Send>(
    items: Vec<T>,
    parallel: usize,
    work: impl Fn(&mut T) -> Result<()> + Sync,
) -> (Rush, Vec<T>) {
    let slots: Vec<Mutex<T>> = items.into_iter().map(Mutex::new).collect();
    let next = AtomicUsize::new(0);
    let outcome = Mutex::new(Rush::default());
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..parallel.max(1) {
            scope.spawn(|| {
                while let Some(slot) = slots.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Ok(mut item) = slot.lock() else { continue };
                    let began = Instant::now();
                    let failure = work(&mut item).err().map(|error| error.to_string());
                    if let Ok(mut outcome) = outcome.lock() {
                        outcome.longest = outcome.longest.max(began.elapsed());
                        outcome.failures.extend(failure);
                    }
                }
            });
        }
    });
    let mut rush = outcome.into_inner().unwrap_or_default();
    rush.took = started.elapsed();
    let items = slots.into_iter().filter_map(|slot| slot.into_inner().ok());
    (rush, items.collect())
}
