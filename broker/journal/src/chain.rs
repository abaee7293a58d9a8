//! The hash chain: one link when a row opens, one when it closes. Bodies are rebuilt from the row, never stored.

use std::collections::HashMap;
use std::fmt::Write as _;

use base64::Engine as _;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::Value;

use crate::error::JournalError;
use crate::row::Row;

/// Digest of a link.
pub(crate) type Digest = [u8; 32];

/// Outcome of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Every link matches, and the head asked for was found.
    pub ok: bool,
    /// Rows there are.
    pub rows: i64,
    /// Digest of the newest link, hex; `None` when empty.
    pub head: Option<String>,
    /// Row of the first link that does not match.
    pub first_bad: Option<i64>,
    /// Whether a link has the digest asked for.
    pub head_found: Option<bool>,
}

/// The newest link: its number, 0 before the first, and its digest, zero bytes before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) seq: i64,
    pub(crate) digest: Digest,
}

/// Which of a row's two links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Open,
    Close,
}

/// Appends a link and returns it as the new head. What it follows is not stored with it: that is the link before.
pub(crate) fn append(db: &Connection, entry: i64, part: Part, head: Head, body: &str) -> Result<Head, JournalError> {
    let (seq, digest) = (head.seq + 1, link(&head.digest, body));
    db.prepare_cached("INSERT INTO link (seq, entry_id, closes, digest) VALUES (?1, ?2, ?3, ?4)")?.execute(params![
        seq,
        entry,
        part == Part::Close,
        digest
    ])?;
    Ok(Head { seq, digest })
}

/// Digests of the newest link of a row and of the link before, as hex.
pub(crate) fn newest(db: &Connection, seq: i64) -> Result<(Option<String>, Option<String>), JournalError> {
    let digest = |seq: i64| {
        let mut statement = db.prepare_cached("SELECT digest FROM link WHERE seq = ?1")?;
        statement.query_row(params![seq], |r| r.get::<_, Vec<u8>>(0)).optional()
    };
    let Some(newest) = digest(seq)? else { return Ok((None, None)) };
    let prev = if seq == 1 { Some(vec![0; 32]) } else { digest(seq - 1)? };
    Ok((prev.map(|prev| hex(&prev)), Some(hex(&newest))))
}

/// The newest link of the database.
pub(crate) fn head(db: &Connection) -> Result<Head, JournalError> {
    let newest = db
        .prepare_cached("SELECT seq, digest FROM link ORDER BY seq DESC LIMIT 1")?
        .query_row([], |r| Ok(Head { seq: r.get(0)?, digest: r.get(1)? }));
    Ok(newest.optional()?.unwrap_or_default())
}

fn link(prev: &Digest, body: &str) -> Digest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(prev);
    hasher.update(body.as_bytes());
    *hasher.finalize().as_bytes()
}

/// Rows kept from their opening to their closing link: as many as can be open at a time, and some.
const OPENED: usize = 512;

/// Recomputes the chain from its first link.
pub(crate) fn verify(db: &Connection, wanted: Option<&str>) -> Result<Verified, JournalError> {
    let rows = db.query_row("SELECT count(*) FROM entry", [], |r| r.get(0))?;
    let mut links = db.prepare("SELECT entry_id, closes, digest FROM link ORDER BY seq")?;
    let mut cursor = links.query([])?;
    let mut due: Digest = [0; 32];
    let mut first_bad = None;
    let mut found = false;
    let mut opened: HashMap<i64, Row> = HashMap::new();
    while let Some(row) = cursor.next()? {
        let entry: i64 = row.get(0)?;
        let part = match row.get::<_, i64>(1)? {
            0 => Some(Part::Open),
            1 => Some(Part::Close),
            _ => None,
        };
        let digest: Vec<u8> = row.get(2)?;
        found |= wanted.is_some_and(|w| hex(&digest) == w);
        let row = match opened.remove(&entry) {
            Some(row) => Some(row),
            None => crate::query::bare_by_id(db, entry)?,
        };
        let body = row.as_ref().zip(part).map(|(row, part)| match part {
            Part::Open => open_body(row),
            Part::Close => close_body(row),
        });
        let good = body.is_some_and(|body| link(&due, &body).as_slice() == digest.as_slice());
        if !good && first_bad.is_none() {
            first_bad = Some(entry);
        }
        if let Some(row) = row.filter(|_| part == Some(Part::Open) && opened.len() < OPENED) {
            // Its closing link is near.
            opened.insert(entry, row);
        }
        // Go on from what is stored, so that one bad link is not reported for all that follow it.
        due = digest.try_into().unwrap_or([0; 32]);
    }
    if first_bad.is_none() {
        first_bad = unlinked(db)?;
    }
    let head = (due != [0; 32]).then(|| hex(&due));
    let head_found = wanted.map(|_| found);
    Ok(Verified { ok: first_bad.is_none() && head_found != Some(false), rows, head, first_bad, head_found })
}

/// What the links alone do not tell: a row without its link or with one too many, or that names another as its newest, a
/// closed row that looks open or the other way round, a truth that is neither.
fn unlinked(db: &Connection) -> Result<Option<i64>, JournalError> {
    let sql = "WITH linked AS (
          SELECT entry_id, sum(closes = 0) AS opened, sum(closes = 1) AS closed, max(seq) AS newest
          FROM link GROUP BY entry_id)
        SELECT min(id) FROM entry LEFT JOIN linked ON entry_id = id
        WHERE opened IS NOT 1 OR closed > 1 OR link IS NOT newest
          OR closed = 0 AND (ok IS NOT NULL OR dur_ns IS NOT NULL OR status IS NOT NULL OR ended IS NOT NULL
            OR outputs IS NOT NULL)
          OR closed = 1 AND (ok IS NULL OR dur_ns IS NULL)
          OR opaque NOT IN (0, 1) OR ok NOT IN (0, 1)";
    Ok(db.query_row(sql, [], |r| r.get(0))?)
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        // Writing to a String cannot fail.
        if write!(out, "{byte:02x}").is_err() {
            out.clear();
        }
        out
    })
}

/// Bytes of lower-case hex of a digest.
pub(crate) fn unhex(text: &str) -> Option<Digest> {
    if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
        return None;
    }
    let mut out = [0; 32];
    for (byte, pair) in out.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(out)
}

/// Canonical JSON: members sorted by name bytes, no blank space.
pub(crate) fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
            out.push('{');
            for (i, (name, member)) in sorted.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                string(name, out);
                out.push(':');
                canonical(member, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                canonical(item, out);
            }
            out.push(']');
        }
        Value::String(text) => string(text, out),
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
    }
}

fn string(text: &str, out: &mut String) {
    out.push_str(&Value::from(text).to_string());
}

/// One member of a body; the caller gives them in order of their names.
struct Body(String);

impl Body {
    fn new() -> Self {
        Self("{".to_owned())
    }

    fn member(mut self, name: &str, value: impl FnOnce(&mut String)) -> Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        string(name, &mut self.0);
        self.0.push(':');
        value(&mut self.0);
        self
    }

    fn text(self, name: &str, value: &str) -> Self {
        self.member(name, |out| string(value, out))
    }

    fn text_or_null(self, name: &str, value: Option<&str>) -> Self {
        self.member(name, |out| match value {
            Some(text) => string(text, out),
            None => out.push_str("null"),
        })
    }

    fn done(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Body of a row's opening link.
pub(crate) fn open_body(row: &Row) -> String {
    let parent = row.parent.map(|p| p.to_string());
    Body::new()
        .text("cwd", &base64::engine::general_purpose::STANDARD.encode(&row.cwd))
        .member("detail", |out| canonical(row.detail.as_ref().unwrap_or(&Value::Null), out))
        .member("effects", |out| canonical(&row.effects, out))
        .text_or_null("env_hash", row.env_hash.as_deref())
        .text("id", &row.id.to_string())
        .text_or_null("key", row.key.as_deref())
        .text("kind", &row.kind)
        .member("opaque", |out| out.push_str(if row.opaque { "true" } else { "false" }))
        .text("owner", &row.owner)
        .text_or_null("parent", parent.as_deref())
        .text("principal", &row.principal)
        .text("session", &row.session)
        .text("src", &row.src)
        .text("t", "open")
        .text("ts", &row.ts.to_string())
        .done()
}

/// Body of a row's closing link.
pub(crate) fn close_body(row: &Row) -> String {
    let outputs: Vec<Value> =
        row.outputs.iter().map(|o| Value::from(vec![o.kind.clone(), o.hash.clone(), o.len.to_string()])).collect();
    Body::new()
        .text("dur_ns", &row.dur_ns.unwrap_or(0).to_string())
        .text_or_null("ended", row.ended.as_deref())
        .text("id", &row.id.to_string())
        .member("ok", |out| out.push_str(if row.ok == Some(true) { "true" } else { "false" }))
        .member("outputs", |out| canonical(&Value::Array(outputs), out))
        .member("status", |out| out.push_str(&row.status.map_or("null".to_owned(), |s| s.to_string())))
        .text("t", "close")
        .done()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: &str = r#"{"cwd":"L3Nydi9zaXRl","detail":null,"effects":[],"env_hash":"b86666cff12174879e00c8562c874bb6c29e6ccdd92bdb50d747df759c56fcf1","id":"1","key":null,"kind":"exec","opaque":false,"owner":"uid:1000","parent":null,"principal":"uid:1000","session":"default","src":"6*7","t":"open","ts":"1796006335496745286"}"#;
    const CLOSE: &str = r#"{"dur_ns":"1200000","ended":null,"id":"1","ok":true,"outputs":[],"status":0,"t":"close"}"#;

    fn row() -> Row {
        Row {
            id: 1,
            kind: "exec".into(),
            parent: None,
            session: "default".into(),
            owner: "uid:1000".into(),
            principal: "uid:1000".into(),
            ts: 1_796_006_335_496_745_286,
            dur_ns: Some(1_200_000),
            cwd: b"/srv/site".to_vec(),
            env_hash: Some("b86666cff12174879e00c8562c874bb6c29e6ccdd92bdb50d747df759c56fcf1".into()),
            src: "6*7".into(),
            ast: None,
            effects: Value::Array(vec![]),
            opaque: false,
            status: Some(0),
            ok: Some(true),
            ended: None,
            key: None,
            key_body: None,
            run: None,
            out: Some(1),
            summary: None,
            detail: None,
            outputs: vec![],
            prev: None,
            digest: None,
        }
    }

    #[test]
    fn published_vectors() {
        assert_eq!(open_body(&row()), OPEN);
        assert_eq!(close_body(&row()), CLOSE);
        let first = link(&[0; 32], OPEN);
        assert_eq!(hex(&first), "110ed7f67480d4b3d014cf30d1c718b0cc359d6612d94b9d9aaa51ac99b6ded8");
        let second = link(&first, CLOSE);
        assert_eq!(hex(&second), "2207187b6cf7f70db785f0cf671d41053ef5e7c6c729dfdc00b05c5a6f75343f");
        assert_eq!(unhex(&hex(&second)), Some(second));
        assert_eq!(unhex("ZZ"), None);
    }

    #[test]
    fn canonical_sorts_nested_members() {
        let mut out = String::new();
        canonical(&serde_json::json!({"b": {"z": 1, "a": "\u{1}\"é"}, "a": [true, null]}), &mut out);
        assert_eq!(out, r#"{"a":[true,null],"b":{"a":"\u0001\"é","z":1}}"#);
    }
}
