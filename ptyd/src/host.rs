//! The state of the terminal host and its one loop: everything that can wake it is in [`Host::wait`].

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use shoal_proto::broker_launcher::PtyId;
use shoal_proto::broker_ptyd::ToBroker;
use shoal_proto::launcher_ptyd::ToLauncher;
use shoal_sys::poll::{self, Ready};

use crate::edge::{self, BrokerEdge, LauncherEdge};
use crate::terminal::{Look, Terminal};

/// Parsing per round, shared by the terminals that have output: so much later than idle is the slowest answer.
const ROUND: Duration = Duration::from_millis(4);
/// Parsing before a look at one terminal: enough for all that waits there unless it is costly.
const LOOK: Duration = Duration::from_millis(20);
/// Even among many each terminal gets on.
const LEAST: Duration = Duration::from_micros(500);
/// The system gives output of a terminal in pieces of at most this.
const BUFFER: usize = 16 * 1024;

/// Everything the terminal host knows.
pub(crate) struct Host {
    pub(crate) launcher: LauncherEdge,
    pub(crate) launcher_greeted: bool,
    /// `None` between a broker's end and the next one.
    pub(crate) broker: Option<BrokerEdge>,
    /// Counts the ends.
    pub(crate) broker_ends: u32,
    pub(crate) generation: u32,
    pub(crate) terminals: BTreeMap<PtyId, Terminal>,
    buffer: Vec<u8>,
}

/// Who can wake the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wake {
    Launcher,
    Broker,
    Terminal(PtyId),
}

/// Whether the loop goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    On,
    /// The launcher is gone: so is the session.
    Over,
}

impl Host {
    pub(crate) fn new(launcher: LauncherEdge, broker: edge::BrokerChan) -> Self {
        Self {
            launcher,
            launcher_greeted: false,
            broker: Some(BrokerEdge::new(broker)),
            broker_ends: 1,
            generation: 0,
            terminals: BTreeMap::new(),
            buffer: vec![0; BUFFER],
        }
    }

    /// The first message, which says that this process is confined. The broker is greeted when the launcher has said
    /// which generation this is.
    pub(crate) fn greet(mut self) -> io::Result<Self> {
        let hello = ToLauncher::Hello(edge::hello(self.generation));
        self.launcher.send(&hello, &[]).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(self)
    }

    /// Serves until the launcher is gone.
    pub(crate) fn serve(mut self) -> io::Result<()> {
        loop {
            let woken = self.wait()?;
            // Calls are taken before and answered after the launcher's messages: what the launcher had said when a
            // call was made is known when it is answered.
            let calls = if woken.contains(&Wake::Broker) { self.take_calls() } else { None };
            if (calls.is_some() || woken.contains(&Wake::Launcher)) && self.on_launcher_ready()? == Flow::Over {
                return Ok(());
            }
            if let Some(calls) = calls {
                self.on_calls(calls);
            }
            self.pump(&woken);
        }
    }

    /// Waits for a peer, a terminal or the next thing that is due.
    fn wait(&self) -> io::Result<Vec<Wake>> {
        let mut wakes = vec![Wake::Launcher];
        let mut interests =
            vec![(self.launcher.as_fd(), Ready { read: true, write: self.launcher.has_queued(), hang_up: false })];
        if let Some(broker) = &self.broker {
            wakes.push(Wake::Broker);
            let ready = Ready { read: broker.takes_calls(), write: broker.has_queued(), hang_up: false };
            interests.push((broker.chan.as_fd(), ready));
        }
        for (id, terminal) in &self.terminals {
            if let Some(interest) = terminal.interest() {
                wakes.push(Wake::Terminal(*id));
                interests.push(interest);
            }
        }
        let ready = poll::poll(&interests, self.timeout())?;
        Ok(wakes.into_iter().zip(ready).filter(|(_, ready)| ready.any()).map(|(wake, _)| wake).collect())
    }

    /// Time until something is due; for ever while nothing waits.
    fn timeout(&self) -> Option<Duration> {
        if self.terminals.values().any(Terminal::is_busy) {
            return Some(Duration::ZERO);
        }
        let now = now();
        self.terminals.values().filter_map(Terminal::due).min().map(|due| due.saturating_duration_since(now))
    }

    /// Lets every terminal get on that was woken, has output left or something due.
    fn pump(&mut self, woken: &[Wake]) {
        let now = now();
        let is_active = |id: &PtyId, terminal: &Terminal| {
            woken.contains(&Wake::Terminal(*id)) || terminal.is_busy() || terminal.due().is_some_and(|due| due <= now)
        };
        let active: Vec<PtyId> =
            self.terminals.iter().filter(|(id, terminal)| is_active(id, terminal)).map(|(id, _)| *id).collect();
        let share = ROUND.checked_div(u32::try_from(active.len()).unwrap_or(u32::MAX)).unwrap_or(ROUND).max(LEAST);
        let mut out = Vec::new();
        for id in active {
            if let Some(terminal) = self.terminals.get_mut(&id) {
                terminal.pump(&mut self.buffer, share, Look::Later, &mut out);
            }
        }
        self.tell_broker(out);
    }

    /// Reads and parses what one terminal has now, so that an answer shows it.
    pub(crate) fn refresh(&mut self, id: PtyId, out: &mut Vec<ToBroker>) {
        if let Some(terminal) = self.terminals.get_mut(&id) {
            terminal.pump(&mut self.buffer, LOOK, Look::Now, out);
        }
    }

    /// Sends to the broker; without one, or when it breaks off, there is nobody to tell.
    pub(crate) fn tell_broker(&mut self, messages: Vec<ToBroker>) {
        let Some(broker) = self.broker.as_mut().filter(|broker| broker.greeted) else { return };
        for message in messages {
            if let Err(end) = broker.tell(message) {
                edge::note_end("ptyd to broker", &end);
                return self.lose_broker();
            }
        }
    }

    /// The broker is gone; its calls are too. The terminals go on until the next one comes.
    pub(crate) fn lose_broker(&mut self) {
        self.broker = None;
        for terminal in self.terminals.values_mut() {
            terminal.forget_callers();
        }
    }
}

/// The clock of the loop; what has rules about time is handed it.
#[expect(clippy::disallowed_methods, reason = "the one place where this process reads the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
