//! DEL and GC.

use cni_types::conf::ValidAttachments;
use interface::masquerade::{log_warnings, remove_rules};
use interface::{owner, pair};
use netfilter::{Kinds, Netfilter, Owner};
use skel::{DelRequest, Delegate, DelegateError, NetworkRequest};

use crate::config::Config;
use crate::error::Error;

/// Removes everything of the attachment. Each step is taken whatever became of the one before.
///
/// IPAM comes first: a DHCP client says goodbye over the link. The rules go before the pair, with which the routes and
/// the gateway addresses on the host go, too: the kernel frees rules after an RCU grace period and makes whoever closes
/// the packet filter's socket wait for that, which costs nothing while the pair is being removed.
pub fn del(request: &DelRequest<Config>) -> Result<(), Error> {
    let owner = owner(request);
    let mut errors = Vec::new();
    errors.extend(ask(request.ipam.as_ref(), Delegate::del));
    let filter = match remove_rules(&owner, Kinds::MASQUERADE, request.prev_result.as_ref()) {
        Ok(filter) => Some(filter),
        Err(error) => {
            errors.push(error.into());
            None
        }
    };
    let removed = pair::remove(request.netns.as_ref(), &owner);
    errors.extend(removed.err().map(Error::from));
    drop(filter);
    Error::join(errors)
}

fn ask(
    ipam: Option<&Delegate>,
    verb: impl FnOnce(&Delegate) -> Result<(), DelegateError>,
) -> Option<Error> {
    let error = verb(ipam?).err()?;
    Some(interface::Error::from(error).into())
}

/// Removes what belongs to the network and to none of the valid attachments.
pub fn gc(request: &NetworkRequest<Config>) -> Result<(), Error> {
    let mut errors = Vec::new();
    errors.extend(ask(request.ipam.as_ref(), Delegate::gc));
    if let ValidAttachments::List(list) = &request.valid {
        let network = request.network.as_str();
        let valid: Vec<Owner> = list
            .iter()
            .map(|a| Owner::new(network, &a.container_id, &a.ifname))
            .collect();
        errors.extend(pair::collect(network, &valid).into_iter().map(Error::from));
        errors.extend(collect_rules(network, &valid).err());
    }
    Error::join(errors)
}

fn collect_rules(network: &str, valid: &[Owner]) -> Result<(), Error> {
    let mut filter = Netfilter::open()?;
    let collected = filter.collect(network, valid, Kinds::MASQUERADE);
    log_warnings(&mut filter);
    Ok(collected?)
}
