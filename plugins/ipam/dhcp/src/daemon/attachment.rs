//! One attachment's life: asking for a lease, keeping it, losing it, having it back.

use std::time::Duration;

use netlink::{Handle, Link, MacAddr, NewAddress, NewRoute, PacketSocket, Station};
use skel::log;

use super::closer::Closer;
use crate::books::{Books, Key, Record, Seat};
use crate::clock::Time;
use crate::exchange::{Exchange, Goal, Outgoing, Step, Timing};
use crate::lease::Lease;
use crate::packet::{self, CLIENT_PORT, Client};
use crate::seat;

/// How long servers are asked to extend a lease, with repetitions, before there is a pause.
const ROUND: Duration = Duration::from_secs(15);
/// The shortest pause between two such rounds where the lease leaves room for it (RFC 2131, 4.4.5).
const PAUSE: Duration = Duration::from_secs(60);
/// `RTPROT_KERNEL`: routes that come and go with an address of their own accord.
const BY_KERNEL: u8 = 2;
/// Longer packets hold no DHCP message for us, in bytes.
const PACKET_MAX: usize = 4096;

/// What every attachment needs.
#[derive(Debug)]
pub struct World {
    /// What stands before paths of namespaces.
    pub prefix: String,
    /// How long things are waited for.
    pub timing: Timing,
    /// The leases on disk.
    pub books: Books,
    /// Where sockets go that are of no use any more.
    pub closer: Closer,
}

/// What has become of an attachment.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    /// Nothing that anybody waits for.
    None,
    /// It has its first lease.
    Granted,
    /// It has none, and will have none.
    Failed(String),
    /// Its interface is gone, and its lease is of no use.
    Gone,
}

/// How it stands with the lease.
#[derive(Debug)]
enum State {
    /// There is none yet.
    Asking,
    /// It is in use.
    Bound(Lease),
    /// It has ended, and its address was taken off the interface; with the routes that went with it.
    Lost(Lease, Vec<NewRoute>),
}

/// Packets that are on their way.
#[derive(Debug)]
struct Attempt {
    exchange: Exchange,
    socket: PacketSocket,
}

/// One attachment.
#[derive(Debug)]
pub struct Attachment {
    key: Key,
    seat: Seat,
    client: Client,
    priority: i64,
    state: State,
    attempt: Option<Attempt>,
    wake: Option<Time>,
    /// When the present way of asking comes to an end, and another is due.
    limit: Option<Time>,
    /// Those who wait for its first lease.
    pub waiters: Vec<u64>,
}

impl Attachment {
    /// Begins to ask for a lease.
    pub fn ask(
        world: &World,
        key: Key,
        (seat, handle, link): (Seat, Handle, Link),
        client: Client,
        priority: i64,
        now: Time,
    ) -> netlink::Result<Self> {
        if !link.up {
            handle.set_up(&link)?;
        }
        let goal = Goal::Obtain {
            wanted: None,
            only: false,
        };
        let mut attachment = Self {
            key,
            seat,
            client,
            priority,
            state: State::Asking,
            attempt: None,
            wake: None,
            limit: None,
            waiters: Vec::new(),
        };
        let deadline = now + world.timing.whole;
        attachment.begin(world, (&handle, &link), goal, now, deadline)?;
        Ok(attachment)
    }

    /// Goes on with a lease from the books.
    pub fn take_up(record: Record, now: Time) -> Self {
        let wake = if record.lost {
            Some(now)
        } else {
            record.lease.renew.map(Duration::from_secs)
        };
        Self {
            key: record.key,
            seat: record.seat,
            client: record.client,
            priority: record.priority,
            state: if record.lost {
                State::Lost(record.lease, Vec::new())
            } else {
                State::Bound(record.lease)
            },
            attempt: None,
            wake,
            limit: None,
            waiters: Vec::new(),
        }
    }

    /// Whether it is this interface's.
    pub fn sits_on(&self, seat: &Seat) -> bool {
        // Its hardware address may have been changed since, which changes nothing about the lease.
        self.seat.identity == seat.identity && self.seat.index == seat.index
    }

    /// Whether it has no lease yet.
    pub fn is_asking(&self) -> bool {
        matches!(self.state, State::Asking)
    }

    /// The lease, if it is alive.
    pub fn lease(&self, now: Time) -> Option<&Lease> {
        match &self.state {
            State::Bound(lease) if !lease.is_expired(now) => Some(lease),
            _ => None,
        }
    }

    /// What an ADD answers, if the lease is alive.
    pub fn result(&self, now: Time) -> Option<cni_types::CniResult> {
        self.lease(now).map(|lease| lease.result(self.priority))
    }

    /// Whether its interface is still there.
    pub fn is_there(&self, world: &World) -> netlink::Result<bool> {
        Ok(seat::open(&world.prefix, &self.seat, &self.key.ifname)?.is_some())
    }

    /// The socket on which an answer is expected.
    pub fn socket(&self) -> Option<&PacketSocket> {
        self.attempt.as_ref().map(|attempt| &attempt.socket)
    }

    /// When [`tick`](Self::tick) has something to do.
    pub fn next(&self) -> Option<Time> {
        match &self.attempt {
            Some(attempt) => Some(attempt.exchange.next()),
            None => self.wake,
        }
    }

    fn begin(
        &mut self,
        world: &World,
        (handle, link): (&Handle, &Link),
        goal: Goal,
        now: Time,
        deadline: Time,
    ) -> netlink::Result<()> {
        let socket = handle.packet_socket(link, CLIENT_PORT)?;
        let exchange = Exchange::begin(goal, world.timing, now, deadline);
        self.attempt = Some(Attempt { exchange, socket });
        let step = match &mut self.attempt {
            Some(attempt) => attempt.exchange.tick(now, &self.client),
            None => Step::Wait,
        };
        // The first step of an exchange is a packet.
        if let Step::Send(outgoing) = step {
            self.send(&outgoing);
        }
        Ok(())
    }

    fn send(&self, outgoing: &Outgoing) {
        let Some(socket) = self.socket() else { return };
        // A packet that does not leave is a packet that is lost: it is repeated.
        if let Err(error) = socket.send(MacAddr::new(outgoing.station), &outgoing.packet) {
            log::info(format_args!("{}: cannot send: {error}", self.key));
        }
    }

    fn stop(&mut self, world: &World) {
        if let Some(attempt) = self.attempt.take() {
            world.closer.close(attempt.socket);
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, world: &World, now: Time) -> News {
        if let Some(attempt) = &mut self.attempt {
            let step = attempt.exchange.tick(now, &self.client);
            return self.step(world, step, now);
        }
        match self.wake {
            Some(time) if time <= now => self.start_round(world, now),
            _ => News::None,
        }
    }

    /// Packets have arrived.
    pub fn readable(&mut self, world: &World, now: Time) -> News {
        let mut buffer = [0; PACKET_MAX];
        loop {
            let Some(attempt) = &mut self.attempt else {
                return News::None;
            };
            let (size, mac) = match attempt.socket.receive(&mut buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return News::None,
                Err(error) => {
                    // The link went down or away; the next packet tells.
                    log::debug(format_args!("{}: cannot receive: {error}", self.key));
                    return News::None;
                }
            };
            let bytes = buffer.get(..size).unwrap_or_default();
            let Some(answer) = packet::read(bytes, &self.client, attempt.exchange.xid()) else {
                continue;
            };
            let step = attempt
                .exchange
                .answer(now, &self.client, &answer, mac.octets());
            let news = self.step(world, step, now);
            if news != News::None {
                return news;
            }
        }
    }

    fn step(&mut self, world: &World, step: Step, now: Time) -> News {
        match step {
            Step::Wait => News::None,
            Step::Send(outgoing) => {
                self.send(&outgoing);
                News::None
            }
            Step::Granted(lease) => self.granted(world, lease, now),
            Step::Refused => {
                self.stop(world);
                log::warn(format_args!(
                    "{}: the server does not let it keep its address",
                    self.key
                ));
                self.lose(world, now)
            }
            Step::Unusable(outgoing) => {
                self.send(&outgoing);
                self.stop(world);
                self.failed("the DHCP server gave an address without a subnet mask", now)
            }
            Step::Over => {
                self.stop(world);
                if !self.is_asking() && !self.is_there(world).unwrap_or(true) {
                    return News::Gone;
                }
                self.failed("no DHCP server gave an address in time", now)
            }
        }
    }

    fn failed(&mut self, why: &str, now: Time) -> News {
        if self.is_asking() {
            let place = self.seat.netns.display();
            let ifname = &self.key.ifname;
            return News::Failed(format!("{why} (interface {ifname} of {place})"));
        }
        // Half of what is left, but not in a hurry; nothing if the next way of asking is due.
        let left = self.limit.map_or(PAUSE, |limit| limit.saturating_sub(now));
        self.wake = Some(now + (left / 2).max(PAUSE.min(left)));
        News::None
    }

    /// Begins the next round: another request to extend the lease, or, when it is lost, to have it back.
    fn start_round(&mut self, world: &World, now: Time) -> News {
        self.wake = None;
        let passed = |time: Option<u64>| time.is_some_and(|time| now >= Duration::from_secs(time));
        let (goal, limit) = match &self.state {
            State::Asking => return News::None,
            State::Bound(lease) if passed(lease.expire) => {
                log::warn(format_args!("{}: the lease has expired", self.key));
                return self.lose(world, now);
            }
            State::Bound(lease) => {
                let rebind = passed(lease.rebind);
                let server = (!rebind).then_some((lease.server, lease.server_mac));
                let goal = Goal::Extend {
                    address: lease.address,
                    server,
                };
                (goal, if rebind { lease.expire } else { lease.rebind })
            }
            State::Lost(lease, _) => {
                let goal = Goal::Obtain {
                    wanted: Some(lease.address),
                    only: true,
                };
                (goal, None)
            }
        };
        self.limit = limit.map(Duration::from_secs);
        let deadline = self
            .limit
            .map_or(now + ROUND, |limit| limit.min(now + ROUND));
        match seat::open(&world.prefix, &self.seat, &self.key.ifname) {
            Ok(None) => return News::Gone,
            Ok(Some((handle, link))) => {
                if let Err(error) = self.begin(world, (&handle, &link), goal, now, deadline) {
                    log::warn(format_args!("{}: {error}", self.key));
                }
            }
            Err(error) => log::warn(format_args!("{}: {error}", self.key)),
        }
        match self.attempt {
            Some(_) => News::None,
            None => self.failed("", now),
        }
    }

    fn granted(&mut self, world: &World, lease: Lease, now: Time) -> News {
        self.stop(world);
        let expire = lease.expire.map(|end| end.saturating_sub(lease.since));
        let seconds = expire.map_or("ever".to_owned(), |seconds| format!("{seconds} s"));
        log::info(format_args!(
            "{}: {} is leased from {} for {seconds}",
            self.key,
            lease.network(),
            lease.server
        ));
        let record = Record::new(&self.key, &self.seat, &self.client, self.priority, &lease);
        self.wake = lease.renew.map(Duration::from_secs);
        let before = std::mem::replace(&mut self.state, State::Bound(lease));
        if let State::Lost(old, routes) = &before
            && let Err(error) = self.put_back(world, old, routes)
        {
            log::warn(format_args!("{}: {error}", self.key));
            self.state = before;
            return self.failed("", now);
        }
        if let Err(error) = world.books.write(&record) {
            log::warn(format_args!("{}: {error}", self.key));
            if matches!(before, State::Asking) {
                // A lease that nobody would know of after a restart is not given.
                self.release(world);
                return News::Failed(error.to_string());
            }
        }
        match before {
            State::Asking => News::Granted,
            _ => News::None,
        }
    }

    /// The lease is no more. The address must not be used any longer, as somebody else may have it by now, so it is
    /// taken off the interface; and asked for again, because nothing that the container was told can be changed.
    fn lose(&mut self, world: &World, now: Time) -> News {
        let State::Bound(lease) = std::mem::replace(&mut self.state, State::Asking) else {
            return News::None;
        };
        let (routes, there) = match seat::open(&world.prefix, &self.seat, &self.key.ifname) {
            Ok(Some((handle, link))) => (take_off(&handle, &link, &lease), true),
            Ok(None) => (Vec::new(), false),
            Err(error) => {
                log::warn(format_args!("{}: {error}", self.key));
                (Vec::new(), true)
            }
        };
        let mut record = Record::new(&self.key, &self.seat, &self.client, self.priority, &lease);
        record.lost = true;
        self.state = State::Lost(lease, routes);
        if !there {
            return News::Gone;
        }
        if let Err(error) = world.books.write(&record) {
            log::warn(format_args!("{}: {error}", self.key));
        }
        self.wake = Some(now);
        News::None
    }

    fn put_back(&self, world: &World, lease: &Lease, routes: &[NewRoute]) -> netlink::Result<()> {
        let Some((handle, link)) = seat::open(&world.prefix, &self.seat, &self.key.ifname)? else {
            return Ok(());
        };
        match handle.add_address(&link, &NewAddress::new(lease.network())) {
            Err(error) if !error.is_exists() => return Err(error),
            _ => {}
        }
        let own = || {
            let routes = lease.routes.iter();
            routes.map(|route| {
                let to = ipnetwork::Ipv4Network::new(route.to, route.prefix);
                let to = to.map(|to| to.network()).unwrap_or(route.to);
                let to = ipnetwork::IpNetwork::new(to.into(), route.prefix);
                let new = NewRoute {
                    metric: u32::try_from(self.priority)
                        .ok()
                        .filter(|metric| *metric != 0),
                    ..NewRoute::new(to.unwrap_or(lease.network()), link.index)
                };
                if route.via.is_unspecified() {
                    new
                } else {
                    new.via(route.via.into())
                }
            })
        };
        let routes: Vec<NewRoute> = if routes.is_empty() {
            own().collect()
        } else {
            routes.to_vec()
        };
        for route in routes {
            match handle.add_route(&route) {
                Err(error) if !error.is_exists() => {
                    log::warn(format_args!("{}: {error}", self.key));
                }
                _ => {}
            }
        }
        if let Some(mac) = link.mac {
            let address = lease.address.into();
            handle.announce(&link, mac, &[address], Station::Host)?;
        }
        Ok(())
    }

    /// Gives the lease back, if there is one, and forgets it.
    pub fn release(&mut self, world: &World) {
        self.stop(world);
        if let State::Bound(lease) = &self.state {
            let (seat, client) = (&self.seat, &self.client);
            let ifname = &self.key.ifname;
            match seat::give_back(&world.prefix, seat, ifname, client, lease) {
                Ok(Some(socket)) => world.closer.close(socket),
                Ok(None) => {}
                Err(error) => log::warn(format_args!("{}: {error}", self.key)),
            }
            log::info(format_args!(
                "{}: {} is given back",
                self.key, lease.address
            ));
        }
        self.state = State::Asking;
        self.wake = None;
    }
}

/// Takes a lease's address off the interface, and tells which routes go with it.
fn take_off(handle: &Handle, link: &Link, lease: &Lease) -> Vec<NewRoute> {
    let routes = handle.routes().unwrap_or_default();
    let with_it = routes.iter().filter(|route| {
        let here = route.next_hops.iter().any(|hop| hop.oif == link.index);
        route.dst.is_ipv4() && here && route.protocol != BY_KERNEL
    });
    let with_it = with_it.map(netlink::Route::to_new).collect();
    match handle.delete_address(link, lease.network()) {
        Err(error) if !error.is_not_found() => log::warn(format_args!("{error}")),
        _ => {}
    }
    with_it
}
