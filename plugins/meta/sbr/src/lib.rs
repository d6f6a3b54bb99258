//! CNI plugin `sbr`: source based routing. Packets from an address of the container's interface leave by that
//! interface, whatever the main routing table says.

mod address;
mod change;
mod check;
mod config;
mod error;
mod plan;
mod state;

use std::time::Duration;

use netlink::{Handle, Link, Locked, NewRule};
use skel::{Added, DelRequest, NetworkRequest, Plugin, Request, Transaction, log};

use address::{Address, of_result};
pub use config::Config;
use config::Mode;
pub use error::Error;
use plan::Removal;
use state::State;

/// The longest wait for another one of us, or of the reference set, at work in the same namespace: both lock its file.
const PATIENCE: Duration = Duration::from_secs(20);

/// The plugin.
pub struct Sbr;

impl Plugin for Sbr {
    const NAME: &'static str = "sbr";

    type Config = Config;
    type Error = Error;

    fn trace(log: fn(std::fmt::Arguments<'_>)) {
        netlink::on_message(log);
    }

    fn add(request: &Request<Config>) -> Result<Added, Error> {
        let result = request.prev_result.clone().ok_or(Error::NoPrevResult)?;
        let mode = request.config.mode()?;
        if result.ips.is_empty() {
            return Err(Error::NoAddresses);
        }
        let ifname = request.ifname.as_str();
        let addresses = of_result(&result, ifname);
        if addresses.is_empty() {
            return Ok(Added::unchanged(result));
        }
        let mut transaction = Transaction::new(Locked::open(request.netns.as_path(), PATIENCE)?);
        let mut state = State::read(&transaction, ifname)?;
        let link = require_link(&state, ifname)?.clone();
        // Of an ADD that was killed, or not followed by a DEL. A rule of nobody's to the table that is given now is not
        // of the reference set: it makes none beside another.
        let earlier = removal(&state, &addresses, None);
        if !earlier.is_empty() {
            for change in earlier.back.into_iter().chain(earlier.gone) {
                change.try_to_make(&mut transaction)?;
            }
            state = State::read(&transaction, ifname)?;
        }
        let changes = plan::add(&state, &link, &addresses, mode);
        for change in changes {
            change.make(&mut transaction)?;
        }
        Ok(Added::new(result, transaction))
    }

    fn del(request: &DelRequest<Config>) -> Result<(), Error> {
        let Some(netns) = &request.netns else {
            return Ok(());
        };
        let container = match Locked::open(netns.as_path(), PATIENCE) {
            Ok(container) => container,
            Err(error @ (netlink::Error::NetnsGone { .. } | netlink::Error::NotNetns { .. })) => {
                log::info(format_args!("{error}"));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let ifname = request.ifname.as_str();
        let result = request.prev_result.clone().unwrap_or_default();
        let state = State::read(&container, ifname)?;
        let addresses = of_result(&result, ifname);
        let removal = removal(&state, &addresses, request.config.mode().ok());
        for change in &removal.back {
            if let Err(error) = change.make_for_good(&container) {
                log::info(format_args!("{error}"));
            }
        }
        let removed = removal.gone.iter();
        let outcomes = removed.map(|change| change.make_for_good(&container));
        Error::join(outcomes.filter_map(Result::err).collect())
    }

    fn check(request: &Request<Config>) -> Result<(), Error> {
        let result = request.prev_result.as_ref().ok_or(Error::NoPrevResult)?;
        let mode = request.config.mode()?;
        let ifname = request.ifname.as_str();
        let addresses = of_result(result, ifname);
        if addresses.is_empty() {
            return Ok(());
        }
        let netns = netlink::Netns::open(request.netns.as_path())?;
        let state = State::read(&Handle::open(&netns)?, ifname)?;
        let link = require_link(&state, ifname)?;
        check::verify(&state, link, &addresses, mode, result)
    }

    /// Nothing is kept outside of the container's namespace, and what is in it goes with it.
    fn gc(_: &NetworkRequest<Config>) -> Result<(), Error> {
        Ok(())
    }

    fn status(request: &NetworkRequest<Config>) -> Result<(), Error> {
        request.config.mode()?;
        if !Handle::host()?.has_rules(false)? {
            return Err(Error::NoRules);
        }
        Ok(())
    }
}

fn require_link<'s>(state: &'s State, ifname: &str) -> Result<&'s Link, Error> {
    let link = state.link.as_ref();
    link.ok_or_else(|| Error::NoInterface(ifname.to_owned()))
}

/// What takes back what was done for the interface before.
fn removal(state: &State, addresses: &[Address], mode: Option<Mode>) -> Removal {
    let rules = state.ours(addresses, mode).into_iter();
    let rules: Vec<NewRule> = rules.filter_map(netlink::Rule::to_new).collect();
    Removal::of(state, &rules, mode)
}
