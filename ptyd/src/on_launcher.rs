//! Messages of the launcher: leaders, ends of programs, fresh ends of the broker's edge.

use std::io;
use std::os::fd::OwnedFd;

use shoal_chan::{ChanError, Received};
use shoal_proto::Violation;
use shoal_proto::broker_launcher::PtyExited;
use shoal_proto::broker_ptyd::ToBroker;
use shoal_proto::launcher_ptyd::{Leader, ToPtyd};

use crate::edge::{self, BrokerEdge};
use crate::host::{Flow, Host, now};
use crate::pane::Size;
use crate::terminal::Terminal;

impl Host {
    /// Takes what came. A launcher that breaks the protocol ends this process: nobody else gives it work.
    pub(crate) fn on_launcher_ready(&mut self) -> io::Result<Flow> {
        loop {
            let taken = edge::take(&mut self.launcher);
            let count = taken.messages.len();
            for received in taken.messages {
                self.on_launcher(received).map_err(|violation| io::Error::other(violation.to_string()))?;
            }
            match taken.end {
                None if count == edge::BATCH => {}
                None => return Ok(Flow::On),
                Some(ChanError::Closed) => return Ok(Flow::Over),
                Some(end) => return Err(io::Error::other(format!("launcher to ptyd: {end}"))),
            }
        }
    }

    fn on_launcher(&mut self, received: Received<ToPtyd>) -> Result<(), Violation> {
        let mut fds = received.fds.into_iter();
        match (received.msg, fds.next()) {
            (ToPtyd::Hello(hello), None) if !self.launcher_greeted => {
                edge::check_hello(&hello)?;
                self.launcher_greeted = true;
                self.generation = hello.generation;
                self.greet_broker();
                Ok(())
            }
            (ToPtyd::Hello(_), _) => Err(Violation::State { what: "Hello", state: "up" }),
            (_, _) if !self.launcher_greeted => Err(Violation::State { what: "a message", state: "before hello" }),
            (ToPtyd::Adopt(adopt), Some(end)) => {
                self.generation = adopt.generation;
                self.adopt(end);
                Ok(())
            }
            (ToPtyd::Leader(leader), Some(fd)) => {
                self.host_terminal(leader, fd);
                Ok(())
            }
            (ToPtyd::Exited(exited), None) => {
                if let Some(terminal) = self.terminals.get_mut(&exited.id) {
                    terminal.program_ended(exited.status, now());
                }
                Ok(())
            }
            // The channel has checked the descriptors against the message.
            (ToPtyd::Adopt(_) | ToPtyd::Leader(_) | ToPtyd::Exited(_), _) => {
                Err(Violation::State { what: "descriptors", state: "of another message" })
            }
        }
    }

    fn host_terminal(&mut self, order: Leader, fd: OwnedFd) {
        let size = Size::clamped(order.cols, order.rows);
        let terminal = self.terminals.entry(order.id).or_insert_with(|| Terminal::new(order.id, size));
        let mut out = Vec::new();
        if let Err(error) = terminal.take_leader(order, fd, &mut out) {
            crate::note(&format!("terminal {}: {error}", order.id));
        }
        if order.again {
            // Broker and terminal host may both be new.
            out.extend(terminal.hosted().map(ToBroker::Hosted));
        }
        self.refresh(order.id, &mut out);
        self.tell_broker(out);
    }

    /// A new broker: the old one's calls are void, and it is told which terminals there are and which have ended.
    fn adopt(&mut self, end: OwnedFd) {
        self.lose_broker();
        self.broker_ends = self.broker_ends.wrapping_add(1);
        match edge::open(end) {
            Ok(chan) => self.broker = Some(BrokerEdge::new(chan)),
            Err(error) => return crate::note(&format!("adopt: {error}")),
        }
        self.greet_broker();
    }

    fn greet_broker(&mut self) {
        let Some(broker) = self.broker.as_mut() else { return };
        broker.greeted = true;
        let mut out = vec![ToBroker::Hello(edge::hello(self.generation))];
        out.extend(self.terminals.values().filter_map(Terminal::hosted).map(ToBroker::Hosted));
        out.extend(self.terminals.iter().filter_map(|(id, terminal)| {
            terminal.exit().map(|status| ToBroker::Exited(PtyExited { id: *id, status }))
        }));
        self.tell_broker(out);
    }
}
