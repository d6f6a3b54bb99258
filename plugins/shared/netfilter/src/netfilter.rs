//! The one door for plugins.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use crate::admitted;
use crate::carrier::{Carrier, Context};
use crate::conntrack::Flows;
use crate::error::{Error, Result};
use crate::firewalld::{Absent, Firewalld};
use crate::intent::{Intent, Kinds, PublishedPort};
use crate::iptables::{self, Iptables};
use crate::nfnl::Socket;
use crate::nft::{self, Nftables};
use crate::obstacle;
use crate::owner::{Holder, Owner};

/// Who carries intents out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// Our own nf_tables tables, over netlink.
    Nftables,
    /// The reference set's chains, through `iptables-restore`.
    Iptables,
    /// firewalld, over D-Bus.
    Firewalld,
}

impl Backend {
    /// Every backend, in the order they are searched when something is removed.
    pub const ALL: [Self; 3] = [Self::Nftables, Self::Iptables, Self::Firewalld];

    /// The name used in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nftables => "nftables",
            Self::Iptables => "iptables",
            Self::Firewalld => "firewalld",
        }
    }

    /// The backend with this exact name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|backend| backend.name() == name)
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What `apply` needs to know besides the intents.
pub struct ApplyOptions<'a> {
    /// Whether the holder of a port, publishing to that container address, still lives. A dead holder's claim is
    /// taken over, a live one's is an error. Asked only when there is a conflict. The holder's container id may be cut.
    pub alive: &'a dyn Fn(&Holder, IpAddr) -> bool,
    /// The longest wait for locks and for concurrent writers.
    pub timeout: Duration,
}

impl Default for ApplyOptions<'_> {
    /// Every holder counts as alive; 20 seconds.
    fn default() -> Self {
        Self {
            alive: &|_, _| true,
            timeout: Duration::from_secs(20),
        }
    }
}

/// What a caller of `remove` happens to know. Everything may be empty; it only helps to find old objects that carry
/// no owner.
#[derive(Debug, Clone, Default)]
pub struct Hints {
    /// The container's addresses.
    pub addresses: Vec<IpAddr>,
    /// The bridge it was attached to.
    pub bridge: Option<String>,
    /// The ports it had published.
    pub ports: Vec<PublishedPort>,
    /// The zone its addresses were put into (firewalld).
    pub zone: Option<String>,
    /// Nothing of this is known, so whole sets are searched for what names the owner and has no record.
    pub search: bool,
}

/// The packet filter of one network namespace.
pub struct Netfilter {
    socket: Socket,
    warnings: Vec<String>,
    firewalld: &'static dyn Carrier,
}

impl Netfilter {
    /// Opens the packet filter of the network namespace the calling thread is in.
    pub fn open() -> Result<Self> {
        Ok(Self {
            socket: Socket::open()?,
            warnings: Vec::new(),
            firewalld: &Absent,
        })
    }

    /// Makes firewalld one of the backends. Programs that do not say so are not linked with D-Bus.
    #[must_use]
    pub fn with_firewalld(mut self) -> Self {
        self.firewalld = &Firewalld;
        self
    }

    /// Which backend to use: the requested one, or what fits this host and these kinds best.
    ///
    /// Admitting goes to firewalld where it answers, and to iptables where the host forwards by an iptables chain,
    /// because an accept in another table cannot lift its DROP. Everything else goes to nftables where the kernel
    /// has it, else to iptables.
    pub fn choose(&mut self, requested: Option<Backend>, kinds: Kinds) -> Result<Backend> {
        if let Some(backend) = requested {
            return Ok(backend);
        }
        let filters = kinds.intersects(Kinds::ADMIT | Kinds::CONFINE);
        if filters && self.status(Backend::Firewalld, Kinds::ADMIT).is_ok() {
            return Ok(Backend::Firewalld);
        }
        let has_iptables = iptables::installed(&mut self.socket);
        let filtered_by_iptables = filters && iptables::forwards(&mut self.socket);
        if has_iptables && (filtered_by_iptables || !self.has_nftables(kinds)) {
            return Ok(Backend::Iptables);
        }
        if filtered_by_iptables && self.forward_is_closed() {
            return Err(Error::Unavailable {
                what: "a way through the FORWARD chain".to_owned(),
                reason: "its policy is DROP, and the tool to add rules there is not installed; install the \
                         package iptables"
                    .to_owned(),
            });
        }
        if filtered_by_iptables {
            self.warnings.push(
                "this host filters forwarded packets with iptables, but the tool to add rules there is not \
                 installed; the policy of its FORWARD chain decides whether container traffic passes"
                    .into(),
            );
        }
        Ok(Backend::Nftables)
    }

    /// Whether the kernel has nftables for these kinds. A message that is lost is no answer, so it asks once more.
    fn has_nftables(&mut self, kinds: Kinds) -> bool {
        match self.status(Backend::Nftables, kinds) {
            Ok(()) => true,
            Err(Error::Unavailable { .. }) => false,
            Err(_) => self.status(Backend::Nftables, kinds).is_ok(),
        }
    }

    /// Whether the policy of an iptables FORWARD chain is DROP: then only a rule in that very chain lets container
    /// traffic through. (Of legacy tables this cannot be told without their tool.)
    pub fn forward_is_closed(&mut self) -> bool {
        iptables::forward_is_closed(&mut self.socket)
    }

    /// Chains of others that drop forwarded packets unless their own rules accept them: no rule of ours can lift that.
    /// Each as `nft` names it: family, table, chain. (Legacy tables are not among them.)
    pub fn obstacles(&mut self) -> Vec<String> {
        obstacle::chains(&mut self.socket)
    }

    /// Makes everything wanted for the owner, or nothing. Repeating it replaces what the owner had of these kinds.
    pub fn apply(
        &mut self,
        backend: Backend,
        owner: &Owner,
        intents: &[Intent],
        options: &ApplyOptions<'_>,
    ) -> Result<()> {
        self.contest(backend, owner, intents, options)?;
        self.carrier(backend)
            .apply(&mut self.context(), owner, intents, options)
    }

    /// Removes all that the owner has of these kinds, in every backend, the reference set's own objects included.
    /// All backends are tried; their errors come together.
    pub fn remove(&mut self, owner: &Owner, kinds: Kinds, hints: &Hints) -> Result<()> {
        let mut errors = Vec::new();
        if kinds.contains(Kinds::ADMIT) {
            // Looked up before anything is removed, because the answer is in what the other kinds have.
            let addresses = admitted::ending(&mut self.context(), owner, &hints.addresses);
            let hints = Hints {
                addresses,
                ..hints.clone()
            };
            errors.extend(self.remove_kinds(owner, Kinds::ADMIT, &hints).err());
        }
        errors.extend(
            self.remove_kinds(owner, kinds.without(Kinds::ADMIT), hints)
                .err(),
        );
        Error::join(errors)
    }

    fn remove_kinds(&mut self, owner: &Owner, kinds: Kinds, hints: &Hints) -> Result<()> {
        if kinds == Kinds::default() {
            return Ok(());
        }
        self.in_every_backend(|carrier, context| carrier.remove(context, owner, kinds, hints))
    }

    /// Fails with the first thing that `apply` made and that is gone. Changes nothing.
    pub fn verify(&mut self, backend: Backend, owner: &Owner, intents: &[Intent]) -> Result<()> {
        self.carrier(backend)
            .verify(&mut self.context(), owner, intents)
    }

    /// As [`verify`](Self::verify), where a configuration may leave the backend open: without a requested one
    /// it is enough that any backend has everything. What fitted the host when the container came need not be
    /// what fits it today.
    pub fn verify_any(
        &mut self,
        requested: Option<Backend>,
        kinds: Kinds,
        owner: &Owner,
        intents: &[Intent],
    ) -> Result<()> {
        let chosen = self.choose(requested, kinds)?;
        let Err(error) = self.verify(chosen, owner, intents) else {
            return Ok(());
        };
        let mut others = Backend::ALL
            .into_iter()
            .filter(|other| requested.is_none() && *other != chosen);
        if others.any(|other| self.verify(other, owner, intents).is_ok()) {
            return Ok(());
        }
        Err(error)
    }

    /// Removes, in every backend, what belongs to the network but to none of these owners.
    pub fn collect(&mut self, network: &str, valid: &[Owner], kinds: Kinds) -> Result<()> {
        self.in_every_backend(|carrier, context| carrier.collect(context, network, valid, kinds))
    }

    /// Fails when `apply` of these kinds would.
    pub fn status(&mut self, backend: Backend, kinds: Kinds) -> Result<()> {
        self.carrier(backend).status(&mut self.context(), kinds)
    }

    /// Fails when firewalld has no zone of this name, or does not answer.
    pub fn require_zone(&self, zone: &str) -> Result<()> {
        crate::firewalld::require_zone(zone)
    }

    /// Drops packets for 127.0.0.0/8 that come in on any interface but `lo`. Call it before switching `route_localnet`
    /// on, which would open the host's own loopback services to that link.
    pub fn guard_localnet(&mut self) -> Result<()> {
        if crate::nft::is_present(&mut self.socket)? {
            crate::nft::guard_localnet(&mut self.context())
        } else {
            iptables::guard_localnet(&mut self.context())
        }
    }

    /// Deletes the connection tracking entries of published UDP ports and no others, so that clients which keep
    /// sending reach whoever has the port now. Returns how many there were. Ports of other protocols need none of
    /// this and are skipped.
    pub fn forget_udp(&mut self, ports: &[PublishedPort], flows: Flows<'_>) -> Result<usize> {
        crate::conntrack::forget(&mut self.socket, ports, flows)
    }

    /// What went less well than it could in the calls so far, for a log. Empties the list.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    fn carrier(&self, backend: Backend) -> &'static dyn Carrier {
        match backend {
            Backend::Nftables => &Nftables,
            Backend::Iptables => &Iptables,
            Backend::Firewalld => self.firewalld,
        }
    }

    /// Ports are claimed across backends: those of the others are asked as well.
    fn contest(
        &mut self,
        backend: Backend,
        owner: &Owner,
        intents: &[Intent],
        options: &ApplyOptions<'_>,
    ) -> Result<()> {
        let ports: Vec<_> = intents.iter().filter_map(Intent::unconditional).collect();
        if ports.is_empty() {
            return Ok(());
        }
        match backend {
            Backend::Nftables => iptables::contest(&mut self.context(), owner, &ports, options),
            _ => nft::contest(&mut self.context(), owner, &ports, options),
        }
    }

    fn context(&mut self) -> Context<'_> {
        Context {
            socket: &mut self.socket,
            warnings: &mut self.warnings,
        }
    }

    fn in_every_backend(
        &mut self,
        step: impl Fn(&dyn Carrier, &mut Context<'_>) -> Result<()>,
    ) -> Result<()> {
        let tried = Backend::ALL
            .into_iter()
            .map(|backend| step(self.carrier(backend), &mut self.context()));
        Error::join(tried.filter_map(Result::err).collect())
    }
}
