//! The daemon's loop: one thread waits for callers, for packets and for the clock, all at once.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::SignalFd;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use skel::log;

use super::connection::{Connection, Heard};
use super::keeper::{Keeper, Outcome};
use super::listen::Listener;
use crate::books::Key;
use crate::clock::{Time, now};
use crate::rpc::{self, Arguments, Call, Method};

/// What the loop waits for.
enum Source {
    Signal,
    Timer,
    Listener,
    Connection(u64),
    Packet(Rc<Key>),
}

/// Everything that the loop works on.
pub struct Server {
    keeper: Keeper,
    listener: Listener,
    signals: SignalFd,
    timer: TimerFd,
    connections: BTreeMap<u64, (Connection, Option<Call>)>,
    last: u64,
    /// There are too many files open: nobody is let in before somebody leaves.
    full: bool,
}

impl Server {
    /// A server that has not begun.
    pub fn new(keeper: Keeper, listener: Listener, signals: SignalFd) -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        Ok(Self {
            keeper,
            listener,
            signals,
            timer: TimerFd::new(ClockId::CLOCK_BOOTTIME, flags)?,
            connections: BTreeMap::new(),
            last: 0,
            full: false,
        })
    }

    /// Serves until a signal asks it to stop.
    pub fn run(&mut self) -> io::Result<()> {
        loop {
            self.set_timer(now())?;
            let ready = self.wait()?;
            let now = now();
            for source in ready {
                match source {
                    Source::Signal => return Ok(()),
                    // Emptied, so that it is heard again.
                    Source::Timer => drop(self.timer.wait()),
                    Source::Listener => self.accept(now),
                    Source::Connection(number) => self.talk(number, now),
                    Source::Packet(key) => self.keeper.readable(&key, now),
                }
            }
            self.keeper.tick(now);
            self.hang_up(now);
            self.answer(now);
        }
    }

    /// Sets the clock to the next moment at which there is something to do.
    fn set_timer(&self, now: Time) -> io::Result<()> {
        let deadlines = self.connections.values();
        let deadline = deadlines
            .filter_map(|(connection, _)| connection.deadline())
            .min();
        let next = [self.keeper.next(), deadline].into_iter().flatten().min();
        let Some(next) = next else {
            return Ok(self.timer.unset()?);
        };
        // A time that is over would switch it off.
        let next = next.max(now + Time::from_nanos(1));
        let at = Expiration::OneShot(TimeSpec::from_duration(next));
        Ok(self.timer.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?)
    }

    fn wait(&self) -> io::Result<Vec<Source>> {
        let mut sources = vec![Source::Signal, Source::Timer];
        let mut files = vec![
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.timer.as_fd(), PollFlags::POLLIN),
        ];
        if !self.full {
            sources.push(Source::Listener);
            files.push(PollFd::new(
                self.listener.socket().as_fd(),
                PollFlags::POLLIN,
            ));
        }
        for (number, (connection, _)) in &self.connections {
            let mut events = PollFlags::POLLIN;
            events.set(PollFlags::POLLOUT, connection.has_output());
            sources.push(Source::Connection(*number));
            files.push(PollFd::new(connection.as_fd(), events));
        }
        for (key, socket) in self.keeper.sockets() {
            sources.push(Source::Packet(Rc::clone(key)));
            files.push(PollFd::new(socket, PollFlags::POLLIN));
        }
        match poll(&mut files, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let is_ready = |file: &PollFd<'_>| file.any().unwrap_or(true);
        let pairs = sources.into_iter().zip(&files);
        let ready = pairs.filter(|(_, file)| is_ready(file));
        Ok(ready.map(|(source, _)| source).collect())
    }

    fn accept(&mut self, now: Time) {
        loop {
            match self.listener.socket().accept() {
                Ok((stream, _)) => {
                    if let Ok(connection) = Connection::new(stream, now) {
                        self.last += 1;
                        self.connections.insert(self.last, (connection, None));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    log::warn(format_args!("cannot accept a connection: {error}"));
                    let files = [Errno::EMFILE as i32, Errno::ENFILE as i32];
                    let too_many = error.raw_os_error().is_some_and(|e| files.contains(&e));
                    self.full = too_many && !self.connections.is_empty();
                    return;
                }
            }
        }
    }

    fn talk(&mut self, number: u64, now: Time) {
        let Some((connection, _)) = self.connections.get_mut(&number) else {
            return;
        };
        match connection.read() {
            Heard::End => return self.close(number),
            Heard::Nothing => {}
            Heard::Call(call, arguments) => self.call(number, call, &arguments, now),
        }
        self.write(number);
    }

    fn call(&mut self, number: u64, call: Call, arguments: &Arguments, now: Time) {
        log::debug(format_args!(
            "{} of {} {}",
            call.method, arguments.container_id, arguments.ifname
        ));
        let outcome = match Method::named(&call.method) {
            Some(Method::Allocate) => self.keeper.allocate(number, arguments, now),
            Some(Method::Release) => Some(self.keeper.release(arguments)),
            Some(Method::Check) => Some(self.keeper.check(arguments, now)),
            Some(Method::Collect) => Some(self.keeper.collect(arguments)),
            None => Some(Err(format!("{}{}", rpc::NO_METHOD, call.method))),
        };
        if let Some((_, pending)) = self.connections.get_mut(&number) {
            *pending = Some(call);
        }
        if let Some(outcome) = outcome {
            self.reply(number, outcome, now);
        }
    }

    /// Answers those who have waited.
    fn answer(&mut self, now: Time) {
        while let Some((number, outcome)) = self.keeper.answer() {
            self.reply(number, outcome, now);
            self.write(number);
        }
    }

    fn reply(&mut self, number: u64, outcome: Outcome, now: Time) {
        let Some((connection, pending)) = self.connections.get_mut(&number) else {
            return;
        };
        let Some(Call { method, sequence }) = pending.take() else {
            return;
        };
        let reply = match outcome {
            Err(why) => rpc::failed(&method, sequence, &why),
            Ok(result) if result.ips.is_empty() => rpc::released(&method, sequence),
            Ok(result) => rpc::leased(&method, sequence, &result),
        };
        connection.reply(&reply, now);
    }

    fn write(&mut self, number: u64) {
        let Some((connection, _)) = self.connections.get_mut(&number) else {
            return;
        };
        if connection.has_output() && !connection.write() {
            self.close(number);
        }
    }

    /// Closes connections whose callers take too long.
    fn hang_up(&mut self, now: Time) {
        let late = |(_, (connection, _)): &(&u64, &(Connection, Option<Call>))| {
            connection
                .deadline()
                .is_some_and(|deadline| deadline <= now)
        };
        let late: Vec<u64> = self
            .connections
            .iter()
            .filter(late)
            .map(|(n, _)| *n)
            .collect();
        for number in late {
            self.close(number);
        }
    }

    fn close(&mut self, number: u64) {
        if let Some((connection, _)) = self.connections.remove(&number)
            && connection.is_waiting()
        {
            self.keeper.abandon(number);
        }
        self.full = false;
    }
}
