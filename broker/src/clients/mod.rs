//! Connections: what each is attached to, what it asked and has not been told yet.

mod outgoing;
mod phase;
mod socket;

use std::collections::HashMap;
use std::rc::Rc;

pub(crate) use outgoing::{Life, Outgoing};
pub(crate) use phase::{Attachment, Phase, Step};
use shoal_proto::broker_worker::UpCall;
pub(crate) use socket::{Frame, Hold, Peer, accept, serve};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::AbortHandle;

use crate::sessions::Sid;

/// Number of a connection; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ConnId(pub(crate) u64);

impl ConnId {
    /// No connection: who asks is a worker.
    pub(crate) const NOBODY: ConnId = ConnId(0);
}

/// A request that waits for its answer. Dropping it unanswered gives its share of the connection's budget back.
#[derive(Debug)]
pub(crate) struct Ask {
    /// Who asked.
    pub(crate) conn: ConnId,
    /// The id as it was sent: JSON text.
    pub(crate) id: Box<str>,
    /// The method, for the rows of refusals.
    pub(crate) method: &'static str,
    /// The up-call it is made for, when no connection asked but the language.
    pub(crate) up_call: Option<(Sid, UpCall)>,
    /// Room of the request in its connection's budget.
    pub(crate) _hold: Hold,
}

impl Ask {
    /// A request of a connection.
    pub(crate) fn of_client(conn: ConnId, id: &str, method: &'static str, hold: Hold) -> Ask {
        Ask { conn, id: id.into(), method, up_call: None, _hold: hold }
    }

    /// A request that a worker makes for the language.
    pub(crate) fn of_worker(sid: Sid, call: UpCall, method: &'static str) -> Ask {
        Ask { conn: ConnId::NOBODY, id: "".into(), method, up_call: Some((sid, call)), _hold: Hold::default() }
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    /// Where it stands; `None` only while a step is taken.
    phase: Option<Phase>,
    /// What is written to it.
    pub(crate) out: Rc<Outgoing>,
    /// Who is at the other end.
    pub(crate) peer: Peer,
    /// Told to the reader: attached connections may be silent.
    pub(crate) attached: Rc<std::cell::Cell<bool>>,
    /// Its place among those that have said nothing; given back at the first request.
    pub(crate) place: Option<OwnedSemaphorePermit>,
    tasks: Vec<AbortHandle>,
}

impl Drop for Client {
    /// Both tasks end with the connection: its socket closes, and nothing more of it is read.
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Client {
    /// A connection that has said nothing yet.
    pub(crate) fn new(peer: Peer, surplus: bool, place: OwnedSemaphorePermit) -> Self {
        let phase = if surplus { Phase::Surplus } else { Phase::AwaitAttach };
        let (out, attached) = (Rc::default(), Rc::default());
        Self { phase: Some(phase), out, peer, attached, place: Some(place), tasks: Vec::new() }
    }

    /// The tasks that serve its socket.
    pub(crate) fn served_by(&mut self, tasks: [AbortHandle; 2]) {
        self.tasks = tasks.into();
    }

    /// The phase to look at.
    pub(crate) fn phase(&self) -> &Phase {
        self.phase.as_ref().unwrap_or(&Phase::AwaitAttach)
    }

    /// Takes a step: the old phase is consumed.
    pub(crate) fn step<T>(&mut self, take: impl FnOnce(Phase) -> (Phase, T)) -> T {
        let (next, out) = take(self.phase.take().unwrap_or(Phase::AwaitAttach));
        self.phase = Some(next);
        out
    }

    /// The attachment in force.
    pub(crate) fn attachment(&self) -> Option<&Attachment> {
        self.phase().attachment()
    }

    /// The attachment in force, to note something in it.
    pub(crate) fn attachment_mut(&mut self) -> Option<&mut Attachment> {
        self.phase.as_mut().and_then(Phase::attachment_mut)
    }
}

/// All connections.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    all: HashMap<ConnId, Client>,
    next: u64,
}

impl Clients {
    /// Takes a connection in.
    pub(crate) fn insert(&mut self, client: Client) -> ConnId {
        self.next += 1;
        let id = ConnId(self.next);
        self.all.insert(id, client);
        id
    }

    /// Forgets a connection.
    pub(crate) fn remove(&mut self, id: ConnId) -> Option<Client> {
        self.all.remove(&id)
    }

    /// A connection.
    pub(crate) fn at(&self, id: ConnId) -> Option<&Client> {
        self.all.get(&id)
    }

    /// A connection, to change it.
    pub(crate) fn at_mut(&mut self, id: ConnId) -> Option<&mut Client> {
        self.all.get_mut(&id)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// All of them, to change them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (ConnId, &mut Client)> {
        self.all.iter_mut().map(|(id, client)| (*id, client))
    }
}
