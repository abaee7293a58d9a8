//! Who may talk to whom. An edge that is not in this list has no socket.

use std::io;
use std::os::fd::OwnedFd;

use shoal_chan::Chan;
use shoal_proto::{supervisor_broker, supervisor_launcher};
use shoal_sys::socket::{self, Carrier};

/// The processes that have edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Supervisor,
    Broker,
    Launcher,
    Worker,
    Ptyd,
}

/// One edge: the side that is believed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) upper: Peer,
    pub(crate) lower: Peer,
    /// Nothing that goes up carries a descriptor, not even that of a body above 64 KiB.
    bare_up: bool,
}

const fn edge(upper: Peer, lower: Peer, bare_up: bool) -> Edge {
    Edge { upper, lower, bare_up }
}

pub(crate) const SUPERVISOR_BROKER: Edge = edge(Peer::Supervisor, Peer::Broker, false);
pub(crate) const SUPERVISOR_LAUNCHER: Edge = edge(Peer::Supervisor, Peer::Launcher, true);
pub(crate) const BROKER_LAUNCHER: Edge = edge(Peer::Broker, Peer::Launcher, false);
pub(crate) const BROKER_WORKER: Edge = edge(Peer::Broker, Peer::Worker, false);
pub(crate) const BROKER_PTYD: Edge = edge(Peer::Broker, Peer::Ptyd, false);

/// All edges whose ends this process makes. The launcher makes its own two, launcher-worker and launcher-ptyd, inside
/// the jail; the policy compiler has inherited files and no edge.
#[cfg(test)]
const EDGES: &[Edge] = &[SUPERVISOR_BROKER, SUPERVISOR_LAUNCHER, BROKER_LAUNCHER, BROKER_WORKER, BROKER_PTYD];

/// The supervisor's end of its edge to the broker.
pub(crate) type BrokerChan = Chan<supervisor_broker::ToBroker, supervisor_broker::ToSupervisor>;
/// The supervisor's end of its edge to a launcher.
pub(crate) type LauncherChan = Chan<supervisor_launcher::ToLauncher, supervisor_launcher::ToSupervisor>;

/// Makes the two ends of an edge: upper, lower. An upper side that never takes descriptors refuses them where the
/// system can.
pub(crate) fn ends(edge: Edge) -> io::Result<(OwnedFd, OwnedFd)> {
    let (upper, lower) = socket::pair(Carrier::NATIVE)?;
    if edge.bare_up {
        socket::refuse_descriptors(&upper);
    }
    Ok((upper, lower))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edge_is_listed_once() {
        for (at, edge) in EDGES.iter().enumerate() {
            assert!(!EDGES.iter().skip(at + 1).any(|other| (other.upper, other.lower) == (edge.upper, edge.lower)));
        }
    }

    #[test]
    fn ends_are_connected_and_close_on_exec() {
        for edge in EDGES {
            let (upper, lower) = ends(*edge).unwrap();
            for end in [&upper, &lower] {
                assert!(shoal_sys::fd::is_connected_unix(std::os::fd::AsFd::as_fd(end)));
            }
        }
    }
}
