//! CNI plugin `tuning`: changes settings of the container's interface and of its network namespace.

mod allowlist;
mod backup;
mod config;
mod error;
mod link;
mod sysctl;

use cni_types::NetnsPath;
use cni_types::conf::ValidAttachments;
use interface::owner;
use netfilter::Owner;
use netlink::{Handle, Link, Netns};
use nix::errno::Errno;
use skel::{Added, DelRequest, NetworkRequest, Plugin, Request, Transaction, log};

use backup::{Backup, Originals};
pub use config::Config;
use config::Settings;
pub use error::Error;
use link::LinkSettings;
use sysctl::Sysctl;

/// The plugin.
pub struct Tuning;

impl Plugin for Tuning {
    const NAME: &'static str = "tuning";

    type Config = Config;
    type Error = Error;

    fn trace(log: fn(std::fmt::Arguments<'_>)) {
        interface::trace(log);
    }

    fn add(request: &Request<Config>) -> Result<Added, Error> {
        let mut result = request.prev_result.clone().ok_or(Error::NoPrevResult)?;
        let settings = Settings::of(request)?;
        if settings.is_empty() {
            return Ok(Added::unchanged(result));
        }
        allowlist::require(&settings.sysctls)?;
        interface::addressing::require_mtu(settings.link.mtu, &result)?;
        let mut transaction = Transaction::new(open(&request.netns)?);
        // What is not there fails here, before the first change.
        let link = find_link(&transaction, request.ifname.as_str(), &settings.link)?;
        let before = sysctl::read(&transaction, &settings.sysctls)?;
        if let Some(link) = &link {
            let now = settings.link.originals(link)?;
            let backup = Backup::new(&request.config.data_dir(), &owner(request));
            remember(&mut transaction, backup, now)?;
        }
        write_sysctls(&mut transaction, settings.sysctls, before)?;
        if let Some(link) = link {
            change_link(&mut transaction, link, settings.link)?;
        }
        settings.link.describe(&mut result, request.ifname.as_str());
        Ok(Added::new(result, transaction))
    }

    /// Puts the interface back. Sysctls stay as they are: those of the interface go with it, and the others may be
    /// what another attachment of the same container needs.
    fn del(request: &DelRequest<Config>) -> Result<(), Error> {
        let owner = owner(request);
        let mut errors = Vec::new();
        for directory in request.config.data_dirs() {
            let backup = Backup::new(&directory, &owner);
            errors.extend(bring_back(request, &backup).err());
        }
        Error::join(errors)
    }

    fn check(request: &Request<Config>) -> Result<(), Error> {
        if request.prev_result.is_none() {
            return Err(Error::NoPrevResult);
        }
        let settings = Settings::of(request)?;
        if settings.is_empty() {
            return Ok(());
        }
        let container = open(&request.netns)?;
        sysctl::verify(&container, &settings.sysctls)?;
        match find_link(&container, request.ifname.as_str(), &settings.link)? {
            Some(link) => settings.link.verify(&link),
            None => Ok(()),
        }
    }

    fn gc(request: &NetworkRequest<Config>) -> Result<(), Error> {
        let ValidAttachments::List(list) = &request.valid else {
            return Ok(());
        };
        let network = request.network.as_str();
        let valid: Vec<Owner> = list
            .iter()
            .map(|a| Owner::new(network, &a.container_id, &a.ifname))
            .collect();
        let mut errors = Vec::new();
        for directory in request.config.data_dirs() {
            errors.extend(backup::collect(&directory, network, &valid).err());
        }
        Error::join(errors)
    }

    fn status(request: &NetworkRequest<Config>) -> Result<(), Error> {
        // The name of the interface has no part in whether the values are good.
        let settings = request.config.settings("", "eth0")?;
        let not_ready = |error| Error::NotReady(Box::new(error));
        if !settings.sysctls.is_empty() {
            allowlist::require(&settings.sysctls).map_err(not_ready)?;
        }
        if !settings.link.is_empty() || request.config.takes_mac() {
            backup::require_writable(&request.config.data_dir()).map_err(not_ready)?;
        }
        Ok(())
    }
}

fn open(netns: &NetnsPath) -> netlink::Result<Handle> {
    Handle::open(&Netns::open(netns.as_path())?)
}

/// The interface, if something is asked of it.
fn find_link(
    container: &Handle,
    ifname: &str,
    settings: &LinkSettings,
) -> Result<Option<Link>, Error> {
    if settings.is_empty() {
        return Ok(None);
    }
    match container.find_link(ifname)? {
        None => Err(Error::NoInterface(ifname.to_owned())),
        found => Ok(found),
    }
}

fn remember(
    transaction: &mut Transaction<Handle>,
    backup: Backup,
    now: Originals,
) -> Result<(), Error> {
    let former = backup.save(now)?;
    transaction.on_failure("put the backup back", move |_| backup.put_back(&former));
    Ok(())
}

fn write_sysctls(
    transaction: &mut Transaction<Handle>,
    sysctls: Vec<Sysctl>,
    before: Vec<Option<String>>,
) -> Result<(), Error> {
    if sysctls.is_empty() {
        return Ok(());
    }
    // Before they are written: of several, the first may be written when the second fails.
    let reverse = sysctls.clone();
    transaction.on_failure("put the sysctls back", move |container: &mut Handle| {
        sysctl::restore(container, &reverse, &before)
    });
    sysctl::write(transaction, &sysctls)
}

fn change_link(
    transaction: &mut Transaction<Handle>,
    link: Link,
    settings: LinkSettings,
) -> Result<(), Error> {
    let now = settings.originals(&link)?;
    let reverse = link.clone();
    transaction.on_failure(
        format!("put the settings of {} back", link.name),
        move |container: &mut Handle| {
            let refusals = now.restore(container, &reverse)?;
            refusals.into_iter().next().map_or(Ok(()), Err)
        },
    );
    settings.apply(transaction, &link)
}

/// Puts the interface back as it is remembered, if it is still there, and forgets it.
fn bring_back(request: &DelRequest<Config>, backup: &Backup) -> Result<(), Error> {
    if let Some(originals) = backup.read()?
        && let Some((container, link)) = still_there(request)?
    {
        for error in originals.restore(&container, &link)? {
            // What the kernel refuses once it will refuse again; a DEL that failed for it would never end.
            if is_passing(&error) {
                return Err(error.into());
            }
            log::warn(format_args!("tuning: {error}; left as it is"));
        }
    }
    backup.remove()
}

/// The interface, unless it or its namespace is gone.
fn still_there(request: &DelRequest<Config>) -> Result<Option<(Handle, Link)>, Error> {
    let Some(netns) = &request.netns else {
        return Ok(None);
    };
    let container = match open(netns) {
        Ok(container) => container,
        Err(error @ (netlink::Error::NetnsGone { .. } | netlink::Error::NotNetns { .. })) => {
            log::info(format_args!("{error}"));
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let link = container.find_link(request.ifname.as_str())?;
    Ok(link.map(|link| (container, link)))
}

/// Whether another attempt may have more luck.
fn is_passing(error: &netlink::Error) -> bool {
    match error.errno() {
        None => true,
        Some(errno) => matches!(
            errno,
            Errno::ENOMEM
                | Errno::ENOBUFS
                | Errno::EAGAIN
                | Errno::EINTR
                | Errno::EMFILE
                | Errno::ENFILE
        ),
    }
}
