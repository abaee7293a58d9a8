//! The edge to the supervisor: orders down, life of the roles up.

use std::os::fd::OwnedFd;

use shoal_chan::ChanError;
use shoal_proto::hello::SessionRole;
use shoal_proto::supervisor_broker::{
    Adopted, Killed, Order, Ping, Processes, RoleUp, SessionFailed, SessionId, SessionUp, Shutdown, ToBroker,
    ToSupervisor,
};

use crate::broker::Broker;
use crate::edge::{Arrived, Peer};
use crate::sessions::Sid;
use crate::wake::Wake;

/// From drained to the end of the process.
const LAST_ANSWERS: std::time::Duration = std::time::Duration::from_millis(50);

/// How an order was carried out.
#[derive(Debug)]
pub(crate) enum OrderDone {
    /// A session is up, under this number of the supervisor's.
    Up(SessionId),
    /// It could not be made.
    Failed(SessionFailed),
    /// It is gone.
    Killed(Killed),
    /// It is frozen or not.
    Frozen(bool),
    /// The processes of the kernel.
    Processes(Box<Processes>),
}

impl Broker {
    /// Sends an order; `then` gets its answer.
    pub(crate) fn order(
        &mut self,
        make: impl FnOnce(u64) -> ToSupervisor,
        then: impl FnOnce(&mut Self, OrderDone) + 'static,
    ) {
        let order = self.fresh();
        self.orders.insert(order, Box::new(then));
        self.supervisor.send(make(order));
    }

    fn order_done(&mut self, order: u64, done: OrderDone) {
        if let Some(then) = self.orders.remove(&order) {
            then(self, done);
        }
    }

    /// Something came from the supervisor. Without it the broker has no reason to be.
    pub(crate) fn on_supervisor(&mut self, arrived: Arrived<ToBroker>) {
        match arrived {
            Arrived::Message(message, fds) => self.on_supervisor_message(message, fds),
            Arrived::Gone(error) => {
                if !matches!(error, ChanError::Closed) {
                    crate::log::line(format_args!("supervisor: {error}"));
                }
                self.end();
            }
        }
    }

    fn on_supervisor_message(&mut self, message: ToBroker, fds: Vec<OwnedFd>) {
        match message {
            ToBroker::Start(_) => crate::log::line(format_args!("a second start was ignored")),
            ToBroker::Sections(sections) => self.on_sections(&sections, fds),
            ToBroker::Adopt(adopted) => self.on_adopt(&adopted, fds),
            ToBroker::SessionUp(up) => self.on_session_up(up, fds),
            ToBroker::SessionFailed(failed) => self.order_done(failed.order, OrderDone::Failed(failed)),
            ToBroker::RoleExit(exit) => self.on_role_exit(&exit),
            ToBroker::RoleUp(up) => self.on_role_up(&up, fds),
            ToBroker::Killed(killed) => self.order_done(killed.order, OrderDone::Killed(killed)),
            ToBroker::Frozen(frozen) => self.order_done(frozen.order, OrderDone::Frozen(frozen.frozen)),
            ToBroker::Processes(processes) => {
                self.order_done(processes.order, OrderDone::Processes(Box::new(processes)));
            }
            ToBroker::Ping(ping) => self.supervisor.send(ToSupervisor::Pong(ping)),
            ToBroker::Drain(drain) => self.drain(drain),
        }
    }

    /// Which session an order made.
    pub(crate) fn expect_session(&mut self, order: u64, sid: Sid) {
        self.ordered.insert(order, sid);
    }

    fn on_session_up(&mut self, up: SessionUp, fds: Vec<OwnedFd>) {
        if let Some(sid) = self.ordered.remove(&up.order) {
            self.sessions.bind(sid, up.session);
            self.ancestors.insert(up.session, up.launcher);
            self.connect_session(sid, fds);
        }
        self.order_done(up.order, OrderDone::Up(up.session));
    }

    /// Takes the ends of launcher, worker and, if it lives, ptyd.
    pub(crate) fn connect_session(&mut self, sid: Sid, fds: Vec<OwnedFd>) {
        let mut fds = fds.into_iter();
        if let Some(fd) = fds.next() {
            self.connect_launcher(sid, fd);
        }
        if let Some(fd) = fds.next() {
            self.connect_worker(sid, fd, false);
        }
        if let Some(fd) = fds.next() {
            self.connect_ptyd(sid, fd);
        }
    }

    fn on_role_up(&mut self, up: &RoleUp, fds: Vec<OwnedFd>) {
        let Some(sid) = self.sessions.of_id(up.session) else { return };
        let Some(fd) = fds.into_iter().next() else { return };
        match up.role {
            SessionRole::Launcher => self.connect_launcher(sid, fd),
            SessionRole::Worker => self.connect_worker(sid, fd, true),
            SessionRole::Ptyd => self.connect_ptyd(sid, fd),
        }
    }

    fn on_adopt(&mut self, adopted: &Adopted, fds: Vec<OwnedFd>) {
        let mut fds = fds.into_iter();
        let (Some(launcher), Some(worker)) = (fds.next(), fds.next()) else { return };
        let sid = self.adopt_session(adopted);
        self.connect_launcher(sid, launcher);
        self.connect_adopted_worker(sid, worker);
        if let Some(ptyd) = fds.next() {
            self.connect_ptyd(sid, ptyd);
        }
    }

    /// Opens one end; `None` when the descriptor is no good, which is the supervisor's bug and said.
    pub(crate) fn open_end<Tx: shoal_proto::Message + 'static, Rx: shoal_proto::Message + 'static>(
        &mut self,
        fd: OwnedFd,
        wake: impl Fn(u64, Arrived<Rx>) -> Wake + 'static,
    ) -> Option<Peer<Tx>> {
        let epoch = self.fresh();
        match Peer::open(fd, epoch, &self.wakes, wake) {
            Ok(peer) => Some(peer),
            Err(error) => {
                crate::log::line(format_args!("{}: {error}", Tx::EDGE));
                None
            }
        }
    }

    /// The supervisor's number of a session as an order.
    pub(crate) fn order_about(id: SessionId) -> impl FnOnce(u64) -> Order {
        move |order| Order { order, session: id }
    }

    /// No new work; rows are closed by the ends of their sessions; then the supervisor may let go.
    pub(crate) fn drain(&mut self, _drain: Shutdown) {
        if self.draining {
            return;
        }
        self.draining = true;
        self.kernel_event("stopping", None, None);
        self.note_kernel("stop", None);
        let ended = crate::sessions::Ended { reason: "shutdown", by: None, note: None };
        let all: Vec<Sid> = self.sessions.iter().map(|session| session.sid).collect();
        for sid in all {
            self.end_session(sid, ended.clone());
        }
        // A job behind every row: when it is answered, they are written.
        self.write_synced(
            |_| Ok(()),
            |broker, written| {
                if let Err(error) = written {
                    crate::log::line(format_args!("journal at the end: {error}"));
                }
                broker.supervisor.send(ToSupervisor::Drained(Ping { n: 0 }));
                // The last answers leave first; a client that does not read them has no claim on more.
                broker.after(LAST_ANSWERS, Self::end);
            },
        );
    }
}
