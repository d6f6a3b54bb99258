//! All attachments of a daemon.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::rc::Rc;

use cni_types::conf::ValidAttachments;
use cni_types::names::{ContainerId, IfName, NetworkName};
use cni_types::{Args, CniResult, Value, json};
use skel::log;

use super::attachment::{Attachment, News, World};
use crate::books::Key;
use crate::clock::{Time, boot};
use crate::config::Config;
use crate::packet::Client;
use crate::rpc::Arguments;
use crate::seat;

/// The most bytes of the attachment's text in a client identifier, which has 255 and a zero before it.
const CLIENT_ID_MAX: usize = 254;

/// What a call came to.
pub type Outcome = Result<CniResult, String>;

/// Keeps the leases.
pub struct Keeper {
    world: World,
    broadcast: bool,
    attachments: HashMap<Rc<Key>, Attachment>,
    /// When which attachment has something to do.
    timers: BTreeSet<(Time, Rc<Key>)>,
    /// The timer of each attachment that has one.
    armed: HashMap<Rc<Key>, Time>,
    /// Those that expect an answer.
    active: BTreeSet<Rc<Key>>,
    /// Answers to those who have waited.
    answers: VecDeque<(u64, Outcome)>,
}

impl Keeper {
    /// Takes the leases up that are in the books, but those whose interface is gone.
    pub fn open(world: World, broadcast: bool, now: Time) -> Self {
        let records = world.books.all().unwrap_or_else(|error| {
            log::warn(format_args!("{error}"));
            Vec::new()
        });
        let mut keeper = Self {
            world,
            broadcast,
            attachments: HashMap::new(),
            timers: BTreeSet::new(),
            armed: HashMap::new(),
            active: BTreeSet::new(),
            answers: VecDeque::new(),
        };
        let boot = boot();
        for record in records {
            let key = Rc::new(record.key.clone());
            let gone = record.boot != boot;
            let attachment = Attachment::take_up(record, now);
            if gone || !attachment.is_there(&keeper.world).unwrap_or(true) {
                log::info(format_args!(
                    "{key}: its interface is gone, and so is its lease"
                ));
                keeper.strike(&key);
                continue;
            }
            log::info(format_args!("{key}: taken up"));
            keeper.attachments.insert(Rc::clone(&key), attachment);
            keeper.arm(&key);
        }
        keeper
    }

    /// `DHCP.Allocate`: the attachment's lease, now or, for the caller with that number, later.
    pub fn allocate(&mut self, caller: u64, arguments: &Arguments, now: Time) -> Option<Outcome> {
        match self.try_allocate(caller, arguments, now) {
            Ok(outcome) => outcome.map(Ok),
            Err(why) => Some(Err(why)),
        }
    }

    fn try_allocate(
        &mut self,
        caller: u64,
        arguments: &Arguments,
        now: Time,
    ) -> Result<Option<CniResult>, String> {
        let config = configuration(arguments)?;
        let key = Rc::new(key(arguments, &config)?);
        let wanted = Config::decode(&config, &Args::parse(&arguments.args));
        let wanted = wanted.map_err(|error| error.to_string())?;
        let netns = Path::new(&arguments.netns);
        let place = seat::find(&self.world.prefix, netns, &key.ifname)
            .map_err(|error| format!("cannot ask for a lease: {error}"))?;
        if let Some(known) = self.attachments.get_mut(&key) {
            if known.sits_on(&place.0) {
                if known.is_asking() {
                    known.waiters.push(caller);
                    return Ok(None);
                }
                if let Some(result) = known.result(now) {
                    return Ok(Some(result));
                }
            }
            // What it had is of no use to the interface that it has now.
            self.forget(&key, "its interface was replaced, or its lease has ended");
        }
        let mac = place.2.mac.ok_or_else(|| {
            format!(
                "cannot ask for a lease: {} has no Ethernet address",
                key.ifname
            )
        })?;
        let client = Client {
            mac: mac.octets(),
            id: client_id(&key, &wanted),
            provide: wanted.provide,
            request: wanted.request,
            // All of a parent's ipvlan links have its hardware address; only a broadcast reaches the one without an IP address.
            broadcast: self.broadcast || place.2.kind.as_deref() == Some("ipvlan"),
        };
        let mut attachment = Attachment::ask(
            &self.world,
            (*key).clone(),
            place,
            client,
            wanted.priority,
            now,
        )
        .map_err(|error| format!("cannot ask for a lease: {error}"))?;
        attachment.waiters.push(caller);
        self.attachments.insert(Rc::clone(&key), attachment);
        self.arm(&key);
        Ok(None)
    }

    /// `DHCP.Release`: gives the attachment's lease back; there need not be one.
    pub fn release(&mut self, arguments: &Arguments) -> Outcome {
        let key = key(arguments, &configuration(arguments)?)?;
        self.forget(&Rc::new(key), "it was detached");
        Ok(CniResult::default())
    }

    /// `DHCP.Check`: the attachment's lease, if it is alive and its interface is there. Asks nobody.
    pub fn check(&self, arguments: &Arguments, now: Time) -> Outcome {
        let key = key(arguments, &configuration(arguments)?)?;
        let known = self.attachments.get(&key);
        let known = known.ok_or_else(|| format!("{key} has no lease"))?;
        let result = known
            .result(now)
            .ok_or_else(|| format!("the lease of {key} has ended, and was not had again so far"))?;
        match known.is_there(&self.world) {
            Ok(true) => Ok(result),
            Ok(false) => Err(format!(
                "{} is gone, and {key} has its lease for nothing",
                key.ifname
            )),
            Err(error) => Err(error.to_string()),
        }
    }

    /// `DHCP.Collect`: gives back the leases of the network that no valid attachment has.
    pub fn collect(&mut self, arguments: &Arguments) -> Outcome {
        let config = configuration(arguments)?;
        let network = network(&config)?;
        let valid = ValidAttachments::decode(&config).map_err(|error| error.to_string())?;
        let ValidAttachments::List(valid) = valid else {
            return Ok(CniResult::default());
        };
        let is_valid = |key: &Key| {
            valid
                .iter()
                .any(|a| a.container_id == key.container_id && a.ifname == key.ifname)
        };
        let of_network = self.attachments.keys();
        let stale: Vec<Rc<Key>> = of_network
            .filter(|key| key.network == network && !is_valid(key))
            .map(Rc::clone)
            .collect();
        for key in stale {
            self.forget(&key, "it is not valid any more");
        }
        Ok(CniResult::default())
    }

    /// A caller does not wait any more. An attachment that nobody waits for is not asked for any longer.
    pub fn abandon(&mut self, caller: u64) {
        self.answers.retain(|(waiter, _)| *waiter != caller);
        let mut deserted = Vec::new();
        for (key, attachment) in &mut self.attachments {
            let before = attachment.waiters.len();
            attachment.waiters.retain(|waiter| *waiter != caller);
            if before > 0 && attachment.waiters.is_empty() && attachment.is_asking() {
                deserted.push(Rc::clone(key));
            }
        }
        for key in deserted {
            self.forget(&key, "nobody waits for it any more");
        }
    }

    /// The next answer to somebody who has waited.
    pub fn answer(&mut self) -> Option<(u64, Outcome)> {
        self.answers.pop_front()
    }

    /// When [`tick`](Self::tick) has something to do.
    pub fn next(&self) -> Option<Time> {
        self.timers.first().map(|(time, _)| *time)
    }

    /// The sockets on which answers are expected.
    pub fn sockets(&self) -> impl Iterator<Item = (&Rc<Key>, BorrowedFd<'_>)> {
        self.active.iter().filter_map(|key| {
            let attachment = self.attachments.get(key)?;
            Some((key, attachment.socket()?.as_fd()))
        })
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Time) {
        while let Some((time, key)) = self.timers.first().cloned() {
            if time > now {
                return;
            }
            self.disarm(&key);
            if let Some(attachment) = self.attachments.get_mut(&key) {
                let news = attachment.tick(&self.world, now);
                self.take(&key, news, now);
            }
        }
    }

    /// Packets have arrived for an attachment.
    pub fn readable(&mut self, key: &Rc<Key>, now: Time) {
        if let Some(attachment) = self.attachments.get_mut(key) {
            let news = attachment.readable(&self.world, now);
            self.take(key, news, now);
        }
    }

    fn take(&mut self, key: &Rc<Key>, news: News, now: Time) {
        match news {
            News::None => {}
            News::Granted => {
                if let Some(attachment) = self.attachments.get_mut(key) {
                    let result = attachment.result(now).unwrap_or_default();
                    let waiters = std::mem::take(&mut attachment.waiters);
                    let answers = waiters
                        .into_iter()
                        .map(|waiter| (waiter, Ok(result.clone())));
                    self.answers.extend(answers);
                }
            }
            News::Failed(why) => return self.forget(key, &why),
            News::Gone => return self.forget(key, "its interface is gone"),
        }
        self.arm(key);
    }

    /// Gives back what an attachment has, and forgets it.
    fn forget(&mut self, key: &Rc<Key>, why: &str) {
        self.disarm(key);
        if let Some(mut attachment) = self.attachments.remove(key) {
            log::info(format_args!("{key}: forgotten: {why}"));
            attachment.release(&self.world);
            let waiters = attachment.waiters.into_iter();
            self.answers
                .extend(waiters.map(|waiter| (waiter, Err(why.to_owned()))));
        }
        self.strike(key);
    }

    fn strike(&self, key: &Key) {
        if let Err(error) = self.world.books.remove(key) {
            log::warn(format_args!("{error}"));
        }
    }

    fn arm(&mut self, key: &Rc<Key>) {
        self.disarm(key);
        let Some(attachment) = self.attachments.get(key) else {
            return;
        };
        if let Some(time) = attachment.next() {
            self.timers.insert((time, Rc::clone(key)));
            self.armed.insert(Rc::clone(key), time);
        }
        if attachment.socket().is_some() {
            self.active.insert(Rc::clone(key));
        }
    }

    fn disarm(&mut self, key: &Rc<Key>) {
        if let Some(time) = self.armed.remove(key) {
            self.timers.remove(&(time, Rc::clone(key)));
        }
        self.active.remove(key);
    }
}

fn configuration(arguments: &Arguments) -> Result<Value, String> {
    json::parse(&arguments.stdin).map_err(|error| format!("error parsing configuration: {error}"))
}

fn network(config: &Value) -> Result<String, String> {
    let name = json::get(config, "name").and_then(Value::as_str);
    let name = NetworkName::new(name.unwrap_or_default()).map_err(|error| error.to_string())?;
    Ok(name.as_str().to_owned())
}

fn key(arguments: &Arguments, config: &Value) -> Result<Key, String> {
    let id =
        ContainerId::new(arguments.container_id.as_str()).map_err(|error| error.to_string())?;
    let ifname = IfName::new(arguments.ifname.as_str()).map_err(|error| error.to_string())?;
    Ok(Key {
        container_id: id.as_str().to_owned(),
        network: network(config)?,
        ifname: ifname.as_str().to_owned(),
    })
}

/// The configuration's (option 61), else the attachment's text behind a zero, which says that it is no hardware address.
/// The end of one that is too long is a digest of all of it, so that no two are the same.
fn client_id(key: &Key, config: &Config) -> Vec<u8> {
    if let Some((_, id)) = config.provide.iter().find(|(code, _)| *code == 61) {
        return id.clone();
    }
    let mut text = key.text();
    if text.len() > CLIENT_ID_MAX {
        let digest = key.digest(32);
        let mut cut = CLIENT_ID_MAX - digest.len();
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        text.truncate(cut);
        text.push_str(&digest);
    }
    [&[0], text.as_bytes()].concat()
}
