//! Reading rows.

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension as _, params, params_from_iter};
use serde_json::Value;

use crate::chain;
use crate::error::JournalError;
use crate::row::{Kept, Row, StoredOutput};

/// Kinds shown when a query names none.
const DEFAULT_KINDS: [&str; 6] = ["exec", "statement", "plan", "approval", "denial", "pty"];
/// Rows of one answer at most.
const MAX_LIMIT: u64 = 10_000;
/// Rows when the query does not say.
const DEFAULT_LIMIT: u64 = 100;
/// Text of one answer at most; an answer ends early rather than exceed it.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Filters; all apply before the limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// `ts >= since`.
    pub since: Option<i64>,
    /// `ts <= until`.
    pub until: Option<i64>,
    /// Exact principal.
    pub principal: Option<String>,
    /// Exact session name.
    pub session: Option<String>,
    /// First word of the source.
    pub head: Option<String>,
    /// Result; open rows never match.
    pub ok: Option<bool>,
    /// Effect kinds that must all be there, wire spelling.
    pub effects: Vec<String>,
    /// Row kinds, one of which it must be.
    pub kinds: Vec<String>,
    /// `id < before`.
    pub before: Option<i64>,
    /// 0 counts as 100.
    pub limit: u64,
    /// Whether outputs tell if their bytes are still stored.
    pub stored: bool,
    /// Only rows whose owner or principal this is.
    pub visible_to: Option<String>,
}

const COLUMNS: &str =
    "id, kind, parent_id, session, owner, principal, ts, dur_ns, cwd, env_hash, src, ast, effects, opaque,
    status, ok, ended, key, key_body, out, summary, detail, run, outputs, link";

/// Newest first.
pub(crate) fn run(db: &Connection, query: &Query) -> Result<Vec<Row>, JournalError> {
    let (sql, values) = build(query);
    let mut statement = db.prepare_cached(&sql)?;
    let mut cursor = statement.query(params_from_iter(values))?;
    let mut rows = Vec::new();
    let mut bytes = 0usize;
    while let Some(found) = cursor.next()? {
        let mut row = read(db, found)?;
        if query.stored {
            for output in &mut row.outputs {
                output.bytes = kept(db, &output.hash)?;
            }
        }
        bytes = bytes.saturating_add(row.weight());
        if bytes > MAX_BYTES && !rows.is_empty() {
            break;
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Looks for the bytes of an output without counting as a use of them.
fn kept(db: &Connection, hash: &str) -> Result<Kept, JournalError> {
    let Some(digest) = chain::unhex(hash) else { return Ok(Kept::Gone) };
    let mut statement = db.prepare_cached("SELECT stored_len FROM blob WHERE hash = ?1")?;
    let len = statement.query_row(params![digest], |found| found.get(0)).optional()?;
    Ok(len.map_or(Kept::Gone, Kept::Stored))
}

fn build(query: &Query) -> (String, Vec<Sql>) {
    let mut wheres: Vec<String> = Vec::new();
    let mut values: Vec<Sql> = Vec::new();
    let mut add = |clause: &str, value: Sql| {
        values.push(value);
        wheres.push(clause.replace('?', &format!("?{}", values.len())));
    };
    if let Some(since) = query.since {
        add("ts >= ?", Sql::Integer(since));
    }
    if let Some(until) = query.until {
        add("ts <= ?", Sql::Integer(until));
    }
    if let Some(before) = query.before {
        add("id < ?", Sql::Integer(before));
    }
    if let Some(principal) = &query.principal {
        add("principal = ?", Sql::Text(principal.clone()));
    }
    if let Some(session) = &query.session {
        add("session = ?", Sql::Text(session.clone()));
    }
    if let Some(visible) = &query.visible_to {
        add("(owner = ? OR principal = ?)", Sql::Text(visible.clone()));
    }
    if let Some(ok) = query.ok {
        add("ok = ?", Sql::Integer(i64::from(ok)));
    }
    for effect in &query.effects {
        add(
            "EXISTS (SELECT 1 FROM json_each(effects) WHERE json_extract(json_each.value, '$.kind') = ?)",
            Sql::Text(effect.clone()),
        );
    }
    if let Some(head) = &query.head {
        // The prefix narrows; the exact word is compared in the same statement.
        add(
            "ltrim(src, char(9,10,13,32)) = ? OR (substr(ltrim(src, char(9,10,13,32)), 1, length(?) ) = ? AND substr(ltrim(src, char(9,10,13,32)), length(?) + 1, 1) IN (char(9), char(10), char(13), ' '))",
            Sql::Text(head.clone()),
        );
        if let Some(last) = wheres.last_mut() {
            *last = format!("({last})");
        }
    }
    let named: Vec<&str> = query.kinds.iter().map(String::as_str).collect();
    let kinds = if named.is_empty() { DEFAULT_KINDS.to_vec() } else { named };
    let marks: Vec<String> = kinds
        .iter()
        .map(|kind| {
            values.push(Sql::Text((*kind).to_owned()));
            format!("?{}", values.len())
        })
        .collect();
    wheres.push(format!("kind IN ({})", marks.join(", ")));
    let limit = if query.limit == 0 { DEFAULT_LIMIT } else { query.limit.min(MAX_LIMIT) };
    (format!("SELECT {COLUMNS} FROM entry WHERE {} ORDER BY id DESC LIMIT {limit}", wheres.join(" AND ")), values)
}

/// One row by id.
pub(crate) fn by_id(db: &Connection, id: i64) -> Result<Option<Row>, JournalError> {
    let mut statement = db.prepare_cached(&format!("SELECT {COLUMNS} FROM entry WHERE id = ?1"))?;
    let mut cursor = statement.query(params![id])?;
    match cursor.next()? {
        Some(found) => Ok(Some(read(db, found)?)),
        None => Ok(None),
    }
}

fn json(text: Option<String>) -> Option<Value> {
    text.map(|t| serde_json::from_str(&t).unwrap_or(Value::Null))
}

/// The row without its newest link: what durable events are derived from, and what links are rebuilt from.
pub(crate) fn bare_by_id(db: &Connection, id: i64) -> Result<Option<Row>, JournalError> {
    let mut statement = db.prepare_cached(&format!("SELECT {COLUMNS} FROM entry WHERE id = ?1"))?;
    let mut cursor = statement.query(params![id])?;
    cursor.next()?.map(bare).transpose()
}

/// The row with its newest link.
fn read(db: &Connection, found: &rusqlite::Row<'_>) -> Result<Row, JournalError> {
    let row = bare(found)?;
    let (prev, digest) = chain::newest(db, found.get(24)?)?;
    Ok(Row { prev, digest, ..row })
}

fn bare(found: &rusqlite::Row<'_>) -> Result<Row, JournalError> {
    let env_hash: Option<Vec<u8>> = found.get(9)?;
    let effects: String = found.get(12)?;
    Ok(Row {
        id: found.get(0)?,
        kind: found.get(1)?,
        parent: found.get(2)?,
        session: found.get(3)?,
        owner: found.get(4)?,
        principal: found.get(5)?,
        ts: found.get(6)?,
        dur_ns: found.get(7)?,
        cwd: found.get(8)?,
        env_hash: env_hash.map(|h| chain::hex(&h)),
        src: found.get(10)?,
        ast: json(found.get(11)?),
        effects: serde_json::from_str(&effects).unwrap_or(Value::Null),
        opaque: found.get(13)?,
        status: found.get(14)?,
        ok: found.get(15)?,
        ended: found.get(16)?,
        key: found.get(17)?,
        key_body: found.get(18)?,
        out: found.get(19)?,
        summary: json(found.get(20)?),
        detail: json(found.get(21)?),
        run: found.get(22)?,
        outputs: StoredOutput::list(found.get(23)?),
        prev: None,
        digest: None,
    })
}

impl Row {
    /// About how many bytes of JSON it makes.
    fn weight(&self) -> usize {
        let ast = self.ast.as_ref().map_or(0, |a| a.to_string().len());
        512 + self.src.len() + self.effects.to_string().len() + ast + self.outputs.len() * 128
    }
}
