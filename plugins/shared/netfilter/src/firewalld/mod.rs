//! The firewalld backend: container addresses as sources of a zone.
//!
//! A source belongs to the zone and says nothing of a container, so what is found again is found by address. Like
//! the reference set, this changes the running configuration only: `firewall-cmd --reload` forgets it.

mod bus;

use std::net::IpAddr;
use std::time::Duration;

use bus::{Bus, Refused};

use crate::carrier::{Carrier, Context};
use crate::error::{Error, Result};
use crate::intent::{Intent, Kinds};
use crate::netfilter::{ApplyOptions, Hints};
use crate::owner::Owner;

/// Zone of container addresses, unless the configuration names another.
const ZONE: &str = "trusted";
/// The longest wait where the caller names none.
const LIMIT: Duration = Duration::from_secs(10);
/// The longest wait for an answer to "are you there".
const GREETING: Duration = Duration::from_secs(2);

/// The backend.
pub(crate) struct Firewalld;

/// Stands where [`Firewalld`] was not asked for, so that programs which never use it are not linked with D-Bus.
pub(crate) struct Absent;

impl Carrier for Firewalld {
    fn apply(
        &self,
        _: &mut Context<'_>,
        _: &Owner,
        intents: &[Intent],
        options: &ApplyOptions<'_>,
    ) -> Result<()> {
        let sources = sources(intents)?;
        if sources.is_empty() {
            return Ok(());
        }
        let bus = Bus::open(options.timeout)?;
        let mut added: Vec<&Source> = Vec::new();
        for source in &sources {
            match bus.call("addSource", &source.zone, &source.text) {
                Ok(_) => added.push(source),
                Err(Refused::Said(text)) if text.contains("ZONE_ALREADY_SET") => {}
                Err(refused) => {
                    for source in added.into_iter().rev() {
                        // The first error is the one to tell.
                        let _ = bus.call("removeSource", &source.zone, &source.text);
                    }
                    return Err(
                        refused.into_error(&format!("add {} to zone {}", source.text, source.zone))
                    );
                }
            }
        }
        Ok(())
    }

    fn remove(
        &self,
        context: &mut Context<'_>,
        _: &Owner,
        kinds: Kinds,
        hints: &Hints,
    ) -> Result<()> {
        if !kinds.contains(Kinds::ADMIT) || hints.addresses.is_empty() || !bus::exists() {
            return Ok(());
        }
        // Without firewalld there is nothing of it.
        let Ok(bus) = Bus::open(LIMIT) else {
            return Ok(());
        };
        for address in &hints.addresses {
            let source = Source::new(*address, hints.zone.as_deref());
            match bus.call("removeSource", &source.zone, &source.text) {
                Ok(_) => {}
                Err(Refused::Said(text))
                    if text.contains("UNKNOWN_SOURCE") || text.contains("NOT_ENABLED") => {}
                Err(refused) => {
                    let what = format!("remove {} from zone {}", source.text, source.zone);
                    context.warnings.push(refused.into_error(&what).to_string());
                }
            }
        }
        Ok(())
    }

    fn verify(&self, _: &mut Context<'_>, _: &Owner, intents: &[Intent]) -> Result<()> {
        let sources = sources(intents)?;
        if sources.is_empty() {
            return Ok(());
        }
        let bus = Bus::open(LIMIT)?;
        for source in sources {
            let what = format!("source {} of firewalld's zone {}", source.text, source.zone);
            let there = bus.call("querySource", &source.zone, &source.text);
            let there = there.map_err(|refused| refused.into_error(&format!("look for {what}")))?;
            if !there.is_true() {
                return Err(Error::Missing { what });
            }
        }
        Ok(())
    }

    /// Nothing says whose a source is.
    fn collect(&self, _: &mut Context<'_>, _: &str, _: &[Owner], _: Kinds) -> Result<()> {
        Ok(())
    }

    fn status(&self, _: &mut Context<'_>, kinds: Kinds) -> Result<()> {
        match kinds.iter().find(|kind| *kind != Kinds::ADMIT) {
            Some(kind) => Err(unsupported(&kind.to_string())),
            None => Bus::open(GREETING).map(drop),
        }
    }
}

impl Carrier for Absent {
    fn apply(
        &self,
        _: &mut Context<'_>,
        _: &Owner,
        _: &[Intent],
        _: &ApplyOptions<'_>,
    ) -> Result<()> {
        Err(unsupported("this plugin's part"))
    }

    fn remove(&self, _: &mut Context<'_>, _: &Owner, _: Kinds, _: &Hints) -> Result<()> {
        Ok(())
    }

    fn verify(&self, _: &mut Context<'_>, _: &Owner, _: &[Intent]) -> Result<()> {
        Err(unsupported("this plugin's part"))
    }

    fn collect(&self, _: &mut Context<'_>, _: &str, _: &[Owner], _: Kinds) -> Result<()> {
        Ok(())
    }

    fn status(&self, _: &mut Context<'_>, _: Kinds) -> Result<()> {
        Err(unsupported("this plugin's part"))
    }
}

/// Fails if firewalld has no zone of this name.
pub(crate) fn require_zone(zone: &str) -> Result<()> {
    // Any address would do for the question; this one is for documentation (RFC 5737) and belongs to nobody.
    let source = Source::new(IpAddr::from([192, 0, 2, 1]), Some(zone));
    let asked = Bus::open(GREETING)?.call("querySource", &source.zone, &source.text);
    match asked {
        Err(Refused::Said(text)) if text.contains("INVALID_ZONE") => Err(Error::Unavailable {
            what: format!("firewalld's zone {}", source.zone),
            reason: format!(
                "there is none of this name; make it (firewall-cmd --permanent --new-zone={}, then --reload) or name \
                 another in \"firewalldZone\"",
                source.zone
            ),
        }),
        // ADD will tell what else is wrong, with the address that it is about.
        _ => Ok(()),
    }
}

/// One address in one zone.
struct Source {
    zone: String,
    text: String,
}

impl Source {
    fn new(address: IpAddr, zone: Option<&str>) -> Self {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        Self {
            zone: zone.unwrap_or(ZONE).to_owned(),
            text: format!("{address}/{bits}"),
        }
    }
}

fn sources(intents: &[Intent]) -> Result<Vec<Source>> {
    intents
        .iter()
        .map(|intent| match intent {
            Intent::Admit { address, zone, .. } => Ok(Source::new(*address, zone.as_deref())),
            other => Err(unsupported(&other.kind().to_string())),
        })
        .collect()
}

fn unsupported(what: &str) -> Error {
    Error::Unavailable {
        what: format!("{what} with firewalld"),
        reason: "the firewalld backend only admits addresses to a zone; nftables and iptables do the rest".to_owned(),
    }
}
