//! An exchange with DHCP servers, from its first packet to its outcome (RFC 2131, 4.4), without a socket or a clock.

use std::net::Ipv4Addr;
use std::time::Duration;

use dhcproto::v4::MessageType;

use crate::clock::Time;
use crate::lease::Lease;
use crate::packet::{Answer, Client, Purpose, message, packet, transaction_id};

/// How long the answer to a first packet is waited for. Short, because a link that was set up a moment ago is likely to
/// lose it: the other end may not forward yet.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// The same for a request of a client that has an address and all the time of the world.
const EXTEND_WAIT: Duration = Duration::from_secs(1);
/// Where the server's hardware address is not known.
const EVERYBODY: [u8; 6] = [0xff; 6];

/// What is to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// An address.
    Obtain {
        /// One that would be welcome.
        wanted: Option<Ipv4Addr>,
        /// Whether no other is.
        only: bool,
    },
    /// More time for an address.
    Extend {
        /// The address.
        address: Ipv4Addr,
        /// Its server and the hardware address that leads there; without, any server is asked.
        server: Option<(Ipv4Addr, [u8; 6])>,
    },
}

/// How long things are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// For the answer to a request, with repetitions, before servers are looked for anew.
    pub answer: Duration,
    /// The longest pause between two packets.
    pub pause: Duration,
    /// For an address altogether.
    pub whole: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(10),
            pause: Duration::from_secs(62),
            whole: Duration::from_secs(208),
        }
    }
}

/// A packet to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The station on the link.
    pub station: [u8; 6],
    /// The packet.
    pub packet: Vec<u8>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing before [`Exchange::next`].
    Wait,
    /// Send this.
    Send(Outgoing),
    /// A lease was granted.
    Granted(Lease),
    /// A server says that the address cannot be kept.
    Refused,
    /// A server gave an address without what is needed to use it, and should have it back.
    Unusable(Outgoing),
    /// Nobody answered in time.
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Looking for servers, or asking to keep the address.
    Asking,
    /// Taking an offer.
    Selecting {
        address: Ipv4Addr,
        server: Ipv4Addr,
        until: Time,
    },
}

/// An exchange that goes on.
#[derive(Debug)]
pub struct Exchange {
    goal: Goal,
    timing: Timing,
    phase: Phase,
    xid: u32,
    begun: Time,
    /// When the request was first sent that the next grant answers.
    asked: Time,
    wait: Duration,
    next: Time,
    deadline: Time,
}

impl Exchange {
    /// Begins one; the first [`tick`](Self::tick) sends the first packet. It is over at `deadline`.
    pub fn begin(goal: Goal, timing: Timing, now: Time, deadline: Time) -> Self {
        Self {
            goal,
            timing,
            phase: Phase::Asking,
            xid: transaction_id(),
            begun: now,
            asked: now,
            wait: match goal {
                Goal::Obtain { .. } => FIRST_WAIT,
                Goal::Extend { .. } => EXTEND_WAIT,
            }
            .min(timing.answer),
            next: now,
            deadline,
        }
    }

    /// The number by which answers to it are known.
    pub fn xid(&self) -> u32 {
        self.xid
    }

    /// When [`tick`](Self::tick) has something to do.
    pub fn next(&self) -> Time {
        self.next.min(self.deadline)
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Time, client: &Client) -> Step {
        if now >= self.deadline {
            return Step::Over;
        }
        if now < self.next {
            return Step::Wait;
        }
        if matches!(self.phase, Phase::Selecting { until, .. } if now >= until) {
            self.phase = Phase::Asking;
            self.wait = FIRST_WAIT;
        }
        self.pause(now);
        Step::Send(self.packet(now, client))
    }

    /// A server has answered.
    pub fn answer(&mut self, now: Time, client: &Client, answer: &Answer, mac: [u8; 6]) -> Step {
        match (self.phase, self.goal) {
            (Phase::Asking, Goal::Obtain { wanted, only }) => {
                let fits = !only || wanted == Some(answer.address);
                if answer.kind != MessageType::Offer || answer.address.is_unspecified() || !fits {
                    return Step::Wait;
                }
                self.phase = Phase::Selecting {
                    address: answer.address,
                    server: answer.server,
                    until: now + self.timing.answer,
                };
                self.asked = now;
                self.wait = FIRST_WAIT.min(self.timing.answer);
                self.pause(now);
                Step::Send(self.packet(now, client))
            }
            (Phase::Selecting { server, .. }, _) if server != answer.server => Step::Wait,
            (Phase::Selecting { .. }, _) => match answer.kind {
                MessageType::Ack if !answer.address.is_unspecified() => {
                    self.granted(client, answer, mac)
                }
                MessageType::Nak => {
                    // It changed its mind. To ask again at once would most likely go round in a circle.
                    self.phase = Phase::Asking;
                    self.wait = self.wait.max(EXTEND_WAIT);
                    self.pause(now);
                    Step::Wait
                }
                _ => Step::Wait,
            },
            (Phase::Asking, Goal::Extend { address, server }) => {
                if server.is_some_and(|(server, _)| server != answer.server) {
                    return Step::Wait;
                }
                match answer.kind {
                    // Another address than the one that the container has is no answer to this.
                    MessageType::Ack if answer.address == address => {
                        self.granted(client, answer, mac)
                    }
                    MessageType::Nak => Step::Refused,
                    _ => Step::Wait,
                }
            }
        }
    }

    fn granted(&self, client: &Client, answer: &Answer, mac: [u8; 6]) -> Step {
        match Lease::granted(answer, mac, self.asked) {
            Some(lease) => Step::Granted(lease),
            None => Step::Unusable(release(client, answer.address, answer.server, mac)),
        }
    }

    /// The next packet goes out after the present wait, give or take a tenth, and the wait behind it is twice as long.
    fn pause(&mut self, now: Time) {
        let spread = 0.9 + f64::from(transaction_id() % 1024) / 5120.0;
        self.next = now + self.wait.mul_f64(spread);
        self.wait = (self.wait * 2).min(self.timing.pause);
    }

    fn packet(&self, now: Time, client: &Client) -> Outgoing {
        let (unset, everybody) = (Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST);
        let (purpose, from, to, station) = match (self.phase, self.goal) {
            (
                Phase::Selecting {
                    address, server, ..
                },
                _,
            ) => {
                let purpose = Purpose::Select { address, server };
                (purpose, unset, everybody, EVERYBODY)
            }
            (Phase::Asking, Goal::Obtain { wanted, .. }) => {
                let purpose = Purpose::Discover { wanted };
                (purpose, unset, everybody, EVERYBODY)
            }
            (Phase::Asking, Goal::Extend { address, server }) => {
                let (to, station) = server.unwrap_or((everybody, EVERYBODY));
                (Purpose::Extend { address }, address, to, station)
            }
        };
        let seconds = u16::try_from((now - self.begun).as_secs()).unwrap_or(u16::MAX);
        Outgoing {
            station,
            packet: packet(from, to, &message(client, self.xid, seconds, purpose)),
        }
    }
}

/// The packet that gives an address back: from that address to its server (RFC 2131, 4.4.4 and 4.4.6).
pub fn release(client: &Client, address: Ipv4Addr, server: Ipv4Addr, mac: [u8; 6]) -> Outgoing {
    let message = message(
        client,
        transaction_id(),
        0,
        Purpose::Release { address, server },
    );
    let known = mac != [0; 6];
    Outgoing {
        station: if known { mac } else { EVERYBODY },
        packet: packet(address, server, &message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dhcproto::v4::{DhcpOption, DhcpOptions};

    const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn client() -> Client {
        Client {
            mac: [2, 0, 0, 0, 0, 1],
            id: b"\0id".to_vec(),
            provide: Vec::new(),
            request: vec![3, 1],
            broadcast: false,
        }
    }

    fn answer(kind: MessageType, server: Ipv4Addr, address: Ipv4Addr) -> Answer {
        let mask = DhcpOption::SubnetMask(Ipv4Addr::new(255, 255, 255, 0));
        Answer {
            kind,
            server,
            address,
            options: std::iter::once(mask).collect::<DhcpOptions>(),
        }
    }

    fn at(milliseconds: u64) -> Time {
        Duration::from_millis(1_000_000 + milliseconds)
    }

    fn obtain() -> Exchange {
        let goal = Goal::Obtain {
            wanted: None,
            only: false,
        };
        Exchange::begin(goal, Timing::default(), at(0), at(208_000))
    }

    fn sent(step: Step) -> Outgoing {
        match step {
            Step::Send(outgoing) => outgoing,
            other => panic!("{other:?}"),
        }
    }

    /// Option 53 of a packet: it stands where its code does, as options are in order and ours are short.
    fn kind(outgoing: &Outgoing) -> u8 {
        let options = &outgoing.packet[28 + 240..];
        let at = options.windows(2).position(|pair| pair == [53, 1]).unwrap();
        options[at + 2]
    }

    #[test]
    fn repetitions_come_soon_and_then_ever_later() {
        let (mut exchange, client) = (obtain(), client());
        let mut times = Vec::new();
        loop {
            let now = exchange.next();
            match exchange.tick(now, &client) {
                Step::Send(packet) => {
                    assert_eq!((packet.station, kind(&packet)), (EVERYBODY, 1));
                    times.push((now - at(0)).as_secs_f64());
                }
                Step::Over => break,
                other => panic!("{other:?}"),
            }
        }
        assert!(
            times[0] == 0.0 && times[1] < 0.3 && times[2] < 1.0,
            "{times:?}"
        );
        assert!((8..15).contains(&times.len()), "{times:?}");
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| *gap < 70.0), "{gaps:?}");
    }

    #[test]
    fn an_offer_is_taken_and_only_its_server_grants_it() {
        let (mut exchange, client) = (obtain(), client());
        sent(exchange.tick(at(0), &client));
        let offer = answer(MessageType::Offer, SERVER, OURS);
        let request = sent(exchange.answer(at(10), &client, &offer, [2; 6]));
        assert_eq!(kind(&request), 3);
        let other = answer(MessageType::Ack, Ipv4Addr::new(10, 0, 0, 9), OURS);
        assert_eq!(exchange.answer(at(20), &client, &other, [2; 6]), Step::Wait);
        // The request is lost, and repeated.
        assert_eq!(kind(&sent(exchange.tick(exchange.next(), &client))), 3);
        let granted = answer(MessageType::Ack, SERVER, OURS);
        match exchange.answer(at(900), &client, &granted, [4; 6]) {
            Step::Granted(lease) => {
                assert_eq!(
                    (lease.address, lease.server, lease.server_mac),
                    (OURS, SERVER, [4; 6])
                );
                assert_eq!(lease.since, 1000, "since it was first asked for");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_server_that_falls_silent_or_refuses_is_not_the_end() {
        let (mut exchange, client) = (obtain(), client());
        sent(exchange.tick(at(0), &client));
        let offer = answer(MessageType::Offer, SERVER, OURS);
        sent(exchange.answer(at(10), &client, &offer, [2; 6]));
        assert_eq!(kind(&sent(exchange.tick(at(10_020), &client))), 1);
        sent(exchange.answer(at(10_030), &client, &offer, [2; 6]));
        let refusal = answer(MessageType::Nak, SERVER, Ipv4Addr::UNSPECIFIED);
        assert_eq!(
            exchange.answer(at(10_040), &client, &refusal, [2; 6]),
            Step::Wait
        );
        assert!(exchange.next() > at(10_500), "not at once");
        assert_eq!(kind(&sent(exchange.tick(exchange.next(), &client))), 1);
    }

    #[test]
    fn a_renewal_goes_to_its_server_and_a_rebinding_to_all() {
        let client = client();
        let extend = |server| {
            let goal = Goal::Extend {
                address: OURS,
                server,
            };
            Exchange::begin(goal, Timing::default(), at(0), at(60_000))
        };
        let mut renewal = extend(Some((SERVER, [4; 6])));
        let request = sent(renewal.tick(at(0), &client));
        assert_eq!(request.station, [4; 6]);
        assert_eq!(request.packet[12..20], [10, 0, 0, 2, 10, 0, 0, 1]);
        // The client's address is in the message, and neither option 50 nor 54.
        assert_eq!(request.packet[28 + 12..28 + 16], [10, 0, 0, 2]);
        let foreign = answer(MessageType::Nak, Ipv4Addr::new(10, 0, 0, 9), OURS);
        assert_eq!(renewal.answer(at(5), &client, &foreign, [2; 6]), Step::Wait);
        let moved = answer(MessageType::Ack, SERVER, Ipv4Addr::new(10, 0, 0, 3));
        assert_eq!(renewal.answer(at(5), &client, &moved, [2; 6]), Step::Wait);
        let refusal = answer(MessageType::Nak, SERVER, Ipv4Addr::UNSPECIFIED);
        assert_eq!(
            renewal.answer(at(5), &client, &refusal, [2; 6]),
            Step::Refused
        );

        let mut rebinding = extend(None);
        let request = sent(rebinding.tick(at(0), &client));
        assert_eq!(request.station, EVERYBODY);
        assert_eq!(request.packet[12..20], [10, 0, 0, 2, 255, 255, 255, 255]);
        let other = answer(MessageType::Ack, Ipv4Addr::new(10, 0, 0, 9), OURS);
        assert!(matches!(
            rebinding.answer(at(5), &client, &other, [2; 6]),
            Step::Granted(_)
        ));
    }

    #[test]
    fn who_wants_one_address_takes_no_other() {
        let client = client();
        let goal = Goal::Obtain {
            wanted: Some(OURS),
            only: true,
        };
        let mut exchange = Exchange::begin(goal, Timing::default(), at(0), at(60_000));
        sent(exchange.tick(at(0), &client));
        let other = answer(MessageType::Offer, SERVER, Ipv4Addr::new(10, 0, 0, 3));
        assert_eq!(exchange.answer(at(5), &client, &other, [2; 6]), Step::Wait);
        let same = answer(MessageType::Offer, SERVER, OURS);
        sent(exchange.answer(at(6), &client, &same, [2; 6]));
    }

    #[test]
    fn a_grant_without_a_mask_is_given_back() {
        let (mut exchange, client) = (obtain(), client());
        sent(exchange.tick(at(0), &client));
        let offer = answer(MessageType::Offer, SERVER, OURS);
        sent(exchange.answer(at(1), &client, &offer, [2; 6]));
        let mut grant = answer(MessageType::Ack, SERVER, OURS);
        grant.options = DhcpOptions::new();
        match exchange.answer(at(2), &client, &grant, [4; 6]) {
            Step::Unusable(release) => {
                assert_eq!((release.station, kind(&release)), ([4; 6], 7));
                assert_eq!(release.packet[12..20], [10, 0, 0, 2, 10, 0, 0, 1]);
            }
            other => panic!("{other:?}"),
        }
    }
}
