//! The iptables backend: exactly the chains, rules and comments of the reference set.
//!
//! Additions go through one `iptables-restore --noflush` per family, and only if there is something to add. The rules
//! that admit an address, which is all that most additions are, are made over netlink where the chains are there;
//! what is there is read and removed over netlink. Only tables of legacy iptables, which have no such door, need its
//! own tools for that.

mod admit;
mod claims;
mod confine;
mod decode;
mod encode;
mod family;
mod localnet;
mod masquerade;
mod names;
mod parse;
mod plan;
mod publish;
mod render;
mod rule;
mod script;
mod tag;
mod text;
mod tool;
mod unfinished;
mod variant;
mod verify;
mod view;
mod wanted;
mod write;
mod xt;

pub(crate) use localnet::guard as guard_localnet;

use std::net::IpAddr;

use nix::net::if_::if_nametoindex;

use family::Family;
use plan::Plan;
use script::{Edits, FILTER};
use tool::Purpose;
use variant::{Variant, legacy_tables};
use view::View;
use wanted::Wanted;
use write::Made;

use crate::carrier::{Carrier, Context};
use crate::error::{Error, Result};
use crate::intent::{Intent, Kinds};
use crate::lock::Lock;
use crate::netfilter::{ApplyOptions, Hints};
use crate::nfnl::Socket;
use crate::nft;
use crate::owner::{Holder, Owner};

/// The backend's lock.
const BACKEND: &str = "iptables";

/// The backend.
pub(crate) struct Iptables;

impl Carrier for Iptables {
    fn apply(
        &self,
        context: &mut Context<'_>,
        owner: &Owner,
        intents: &[Intent],
        options: &ApplyOptions<'_>,
    ) -> Result<()> {
        let wanted = wanted::sort(owner, intents)?;
        if wanted.is_empty() {
            return Ok(());
        }
        let lock = Lock::take(BACKEND, options.timeout)?;
        lock.share_with_children()?;
        unfinished::finish(context, &lock)?;
        let variant = Variant::live(context.socket);
        let admitted = admitted(variant, &wanted);
        if admitted.is_empty() {
            return add(context, variant, owner, &wanted, options).map(drop);
        }
        unfinished::begin(&lock, owner, &admitted)?;
        let added = add(context, variant, owner, &wanted, options);
        let comment = owner.comment();
        let tagged = match added {
            Ok(Made::WithOwner) => Ok(()),
            Ok(Made::WithoutOwner) => tag::write(context, &comment, &admitted, tag::Which::All),
            // Should any have stayed, against all efforts, its owner's DEL shall find it.
            Err(_) => tag::write(context, &comment, &admitted, tag::Which::Untagged),
        };
        if let Err(error) = tagged.and_then(|()| unfinished::end(&lock)) {
            // The rules work; whoever writes next tries again to say whose they are.
            context.warnings.push(error.to_string());
        }
        added?;
        let known = nft::know(context, owner, &admitted, options);
        if let Err(error) = known {
            // They pass all the same, only not by the shortest way.
            context
                .warnings
                .push(format!("packets meet one rule after another: {error}"));
        }
        Ok(())
    }

    fn remove(
        &self,
        context: &mut Context<'_>,
        owner: &Owner,
        kinds: Kinds,
        hints: &Hints,
    ) -> Result<()> {
        if kinds.contains(Kinds::ADMIT) {
            unfinished::finish_for(context, |holder| holder.is(owner))?;
        }
        let words = admit::words_of(owner, &hints.addresses);
        take_away(context, kinds, &words, |plan| {
            if kinds.contains(Kinds::PUBLISH) {
                claims::remove(plan, owner, &hints.addresses)?;
            }
            if kinds.contains(Kinds::MASQUERADE) {
                masquerade::remove(plan, owner, &hints.addresses)?;
            }
            if kinds.contains(Kinds::ADMIT) {
                let family = plan.view.family;
                let own: Vec<_> = hints
                    .addresses
                    .iter()
                    .copied()
                    .filter(|ip| Family::of(*ip) == family)
                    .collect();
                admit::remove(plan, owner, &own)?;
            }
            Ok(())
        })
    }

    fn verify(&self, context: &mut Context<'_>, owner: &Owner, intents: &[Intent]) -> Result<()> {
        wanted::sort(owner, intents)?
            .iter()
            .try_for_each(|wanted| verify::verify(context, owner, wanted))
    }

    fn collect(
        &self,
        context: &mut Context<'_>,
        network: &str,
        valid: &[Owner],
        kinds: Kinds,
    ) -> Result<()> {
        if kinds.contains(Kinds::ADMIT) {
            let lost = |holder: &Holder| {
                holder.of_network(network) && !valid.iter().any(|owner| holder.is(owner))
            };
            unfinished::finish_for(context, lost)?;
        }
        let words = admit::words_of_network(network);
        take_away(context, kinds, &words, |plan| {
            if kinds.contains(Kinds::PUBLISH) {
                claims::collect(plan, network, valid)?;
            }
            if kinds.contains(Kinds::MASQUERADE) {
                masquerade::collect(plan, network, valid)?;
            }
            if kinds.contains(Kinds::ADMIT) {
                admit::collect(plan, network, valid)?;
            }
            if kinds.contains(Kinds::CONFINE) {
                confine::collect(plan, |bridge| if_nametoindex(bridge).is_ok())?;
            }
            Ok(())
        })
    }

    fn status(&self, context: &mut Context<'_>, _: Kinds) -> Result<()> {
        let variant = Variant::live(context.socket);
        tool::required(variant, Family::V4, Purpose::Restore)?;
        match variant {
            Variant::Legacy => tool::required(variant, Family::V4, Purpose::Save).map(drop),
            Variant::Nft => Ok(()),
        }
    }
}

/// Whether this host filters forwarded packets with iptables: an accept elsewhere could not lift a DROP of its.
pub(crate) fn forwards(socket: &mut Socket) -> bool {
    let nft = matches!(socket.chain(Family::V4.nfnl(), FILTER, "FORWARD"), Ok(Some(chain)) if chain.hook.is_some());
    nft || legacy_tables(Family::V4)
        .iter()
        .any(|table| table == FILTER)
}

/// Whether a FORWARD chain of either family drops what no rule accepts.
pub(crate) fn forward_is_closed(socket: &mut Socket) -> bool {
    const DROP: u32 = 0;
    Family::ALL.into_iter().any(|family| {
        let chain = socket.chain(family.nfnl(), FILTER, admit::FORWARD);
        matches!(chain, Ok(Some(chain)) if chain.hook.is_some() && chain.policy == Some(DROP))
    })
}

/// Whether the tools to write rules are there.
pub(crate) fn installed(socket: &mut Socket) -> bool {
    tool::find(Variant::live(socket), Family::V4, Purpose::Restore).is_some()
}

/// The admitted addresses whose rules can be marked with their owner.
fn admitted(variant: Variant, wanted: &[Wanted]) -> Vec<IpAddr> {
    match variant {
        Variant::Nft => {
            let admitted = wanted.iter().flat_map(|wanted| &wanted.admit);
            admitted.map(|admit| admit.address).collect()
        }
        Variant::Legacy => Vec::new(),
    }
}

/// Adds what is wanted, planning anew as long as others change the tables in between.
fn add(
    context: &mut Context<'_>,
    variant: Variant,
    owner: &Owner,
    wanted: &[Wanted],
    options: &ApplyOptions<'_>,
) -> Result<Made> {
    let mut connmark = true;
    let mut failed: Option<(Vec<Edits>, Error)> = None;
    for _ in 0..write::ATTEMPTS {
        let edits = plan_all(context, variant, owner, wanted, options, connmark)?;
        match failed {
            // Nobody changed anything since, so trying the same again would fail again.
            Some((before, error)) if before == edits => return Err(error),
            _ => {}
        }
        let made = write::all(context, variant, &edits, &owner.comment());
        let error = match made.and_then(|made| confirm(context, owner, wanted, made)) {
            Ok(made) => return Ok(made),
            Err(error) => error,
        };
        if connmark && write::lacks_connmark(&error) {
            connmark = false;
            context.warnings.push(format!(
                "no connection marks here ({error}): a FORWARD policy of DROP will close published ports"
            ));
        }
        failed = Some((edits, error));
    }
    failed.map_or(Ok(Made::WithOwner), |(_, error)| Err(error))
}

/// Looks whether a tool has done what it says: one that cannot read its input to the end reports success.
fn confirm(
    context: &mut Context<'_>,
    owner: &Owner,
    wanted: &[Wanted],
    made: Made,
) -> Result<Made> {
    if made == Made::WithoutOwner {
        for wanted in wanted {
            verify::verify(context, owner, wanted)?;
        }
    }
    Ok(made)
}

/// The owner's masqueraded addresses.
pub(crate) fn masqueraded(socket: &mut Socket, owner: &Owner) -> Result<Vec<IpAddr>> {
    in_all_tables(socket, &Family::ALL, |plan| {
        masquerade::addresses(plan, owner)
    })
}

/// Network and container id of everyone who has the address masqueraded.
pub(crate) fn masqueraders(
    socket: &mut Socket,
    address: IpAddr,
) -> Result<Vec<(String, Option<String>)>> {
    in_all_tables(socket, &[Family::of(address)], |plan| {
        masquerade::holders(plan, address)
    })
}

/// Looks into the tables of these families in both variants.
fn in_all_tables<T>(
    socket: &mut Socket,
    families: &[Family],
    look: impl Fn(&mut Plan<'_, '_>) -> Result<Vec<T>>,
) -> Result<Vec<T>> {
    let mut all = Vec::new();
    for family in families {
        for variant in Variant::ALL {
            if variant.has_tables(socket, *family)? {
                let mut view = View::new(socket, variant, *family);
                all.extend(look(&mut Plan::new(&mut view))?);
            }
        }
    }
    Ok(all)
}

fn plan_all(
    context: &mut Context<'_>,
    variant: Variant,
    owner: &Owner,
    wanted: &[Wanted],
    options: &ApplyOptions<'_>,
    connmark: bool,
) -> Result<Vec<Edits>> {
    let mut all = Vec::new();
    for wanted in wanted {
        let mut view = View::new(context.socket, variant, wanted.family)
            .only_with(admit::words(&wanted.admit));
        let mut plan = Plan::new(&mut view);
        if !wanted.masquerade.is_empty() {
            masquerade::apply(&mut plan, owner, &wanted.masquerade)?;
        }
        if !wanted.publish.is_empty() {
            publish::apply(&mut plan, owner, &wanted.publish, options, connmark)?;
        }
        if !wanted.admit.is_empty() {
            admit::apply(&mut plan, &wanted.admit, connmark)?;
        }
        for (bridge, policy) in &wanted.confine {
            confine::apply(&mut plan, bridge, *policy)?;
        }
        all.push(plan.edits);
    }
    Ok(all)
}

/// Fails if another live container publishes one of these ports in nf_tables tables of iptables; what a dead one left
/// is removed. Legacy tables can only be read by running a program, which nobody who uses another backend expects.
pub(crate) fn contest(
    context: &mut Context<'_>,
    owner: &Owner,
    intents: &[Intent],
    options: &ApplyOptions<'_>,
) -> Result<()> {
    for wanted in wanted::sort(owner, intents)? {
        take_away_from(context, Variant::Nft, wanted.family, &[], |plan| {
            claims::take(plan, owner, &wanted.publish, options)
        })?;
    }
    Ok(())
}

/// Plans and carries out removals in every family and variant that has tables. Needs no lock: nf_tables removes
/// exactly the rules that were looked at or none, and a chain that somebody has started to use refuses to go.
fn take_away(
    context: &mut Context<'_>,
    kinds: Kinds,
    words: &[Vec<u8>],
    plan: impl Fn(&mut Plan<'_, '_>) -> Result<()>,
) -> Result<()> {
    let ours = Kinds::MASQUERADE | Kinds::PUBLISH | Kinds::ADMIT | Kinds::CONFINE;
    if !kinds.intersects(ours) {
        return Ok(());
    }
    let mut errors = Vec::new();
    for variant in Variant::ALL {
        for family in Family::ALL {
            if !variant.has_tables(context.socket, family)? {
                continue;
            }
            match take_away_from(context, variant, family, words, &plan) {
                // Without its tools nobody can touch a legacy table; a DEL does not fail for that.
                Err(error @ Error::Unavailable { .. }) if variant == Variant::Legacy => {
                    context
                        .warnings
                        .push(format!("{} rules may have stayed: {error}", family.tool()));
                }
                Err(error) => errors.push(error),
                Ok(()) => {}
            }
        }
    }
    Error::join(errors)
}

fn take_away_from(
    context: &mut Context<'_>,
    variant: Variant,
    family: Family,
    words: &[Vec<u8>],
    plan: impl Fn(&mut Plan<'_, '_>) -> Result<()>,
) -> Result<()> {
    let mut failed: Option<(Edits, Error)> = None;
    for _ in 0..write::ATTEMPTS {
        let mut view = View::new(context.socket, variant, family).only_with(words.to_vec());
        let mut planned = Plan::new(&mut view);
        plan(&mut planned)?;
        let edits = planned.edits;
        match failed {
            Some((before, error)) if before == edits => return Err(error),
            _ => {}
        }
        let Err(error) = write::removals(context, variant, &edits) else {
            return Ok(());
        };
        failed = Some((edits, error));
    }
    failed.map_or(Ok(()), |(_, error)| Err(error))
}
