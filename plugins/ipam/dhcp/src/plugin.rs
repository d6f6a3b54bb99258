//! The six commands.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cni_types::conf::ValidAttachments;
use cni_types::result::CniResult;
use cni_types::{Args, ContainerId, IfName, NetworkName, Value, json};
use skel::{Added, DelRequest, NetworkRequest, Plugin, Request, Transaction, log};

use crate::books::{self, Books, BooksError, Key, Record};
use crate::caller::Caller;
use crate::config::{self, Config};
use crate::error::Error;
use crate::rpc::{Arguments, Method, read_result};
use crate::seat;

/// How long a DEL or GC waits for the leases when the daemon does not answer.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// The plugin.
pub struct Dhcp;

impl Plugin for Dhcp {
    const NAME: &'static str = "dhcp";

    /// As it came: the daemon gets all of it, and a DEL takes from it what it can.
    type Config = Value;

    type Error = Error;

    fn keys() -> Vec<cni_types::json::Key> {
        config::keys()
    }

    fn add(request: &Request<Value>) -> Result<Added, Error> {
        Config::decode(&request.config, &request.args)?;
        let socket = config::socket(&request.config);
        let arguments = arguments_of(request, Some(request.netns.as_path()));
        let undo = Arguments::clone(&arguments);
        let reply = Caller::connect(&socket)?.call(Method::Allocate, &arguments)?;
        let mut changes = Transaction::new(socket);
        changes.on_failure("give the address back", move |socket: &mut PathBuf| {
            ask(socket, Method::Release, &undo)
        });
        log::info(format_args!("the daemon gave a lease"));
        Ok(Added::new(read_result(&reply), changes))
    }

    fn del(request: &DelRequest<Value>) -> Result<(), Error> {
        let socket = config::socket(&request.config);
        let netns = request.netns.as_ref().map(|netns| netns.as_path());
        let arguments = arguments_of(request, netns);
        let key = key(&request.container_id, &request.network, &request.ifname);
        let attempt = |socket: &Path| ask(socket, Method::Release, &arguments);
        match attempt(&socket) {
            // Another kind of daemon may have taken the place of the one that wrote the lease down.
            Ok(()) if !Books::mention(&books::directory(&socket), &key) => return Ok(()),
            Ok(()) => {}
            Err(error) => log::info(format_args!("{error}; going on without it")),
        }
        without_daemon(
            &socket,
            |books| match books.find(&key) {
                Some(record) => free(books, &record),
                None => Ok(()),
            },
            attempt,
        )
    }

    fn check(request: &Request<Value>) -> Result<(), Error> {
        Config::decode(&request.config, &request.args)?;
        let socket = config::socket(&request.config);
        let arguments = arguments_of(request, Some(request.netns.as_path()));
        let asked = Caller::connect(&socket)?.call(Method::Check, &arguments);
        let reply = match asked {
            // The reference set's daemon knows no other way than to give the lease once more.
            Err(error) if error.is_unknown_method() => {
                Caller::connect(&socket)?.call(Method::Allocate, &arguments)?
            }
            other => other?,
        };
        compare(&read_result(&reply), request.prev_result.as_ref())
    }

    fn gc(request: &NetworkRequest<Value>) -> Result<(), Error> {
        let ValidAttachments::List(valid) = &request.valid else {
            return Ok(());
        };
        let socket = config::socket(&request.config);
        let arguments = Arguments {
            container_id: "gc".to_owned(),
            ifname: "gc".to_owned(),
            stdin: json::to_string(&request.config).into_bytes(),
            ..Arguments::default()
        };
        let attempt = |socket: &Path| ask(socket, Method::Collect, &arguments);
        match attempt(&socket) {
            Ok(()) => return Ok(()),
            Err(error) if error.is_unknown_method() => {
                log::warn(format_args!(
                    "the DHCP daemon at {} is the reference set's, which collects nothing",
                    socket.display()
                ));
                return Ok(());
            }
            Err(error) => log::info(format_args!("{error}; going on without it")),
        }
        let is_stale = |record: &Record| {
            let key = &record.key;
            let is_valid = valid
                .iter()
                .any(|a| a.container_id == key.container_id && a.ifname == key.ifname);
            key.network == request.network.as_str() && !is_valid
        };
        without_daemon(
            &socket,
            |books| {
                let records = books.all()?;
                let mut stale = records.iter().filter(|record| is_stale(record));
                stale.try_for_each(|record| free(books, record))
            },
            attempt,
        )
    }

    fn status(request: &NetworkRequest<Value>) -> Result<(), Error> {
        Config::decode(&request.config, &Args::default())?;
        match Caller::connect(&config::socket(&request.config)) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::NotReady(Box::new(error))),
        }
    }
}

fn arguments_of<N>(request: &Request<Value, N>, netns: Option<&Path>) -> Arguments {
    let pairs = request.args.pairs().iter();
    let args: Vec<String> = pairs.map(|(key, value)| format!("{key}={value}")).collect();
    let netns = netns.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    Arguments {
        container_id: request.container_id.as_str().to_owned(),
        netns: netns
            .map(|path| path.display().to_string())
            .unwrap_or_default(),
        ifname: request.ifname.as_str().to_owned(),
        args: args.join(";"),
        stdin: json::to_string(&request.config).into_bytes(),
    }
}

fn key(container_id: &ContainerId, network: &NetworkName, ifname: &IfName) -> Key {
    Key {
        container_id: container_id.as_str().to_owned(),
        network: network.as_str().to_owned(),
        ifname: ifname.as_str().to_owned(),
    }
}

/// A call that has no result.
fn ask(socket: &Path, method: Method, arguments: &Arguments) -> Result<(), Error> {
    Caller::connect(socket)?.call(method, arguments).map(drop)
}

/// The result must have the leased address.
fn compare(leased: &CniResult, promised: Option<&CniResult>) -> Result<(), Error> {
    let Some(promised) = promised else {
        return Ok(());
    };
    let missing =
        |lease: &&cni_types::result::Ip| promised.ips.iter().all(|ip| ip.address != lease.address);
    match leased.ips.iter().find(missing) {
        None => Ok(()),
        Some(lease) => Err(Error::OtherAddress {
            lease: lease.address,
            result: promised.ips.iter().map(|ip| ip.address.ip()).collect(),
        }),
    }
}

/// Works on the leases of a daemon that does not run. If it turns out that it does, because it was starting, it is asked
/// once more; whatever comes of that, a DEL or GC has done what it could.
fn without_daemon(
    socket: &Path,
    work: impl FnOnce(&Books) -> Result<(), Error>,
    again: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<(), Error> {
    match Books::open(&books::directory(socket), LOCK_WAIT) {
        Ok(None) => Ok(()),
        Ok(Some(books)) => work(&books),
        Err(BooksError::Held { dir, source }) => {
            if let Err(error) = again(socket) {
                log::warn(format_args!("{error}; {} is {source}", dir.display()));
            }
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Gives a lease back and strikes it from the books.
fn free(books: &Books, record: &Record) -> Result<(), Error> {
    let alive = !record.lost && record.boot == crate::clock::boot();
    if alive {
        let ifname = &record.key.ifname;
        let given = seat::give_back("", &record.seat, ifname, &record.client, &record.lease);
        if let Err(error) = given {
            log::warn(format_args!("{error}"));
        }
    }
    Ok(books.remove(&record.key)?)
}
