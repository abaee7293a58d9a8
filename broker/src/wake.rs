//! Everything that can wake the broker, and the one loop that takes it.

use std::any::Any;
use std::io;

use shoal_proto::{broker_launcher, broker_ptyd, broker_worker, supervisor_broker};
use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::sleep_until;

use crate::broker::Broker;
use crate::bus::SubId;
use crate::clients::{ConnId, Frame, Peer};
use crate::edge::Arrived;
use crate::sessions::Sid;

/// Wakes that wait for the loop. Their senders wait too, so no peer can fill memory with them.
pub(crate) const QUEUE: usize = 1024;

/// One wake from outside.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "each is moved once; boxing would cost every message an allocation")]
pub(crate) enum Wake {
    /// A connection of the kernel's uid.
    Accepted {
        /// Its socket.
        stream: UnixStream,
        /// Who is at the other end.
        peer: Peer,
        /// Its place among those that have said nothing.
        place: OwnedSemaphorePermit,
    },
    /// A connection could not be accepted.
    AcceptFailed(io::Error),
    /// A frame of a connection.
    Frame(ConnId, Frame),
    /// The events of a subscription have left its queue.
    Drained(ConnId, SubId),
    /// A connection is over.
    ClientGone(ConnId),
    /// From the supervisor.
    Supervisor(Arrived<supervisor_broker::ToBroker>),
    /// From the worker of a session, over the end of this epoch.
    Worker(Sid, u64, Arrived<broker_worker::ToBroker>),
    /// From the launcher of a session.
    Launcher(Sid, u64, Arrived<broker_launcher::ToBroker>),
    /// From the ptyd of a session.
    Ptyd(Sid, u64, Arrived<broker_ptyd::ToBroker>),
    /// A part of a capture is stored.
    Captured(crate::capture::Stored),
}

/// A job of the journal is done: its ticket and result.
pub(crate) type JobDone = (u64, Box<dyn Any + Send>);

/// Takes wakes until the broker is over. Results of the journal come first: they free what waits.
pub(crate) async fn run(
    broker: &mut Broker,
    mut wakes: mpsc::Receiver<Wake>,
    mut done: mpsc::UnboundedReceiver<JobDone>,
) {
    while !broker.is_over() {
        let due = broker.next_due();
        tokio::select! {
            biased;
            Some((ticket, result)) = done.recv() => {
                broker.tick();
                broker.on_job_done(ticket, result);
            }
            () = sleep_until(due.unwrap_or_else(tokio::time::Instant::now)), if due.is_some() => {
                broker.tick();
                broker.on_due();
            }
            wake = wakes.recv() => {
                let Some(wake) = wake else { return };
                broker.tick();
                broker.on_wake(wake);
            }
        }
    }
}

impl Broker {
    /// The one dispatch of everything from outside.
    fn on_wake(&mut self, wake: Wake) {
        match wake {
            Wake::Accepted { stream, peer, place } => self.on_accepted(stream, peer, place),
            Wake::AcceptFailed(error) => crate::log::line(format_args!("accept: {error}")),
            Wake::Frame(conn, frame) => self.on_frame(conn, frame),
            Wake::Drained(conn, sub) => self.on_drained(conn, sub),
            Wake::ClientGone(conn) => self.on_client_gone(conn),
            Wake::Supervisor(arrived) => self.on_supervisor(arrived),
            Wake::Worker(sid, epoch, arrived) => self.on_worker(sid, epoch, arrived),
            Wake::Launcher(sid, epoch, arrived) => self.on_launcher(sid, epoch, arrived),
            Wake::Ptyd(sid, epoch, arrived) => self.on_ptyd(sid, epoch, arrived),
            Wake::Captured(stored) => self.on_captured(stored),
        }
    }
}
