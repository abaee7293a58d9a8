//! The ports that only a session has: journal and content store, both at the broker.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use serde_json::{Value as Json, json};
use shoal_eval::cancel::CancelToken;
use shoal_eval::host::session::StatementEnd;
use shoal_eval::host::{Bus, Journal, JournalQuery, JournalRow, Store, UndoReport};
use shoal_proto::Text;
use shoal_proto::broker_worker::{self, MAX_STATEMENT, UpMethod};
use shoal_proto::launcher_worker::RunId;
use shoal_value::error::Span;
use shoal_value::{ErrorValue, Record, Str, Value, code};

use crate::broker_edge::Told;
use crate::clock;
use crate::commands::Depot;
use crate::files::{Inverse, Recorder};
use crate::host::SessionPorts;
use crate::output::Stream;
use crate::session::Session;

/// Bytes of one stored value that are taken into memory.
const MAX_BLOB: u64 = 256 * 1024 * 1024;

thread_local! {
    /// The execution whose evaluating thread this is; 0 elsewhere.
    static RUN: Cell<RunId> = const { Cell::new(0) };
}

/// Evaluates a request: up-calls of this thread belong to it.
pub(crate) fn inside<T>(run: RunId, evaluate: impl FnOnce() -> T) -> T {
    RUN.set(run);
    let result = evaluate();
    RUN.set(0);
    result
}

/// A statement that runs.
struct Statement {
    run: RunId,
    src: Text<MAX_STATEMENT>,
    started: Instant,
}

/// Ports over the session's edge to the broker.
pub(crate) struct Ports {
    session: Weak<Session>,
    config: Record,
    statements: Mutex<HashMap<u64, Statement>>,
    next: AtomicU64,
    /// Entries that were undone: undoing them again does nothing.
    undone: Mutex<BTreeSet<i64>>,
}

impl Ports {
    /// Ports of a session that is being made, with the policy's `config`.
    pub(crate) fn new(session: Weak<Session>, config: Record) -> Self {
        Self { session, config, statements: Mutex::default(), next: AtomicU64::new(1), undone: Mutex::default() }
    }

    fn ask(&self, run: RunId, method: UpMethod, params: &Json) -> Result<Told, ErrorValue> {
        if run == 0 {
            let text = "the kernel answers this only inside a request, not in a task of the language";
            return Err(ErrorValue::new(code::CUSTOM, text));
        }
        self.session()?.broker.call(run, method, params, None)
    }

    /// The session, while there is one.
    pub(crate) fn session(&self) -> Result<Arc<Session>, ErrorValue> {
        self.session.upgrade().ok_or_else(|| ErrorValue::new(code::IO_ERROR, "the session is over"))
    }
}

impl SessionPorts for Ports {
    fn config(&self) -> Record {
        self.config.clone()
    }
}

impl Ports {
    /// Bytes of a blob from `offset` on, as many as one answer holds, and the blob's length; nothing if it is unknown.
    fn blob(&self, run: RunId, hash: &str, offset: u64) -> Result<Option<(Vec<u8>, u64)>, ErrorValue> {
        self.session()?.broker.blob(run, hash, offset)
    }
}

impl Bus for Ports {
    fn publish(&self, channel: &str, payload: &str) -> Result<(), ErrorValue> {
        let session =
            self.session.upgrade().ok_or_else(|| ErrorValue::new(code::CHANNEL_CLOSED, "the session is over"))?;
        let payload: Json = serde_json::from_str(payload)
            .map_err(|e| ErrorValue::new(code::IO_ERROR, format!("the event's payload: {e}")))?;
        // A task may outlive the run that started it, so events belong to no run.
        session.broker.call(0, UpMethod::Emit, &json!({"channel": channel, "payload": payload}), None)?;
        Ok(())
    }
}

impl Store for Ports {
    fn load(&self, hash: &str, cancel: &CancelToken) -> Result<Option<Vec<u8>>, ErrorValue> {
        let run = RUN.get();
        let Some((mut bytes, len)) = self.blob(run, hash, 0)? else { return Ok(None) };
        if len > MAX_BLOB {
            let msg = format!("the output has {len} bytes, and {MAX_BLOB} fit into memory");
            let error = ErrorValue::too_large(msg);
            return Err(error.with_hint("read a part by its reference and a slice, or feed it to a program"));
        }
        while (bytes.len() as u64) < len && !cancel.is_set() {
            match self.blob(run, hash, bytes.len() as u64)? {
                Some((part, _)) if !part.is_empty() => bytes.extend(part),
                Some(_) | None => return Ok(None),
            }
        }
        Ok(Some(bytes))
    }
}

impl Depot for Ports {
    fn announce(&self, run: RunId, stream: Stream, pipe: OwnedFd) -> Option<Receiver<Told>> {
        self.session.upgrade()?.broker.capture(run, stream == Stream::Stderr, pipe)
    }

    fn part(&self, run: RunId, hash: &str, offset: u64) -> Result<Vec<u8>, ErrorValue> {
        let part = self.blob(run, hash, offset)?;
        part.map(|(bytes, _)| bytes).ok_or_else(|| ErrorValue::new(code::NOT_FOUND, "the stored output is gone"))
    }
}

impl Journal for Ports {
    fn statement_begin(&self, source: &str, _span: Span) -> Result<u64, ErrorValue> {
        let entry = self.next.fetch_add(1, Ordering::Relaxed);
        let statement = Statement { run: RUN.get(), src: Text::cut(source), started: clock::now() };
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).insert(entry, statement);
        Ok(entry)
    }

    fn statement_end(&self, entry: u64, end: StatementEnd) {
        let statement = self.statements.lock().unwrap_or_else(PoisonError::into_inner).remove(&entry);
        let Some(Statement { run, src, started }) = statement.filter(|statement| statement.run != 0) else { return };
        let dur_ns = u64::try_from(clock::now().duration_since(started).as_nanos()).unwrap_or(u64::MAX);
        let Some(session) = self.session.upgrade() else { return };
        session.broker.statement(broker_worker::Statement { run, src, ok: end.ok, status: end.status, dur_ns });
    }

    fn query(&self, query: &JournalQuery, _cancel: &CancelToken) -> Result<Vec<JournalRow>, ErrorValue> {
        let mut params = json!({});
        if query.this_session
            && let Some(session) = self.session.upgrade()
        {
            params["session"] = session.facts["session"].clone();
        }
        let members = [("head", &query.head), ("principal", &query.principal)];
        for (name, value) in members {
            if let Some(value) = value {
                params[name] = (&**value).into();
            }
        }
        if let Some(limit) = query.limit {
            params["limit"] = limit.into();
        }
        let (answer, _) = self.ask(RUN.get(), UpMethod::Journal, &params)?;
        let rows: Vec<Json> = serde_json::from_slice(answer.body.as_slice())
            .map_err(|e| ErrorValue::new(code::IO_ERROR, format!("the journal's answer: {e}")))?;
        Ok(rows.iter().map(row).collect())
    }

    fn undo(&self, entry: Option<&str>, root: Option<&[u8]>, cancel: &CancelToken) -> Result<UndoReport, ErrorValue> {
        let named = entry.map(|entry| entry.parse::<i64>()).transpose();
        let named = named.map_err(|_| ErrorValue::arg_error("undo: an entry is named by its number"))?;
        let entries = match named {
            Some(entry) => vec![entry],
            None => self.newest_entries(cancel)?,
        };
        for entry in entries {
            let steps = self.steps(entry)?;
            if steps.is_empty() && named.is_none() {
                continue;
            }
            if let Some(root) = root {
                steps.iter().try_for_each(|step| step.stays_below(root))?;
            }
            let mut undone = self.undone.lock().unwrap_or_else(PoisonError::into_inner);
            let mut actions: Vec<Str> = Vec::new();
            if !undone.contains(&entry) {
                for step in &steps {
                    actions.extend(step.carry_out()?.map(Str::from));
                }
                undone.insert(entry);
            }
            drop(undone);
            return Ok(UndoReport { entry: entry.to_string().into(), undone: !actions.is_empty(), actions });
        }
        Err(ErrorValue::new(code::CUSTOM, "nothing to undo: no entry of this session has inverses"))
    }
}

/// Entries looked at for the newest one with inverses.
const LOOKED_AT: u64 = 100;

impl Ports {
    fn newest_entries(&self, cancel: &CancelToken) -> Result<Vec<i64>, ErrorValue> {
        let query = JournalQuery { this_session: true, limit: Some(LOOKED_AT), ..JournalQuery::default() };
        let rows = self.query(&query, cancel)?;
        Ok(rows.iter().filter_map(|row| row.id.parse().ok()).collect())
    }

    /// The inverses of an entry, newest first.
    fn steps(&self, entry: i64) -> Result<Vec<Inverse>, ErrorValue> {
        let (answer, _) = self.ask(RUN.get(), UpMethod::Undo, &json!({"action": "list", "entry": entry}))?;
        let damaged = |e: serde_json::Error| ErrorValue::new(code::IO_ERROR, format!("the journal's inverses: {e}"));
        let answer: Json = serde_json::from_slice(answer.body.as_slice()).map_err(damaged)?;
        let steps = answer["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
        steps.iter().map(|step| serde_json::from_value(step["inverse"].clone()).map_err(damaged)).collect()
    }
}

impl Recorder for Ports {
    fn is_open(&self) -> bool {
        RUN.get() != 0
    }

    fn record(&self, op: &str, inverse: &Inverse) {
        let params = json!({"action": "record", "op": op, "inverse": inverse});
        // Without a record the change stands and cannot be undone, which `undo` says by not listing it.
        let _unrecorded: Result<Told, ErrorValue> = self.ask(RUN.get(), UpMethod::Undo, &params);
    }
}

/// A row of the public protocol as an entry of the language.
fn row(row: &Json) -> JournalRow {
    let text = |value: &Json| -> Str {
        match value {
            Json::String(text) => text.as_str().into(),
            Json::Null => "".into(),
            other => other.to_string().into(),
        }
    };
    let ts = row["ts"].as_i64().and_then(|ns| jiff::Timestamp::from_nanosecond(ns.into()).ok());
    let effects = row["effects"].as_array().map(Vec::as_slice).unwrap_or_default();
    JournalRow {
        id: text(&row["id"]),
        ts: ts.unwrap_or_default(),
        principal: text(&row["principal"]),
        src: text(&row["src"]),
        ok: row["ok"].as_bool(),
        status: row["status"].as_i64(),
        effects: effects.iter().map(|effect| text(&effect["kind"])).collect(),
    }
}

/// A record of plain JSON: what `config` is.
pub(crate) fn record(json: &Json) -> Record {
    match shoal_value::json::parse(&json.to_string()) {
        Ok(Value::Record(record)) => record,
        Ok(_) | Err(_) => Record::empty(),
    }
}
