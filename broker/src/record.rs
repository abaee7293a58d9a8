//! What the broker writes into the journal: rows, closings, durable events, and what it does while it cannot.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use shoal_journal::{Closing, Health, JournalError, Kind, NewRow, Row};
use shoal_wire::{Code, RpcError};

use crate::broker::Broker;
use crate::bus::Event;
use crate::clients::Ask;
use crate::json::{tagged_bool, tagged_int, tagged_record, tagged_str};
use crate::sessions::Sid;

/// How often an unwritten closing is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Closings that could not be written, in order, and whether somebody was told.
#[derive(Debug, Default)]
pub(crate) struct Unwritten {
    waiting: Vec<(i64, Closed)>,
    told: bool,
}

/// Everything that is written when a row closes.
#[derive(Clone, Debug)]
pub(crate) struct Closed {
    /// Owner of the session, for events and counters.
    pub(crate) owner: String,
    /// Session name.
    pub(crate) session: String,
    /// How the row ends.
    pub(crate) closing: Closing,
    /// Outputs in sealed memfds, read on the journal's thread.
    pub(crate) attached: Vec<Attached>,
    /// Rows of its statements.
    pub(crate) statements: Vec<(NewRow, Closing)>,
    /// It is announced on the transcript channel.
    pub(crate) transcript: bool,
}

/// An output that came in a sealed memfd.
#[derive(Clone, Debug)]
pub(crate) struct Attached {
    /// `stdout`, `stderr` or `value`.
    pub(crate) kind: &'static str,
    /// Its bytes.
    pub(crate) fd: Arc<OwnedFd>,
}

/// Most bytes a worker may attach as one output; what is stored of it is less.
const MAX_ATTACHED: usize = 512 * 1024 * 1024;

/// Numbers of the durable events of a row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Announced {
    journal: Option<u64>,
    transcript: Option<u64>,
}

/// Name of the counter of a session's results.
pub(crate) fn out_counter(owner: &str, session: &str) -> String {
    format!("out/{owner}\0{session}")
}

/// Name of the counter of a channel's reserved numbers.
pub(crate) fn mark_counter(owner: &str, channel: &str) -> String {
    format!("event/{owner}\0{channel}")
}

/// First word of a source.
pub(crate) fn head(src: &str) -> &str {
    src.split_whitespace().next().unwrap_or_default()
}

/// Payload of the `journal` channel for a row.
pub(crate) fn journal_payload(row: &Row) -> String {
    tagged_record(&[
        ("entry_id", tagged_int(row.id)),
        ("kind", tagged_str(&row.kind)),
        ("session", tagged_str(&row.session)),
        ("head", tagged_str(head(&row.src))),
        ("ok", tagged_bool(row.ok.unwrap_or(false))),
        ("principal", tagged_str(&row.principal)),
    ])
}

/// Payload of the `session.transcript` channel for a row.
pub(crate) fn transcript_payload(row: &Row) -> String {
    let n = row.out.unwrap_or(0);
    let mut summary = row.summary.clone().unwrap_or_else(|| json!({}));
    if let Some(members) = summary.as_object_mut() {
        // For a repeated key alone.
        members.remove("answer");
    }
    tagged_record(&[
        ("session", tagged_str(&row.session)),
        ("n", tagged_int(n)),
        ("ref", tagged_str(&format!("out:{n}"))),
        ("summary", crate::json::tagged(&summary)),
    ])
}

/// The durable event of a row: its payload is derived, its time is that of the row's end.
pub(crate) fn durable_event(channel: &str, seq: i64, row: &Row) -> Event {
    let payload = if channel == "journal" { journal_payload(row) } else { transcript_payload(row) };
    let ts = row.ts.saturating_add(row.dur_ns.unwrap_or(0));
    Event { seq: u64::try_from(seq).unwrap_or(0), ts, payload: payload.into() }
}

impl Broker {
    /// Refuses new work while it could not be recorded. The first refusal is told, and the recovery looked for.
    pub(crate) fn check_journal(&mut self) -> Result<(), RpcError> {
        match self.journal_fault() {
            None => Ok(()),
            Some(detail) => Err(self.journal_refusal(&detail)),
        }
    }

    /// The refusal of new work, told once; from then on the recovery is looked for.
    pub(crate) fn journal_refusal(&mut self, detail: &str) -> RpcError {
        if !self.unwritten.told {
            self.tell_journal(Some(detail.to_owned()));
            self.after(RETRY, Self::await_journal);
        }
        RpcError::journal_unavailable(detail)
    }

    /// Why work could not be recorded now.
    pub(crate) fn journal_fault(&self) -> Option<String> {
        if !self.unwritten.waiting.is_empty() {
            return Some("results of earlier work are not written yet".to_owned());
        }
        match self.journal.health() {
            Health::Writable => None,
            Health::Unavailable(detail) => Some(detail),
        }
    }

    fn await_journal(&mut self) {
        match self.journal_fault() {
            None => self.tell_journal(None),
            Some(_) => {
                self.after(RETRY, Self::await_journal);
            }
        }
    }

    /// A row of a kind that carries who, where and detail.
    pub(crate) fn plain_row(&self, kind: Kind, sid: Option<Sid>, principal: &str, detail: Value) -> NewRow {
        let session = sid.and_then(|sid| self.sessions.at(sid));
        let (name, owner) = session.map_or(("", principal), |s| (&*s.name, &*s.owner));
        let mut row = NewRow::plain(kind, name, owner, principal, self.now.ns, Some(detail));
        if let Some(session) = session {
            row.cwd = session.cwd.clone();
            row.env_hash = Some(session.env_hash);
        }
        row
    }

    /// Writes a row that is closed at once; `then` gets its id after the commit.
    pub(crate) fn write_plain(
        &mut self,
        row: NewRow,
        then: impl FnOnce(&mut Self, Result<i64, JournalError>) + 'static,
    ) {
        let announced = matches!(row.kind, Kind::Approval | Kind::Denial);
        let synced = row.kind.is_synced();
        let owner: Rc<str> = row.owner.as_str().into();
        let job_owner = row.owner.clone();
        let job = move |store: &mut shoal_journal::Store| {
            let id = store.write_row(&row)?;
            let seq = if announced { Some(store.append_event(&job_owner, "journal", id)?) } else { None };
            Ok((id, seq.map(|seq| store.bare_row(id).map(|row| (seq, row))).transpose()?))
        };
        let go_on = move |broker: &mut Self, written: Result<(i64, Option<(i64, Row)>), JournalError>| {
            let result = written.map(|(id, event)| {
                if let Some((seq, row)) = event {
                    broker.announce(&owner, "journal", &durable_event("journal", seq, &row));
                }
                id
            });
            then(broker, result);
        };
        if synced { self.write_synced(job, go_on) } else { self.write(job, go_on) }
    }

    /// Writes a row nobody waits for.
    pub(crate) fn note(&mut self, row: NewRow) {
        let kind = row.kind.name();
        self.write_plain(row, move |_, written| {
            if let Err(error) = written {
                crate::log::line(format_args!("{kind} row not written: {error}"));
            }
        });
    }

    /// Answers a refusal after its `denial` row.
    pub(crate) fn reply_denial(&mut self, ask: Ask, error: RpcError, src: &str, effects: Value) {
        let who = match &ask.up_call {
            None => self.attachment(ask.conn).map(|a| (a.principal.clone(), a.sid, a.session.clone(), a.owner.clone())),
            Some((sid, _)) => self.sessions.at(*sid).map(|s| (s.owner.clone(), *sid, s.name.clone(), s.owner.clone())),
        };
        let uid: Rc<str> = format!("uid:{}", self.start.uid).into();
        let reason = error.reason().unwrap_or(if error.is(Code::ApprovalRequired) { "approval_required" } else { "" });
        let need = error.data.as_ref().and_then(|data| data.get("need")).cloned();
        let mut detail = json!({"method": ask.method, "code": error.code, "reason": reason});
        if let Some(need) = need {
            detail["need"] = need;
        }
        let mut row = match &who {
            Some((principal, sid, ..)) => self.plain_row(Kind::Denial, Some(*sid), principal, detail),
            None => self.plain_row(Kind::Denial, None, &uid, detail),
        };
        if let Some((_, _, session, owner)) = who {
            // The session may have ended; the row still names it.
            row.session = session.to_string();
            row.owner = owner.to_string();
        }
        row.src = src.to_owned();
        row.effects = effects;
        self.write_plain(row, move |broker, written| {
            if let Err(error) = written {
                crate::log::line(format_args!("denial row not written: {error}"));
            }
            broker.send_answer(ask, &Err(error));
        });
    }

    /// Closes a row; `then` is told whether it could be written.
    pub(crate) fn close(&mut self, entry: i64, closed: Closed, then: impl FnOnce(&mut Self, bool) + 'static) {
        let keep = closed.clone();
        self.write(close_job(entry, closed), move |broker, written| match written {
            Ok((announced, row)) => {
                broker.announce_row(&announced, &row);
                then(broker, true);
            }
            Err(error) => {
                crate::log::line(format_args!("row {entry} not closed: {error}"));
                if error.may_pass() {
                    broker.keep_unwritten(entry, keep, &error);
                }
                then(broker, false);
            }
        });
    }

    /// Keeps a closing that may be written later; the first one that waits starts the tries.
    fn keep_unwritten(&mut self, entry: i64, closed: Closed, error: &JournalError) {
        self.unwritten.waiting.push((entry, closed));
        self.tell_journal(Some(error.to_string()));
        if self.unwritten.waiting.len() == 1 {
            self.after(RETRY, Self::retry_unwritten);
        }
    }

    fn retry_unwritten(&mut self) {
        let Some((entry, closed)) = self.unwritten.waiting.first().cloned() else { return };
        self.write(close_job(entry, closed), move |broker, written| {
            match written {
                Ok((announced, row)) => broker.announce_row(&announced, &row),
                Err(error) if error.may_pass() => {
                    broker.after(RETRY, Self::retry_unwritten);
                    return;
                }
                // It was written the first time, and only its sync failed.
                Err(error) => crate::log::line(format_args!("row {entry} not closed again: {error}")),
            }
            broker.unwritten.waiting.retain(|(waiting, _)| *waiting != entry);
            match broker.unwritten.waiting.is_empty() {
                true => broker.tell_journal(None),
                false => broker.retry_unwritten(),
            }
        });
    }

    /// Tells the human once that the journal is away, and once that it is back.
    pub(crate) fn tell_journal(&mut self, unavailable: Option<String>) {
        if self.unwritten.told != unavailable.is_some() {
            self.unwritten.told = unavailable.is_some();
            let action = if unavailable.is_some() { "journal_unavailable" } else { "journal_recovered" };
            self.kernel_event(action, None, unavailable.as_deref());
        }
    }

    fn announce_row(&mut self, announced: &Announced, row: &Row) {
        let owner: Rc<str> = row.owner.as_str().into();
        let events = [("journal", announced.journal), ("session.transcript", announced.transcript)];
        for (channel, seq) in events {
            if let Some(seq) = seq {
                let seq = i64::try_from(seq).unwrap_or(i64::MAX);
                self.announce(&owner, channel, &durable_event(channel, seq, row));
            }
        }
    }
}

/// The job that closes a row: statements, outputs, durable events and the session's number in one transaction.
fn close_job(
    entry: i64,
    closed: Closed,
) -> impl FnMut(&mut shoal_journal::Store) -> Result<(Announced, Row), JournalError> + Send + 'static {
    move |store| {
        for (row, closing) in &closed.statements {
            let mut row = row.clone();
            row.parent = Some(entry);
            store.write_closed(&row, closing)?;
        }
        let mut closing = closed.closing.clone();
        for Attached { kind, fd } in &closed.attached {
            match shoal_sys::memfd::read_sealed(fd, MAX_ATTACHED) {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => closing.outputs.push(crate::finish::output(kind, bytes)),
                // The row closes without it: what a worker attached must not keep the journal from going on.
                Err(error) => crate::log::line(format_args!("{kind} of row {entry} not stored: {error}")),
            }
        }
        store.close_row(entry, &closing)?;
        if let Some(out) = closed.closing.out {
            store.raise_counter(&out_counter(&closed.owner, &closed.session), out)?;
        }
        let number = |seq: i64| u64::try_from(seq).unwrap_or(0);
        let mut announced =
            Announced { journal: Some(number(store.append_event(&closed.owner, "journal", entry)?)), transcript: None };
        if closed.transcript {
            announced.transcript = Some(number(store.append_event(&closed.owner, "session.transcript", entry)?));
        }
        Ok((announced, store.bare_row(entry)?))
    }
}

#[cfg(test)]
mod tests {
    use shoal_journal::{Closing, Kind};

    use super::Closed;
    use crate::testing::{self, section};

    fn closed() -> Closed {
        Closed {
            owner: "agent:x".to_owned(),
            session: "s".to_owned(),
            closing: Closing::default(),
            attached: Vec::new(),
            statements: Vec::new(),
            transcript: false,
        }
    }

    #[test]
    fn a_closing_that_can_never_be_written_keeps_no_work_waiting() {
        testing::with_broker(&[section("agent:x")], |world| {
            let row = world.broker.plain_row(Kind::Exec, None, "agent:x", serde_json::Value::Null);
            let entry = world.broker.journal.wait(move |store| store.open_row(&row)).expect("a row");
            for written in [true, false] {
                world.broker.close(entry, closed(), move |_, recorded| assert_eq!(recorded, written));
                world.settle();
                assert_eq!(world.broker.journal_fault(), None);
            }
        });
    }

    #[test]
    fn a_closing_that_was_written_and_not_synced_is_not_written_for_ever() {
        testing::with_broker(&[section("agent:x")], |world| {
            let row = world.broker.plain_row(Kind::Exec, None, "agent:x", serde_json::Value::Null);
            let entry = world.broker.journal.wait(move |store| store.open_row(&row)).expect("a row");
            world.broker.close(entry, closed(), |_, _| {});
            world.settle();
            // What the journal answers when the disk did not take what was committed.
            let unsynced = shoal_journal::JournalError::Unavailable("input/output error".to_owned());
            world.broker.keep_unwritten(entry, closed(), &unsynced);
            assert!(world.broker.journal_fault().is_some());
            world.pass(super::RETRY);
            assert_eq!(world.broker.journal_fault(), None);
        });
    }
}
