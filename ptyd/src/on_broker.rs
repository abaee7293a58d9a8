//! Calls of the broker.

use shoal_chan::{ChanError, Received};
use shoal_proto::Violation;
use shoal_proto::broker_launcher::PtyId;
use shoal_proto::broker_ptyd::{PtyCall, Refusal, Refused, Resize, ToBroker, ToPtyd};
use shoal_sys::heap;

use crate::edge;
use crate::host::{Host, now};
use crate::pane::Size;
use crate::terminal::Terminal;

/// What came over one end of the broker's edge.
pub(crate) struct Calls {
    end: u32,
    taken: edge::Taken<ToPtyd>,
}

impl Host {
    /// Sends what waited and takes what came.
    pub(crate) fn take_calls(&mut self) -> Option<Calls> {
        let broker = self.broker.as_mut()?;
        let flushed = broker.flush();
        let mut taken = if broker.takes_calls() { edge::take(&mut broker.chan) } else { edge::Taken::default() };
        taken.end = flushed.err().or(taken.end);
        Some(Calls { end: self.broker_ends, taken })
    }

    /// Answers them, unless another broker came meanwhile.
    pub(crate) fn on_calls(&mut self, calls: Calls) {
        if calls.end != self.broker_ends {
            return;
        }
        let mut end = calls.taken.end;
        for Received { msg, .. } in calls.taken.messages {
            if let Err(violation) = self.on_broker(msg) {
                end = Some(ChanError::Violation(violation));
                break;
            }
        }
        if let Some(end) = end {
            edge::note_end("broker to ptyd", &end);
            self.lose_broker();
        }
    }

    fn on_broker(&mut self, message: ToPtyd) -> Result<(), Violation> {
        let greeted = self.broker.as_ref().is_some_and(|broker| broker.greeted_us);
        match (message, greeted) {
            (ToPtyd::Hello(hello), false) => {
                edge::check_hello(&hello)?;
                if let Some(broker) = self.broker.as_mut() {
                    broker.greeted_us = true;
                }
                Ok(())
            }
            (ToPtyd::Hello(_), true) => Err(Violation::State { what: "Hello", state: "up" }),
            (_, false) => Err(Violation::State { what: "a call", state: "before hello" }),
            (call, true) => {
                let mut out = Vec::new();
                self.call(call, &mut out);
                self.tell_broker(out);
                Ok(())
            }
        }
    }

    fn call(&mut self, call: ToPtyd, out: &mut Vec<ToBroker>) {
        match call {
            ToPtyd::Hello(_) => {}
            ToPtyd::Expect(expect) => {
                let size = Size::clamped(expect.cols, expect.rows);
                self.terminals.entry(expect.id).or_insert_with(|| Terminal::new(expect.id, size));
            }
            ToPtyd::Send(send) => {
                if let Some(terminal) = self.known(send.id, send.call, out) {
                    terminal.send(send, now(), out);
                }
            }
            ToPtyd::Read(read) => {
                self.refresh(read.id, out);
                if let Some(terminal) = self.known(read.id, read.call, out) {
                    terminal.read(read, now(), out);
                }
            }
            ToPtyd::Resize(resize) => self.resize(resize, out),
            ToPtyd::Close(PtyCall { call, id }) => {
                if let Some(terminal) = self.terminals.remove(&id) {
                    terminal.close(out);
                    // A screen with its scrollback is large.
                    heap::give_back();
                }
                out.push(ToBroker::Done(PtyCall { call, id }));
            }
            ToPtyd::CancelRead(PtyCall { call, id }) => {
                if let Some(terminal) = self.terminals.get_mut(&id) {
                    terminal.waits.retain(|waiting| waiting.call != call);
                }
            }
        }
    }

    fn resize(&mut self, resize: Resize, out: &mut Vec<ToBroker>) {
        let Resize { call, id, cols, rows } = resize;
        // What was printed before belongs to the old size.
        self.refresh(id, out);
        let Some(terminal) = self.known(id, call, out) else { return };
        match terminal.resize(Size::clamped(cols, rows)) {
            Ok(()) => out.push(ToBroker::Done(PtyCall { call, id })),
            Err(error) => {
                crate::note(&format!("terminal {id}: resize: {error}"));
                out.push(ToBroker::Refused(Refused { call, why: Refusal::Closed }));
            }
        }
    }

    /// The terminal, or the refusal.
    fn known(&mut self, id: PtyId, call: u64, out: &mut Vec<ToBroker>) -> Option<&mut Terminal> {
        let terminal = self.terminals.get_mut(&id);
        if terminal.is_none() {
            out.push(ToBroker::Refused(Refused { call, why: Refusal::Unknown }));
        }
        terminal
    }
}
