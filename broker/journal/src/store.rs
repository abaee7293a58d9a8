//! What jobs see: the database inside a transaction, and the content store beside it.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::chain::{self, Digest, Head, Part, Verified};
use crate::error::JournalError;
use crate::log_length::LogLength;
use crate::row::{Closing, Ended, Kept, NewRow, OutputData, Row, StoredOutput};
use crate::{cas, fs, query, schema};

/// How much room journal and content store take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Rows.
    pub rows: i64,
    /// Bytes of the database.
    pub db_bytes: u64,
    /// Bytes of the write-ahead log.
    pub wal_bytes: u64,
    /// Bytes of the content store, inside and beside the database.
    pub cas_bytes: u64,
}

/// Counter of the row from which on open rows are looked for.
const FLOOR: &str = "open/floor";
/// Rows that are closed before it is raised again.
const FLOOR_EVERY: u32 = 256;

/// The open journal. Jobs get it inside a transaction; it is never shared between threads.
#[derive(Debug)]
pub struct Store {
    pub(crate) db: Connection,
    pub(crate) dir: PathBuf,
    /// How long the write-ahead log is.
    pub(crate) log: LogLength,
    head: Head,
    /// Rows closed since the mark of open rows was raised.
    closed: u32,
    /// Blob files written since the last sync.
    pub(crate) unsynced: Vec<PathBuf>,
    /// Blobs deleted since the last commit.
    pub(crate) forgotten: Vec<Digest>,
    /// Files that no blob names are looked for after the commit.
    pub(crate) orphans_due: bool,
}

impl Store {
    /// Opens the journal of a state directory, which must exist, be ours and be private.
    pub(crate) fn open(dir: &Path) -> Result<Self, JournalError> {
        fs::check_state_dir(dir)?;
        let path = dir.join("journal.db");
        let (db, log) = LogLength::watch(schema::open(&path)?)?;
        fs::make_private(&path)?;
        let head = chain::head(&db)?;
        Ok(Self {
            db,
            dir: dir.to_owned(),
            log,
            head,
            closed: 0,
            unsynced: Vec::new(),
            forgotten: Vec::new(),
            orphans_due: false,
        })
    }

    /// After a rollback the chain's head is what the database says.
    pub(crate) fn reload_head(&mut self) -> Result<(), JournalError> {
        self.head = chain::head(&self.db)?;
        Ok(())
    }

    /// Writes a row and its opening link. Returns its id.
    pub fn open_row(&mut self, new: &NewRow) -> Result<i64, JournalError> {
        self.insert_row(new, None)
    }

    /// Writes the row, with its end when that is known, and its opening link.
    fn insert_row(&mut self, new: &NewRow, end: Option<(&Closing, &[StoredOutput])>) -> Result<i64, JournalError> {
        let env_hash = new.env_hash.map(|h| h.to_vec());
        let (key, key_body) = new.key.as_ref().map(|(k, b)| (k.as_str(), b.as_slice())).unzip();
        let (closing, outputs) = end.unzip();
        // The opening link, or the closing one after it.
        let newest = self.head.seq + if closing.is_some() { 2 } else { 1 };
        self.db
            .prepare_cached(
                "INSERT INTO entry (kind, parent_id, session, owner, principal, ts, cwd, env_hash, src, ast, effects, opaque, key, key_body, detail, run,
                   dur_ns, status, ok, ended, out, summary, outputs, link)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)",
            )?
            .execute(params![
                new.kind.name(), new.parent, new.session, new.owner, new.principal, new.ts, new.cwd, env_hash, new.src,
                new.ast.as_ref().map(ToString::to_string), new.effects.to_string(), new.is_opaque(), key, key_body,
                new.detail.as_ref().map(ToString::to_string), new.run, closing.map(|end| end.dur_ns),
                closing.and_then(|end| end.status), closing.map(|end| end.ok),
                closing.and_then(|end| end.ended).map(Ended::name), closing.and_then(|end| end.out),
                closing.and_then(|end| end.summary.as_ref()).map(ToString::to_string),
                outputs.and_then(StoredOutput::text), newest,
            ])?;
        let id = self.db.last_insert_rowid();
        let body = chain::open_body(&row_of(id, new));
        self.head = chain::append(&self.db, id, Part::Open, self.head, &body)?;
        Ok(id)
    }

    /// Closes a row: outputs, result and closing link. A row is closed once.
    pub fn close_row(&mut self, id: i64, closing: &Closing) -> Result<(), JournalError> {
        let (outputs, hashes) = self.put_outputs(closing)?;
        let closed: Option<(String, String)> = self
            .db
            .prepare_cached(
                "UPDATE entry SET dur_ns = ?2, status = ?3, ok = ?4, ended = ?5, out = ?6, summary = ?7, outputs = ?8, link = ?9
                 WHERE id = ?1 AND ok IS NULL RETURNING owner, principal",
            )?
            .query_row(
                params![
                    id, closing.dur_ns, closing.status, closing.ok, closing.ended.map(Ended::name), closing.out,
                    closing.summary.as_ref().map(ToString::to_string), StoredOutput::text(&outputs), self.head.seq + 1,
                ],
                |r| Ok((r.get(0)?, r.get(1)?)),
            )
            .optional()?;
        let (owner, principal) = closed.ok_or(JournalError::Unknown("open row"))?;
        self.own(&hashes, &outputs, &owner, &principal)?;
        self.link_close(id, closing, outputs)?;
        self.raise_floor()
    }

    /// Writes a row that is over already, in one statement where [`Store::open_row`] and [`Store::close_row`] need two.
    /// Returns its id.
    pub fn write_closed(&mut self, new: &NewRow, closing: &Closing) -> Result<i64, JournalError> {
        let (outputs, hashes) = self.put_outputs(closing)?;
        let id = self.insert_row(new, Some((closing, &outputs)))?;
        self.own(&hashes, &outputs, &new.owner, &new.principal)?;
        self.link_close(id, closing, outputs)?;
        Ok(id)
    }

    fn link_close(&mut self, id: i64, closing: &Closing, outputs: Vec<StoredOutput>) -> Result<(), JournalError> {
        let body = chain::close_body(&Row {
            dur_ns: Some(closing.dur_ns),
            status: closing.status,
            ok: Some(closing.ok),
            ended: closing.ended.map(|e| e.name().to_owned()),
            outputs,
            ..Row::closing_only(id)
        });
        self.head = chain::append(&self.db, id, Part::Close, self.head, &body)?;
        Ok(())
    }

    /// Writes a row that is closed at once: everything but executions. Returns its id.
    pub fn write_row(&mut self, new: &NewRow) -> Result<i64, JournalError> {
        self.write_closed(new, &Closing { ok: true, status: Some(0), ..Closing::default() })
    }

    /// Stores what a row closes with.
    fn put_outputs(&mut self, closing: &Closing) -> Result<(Vec<StoredOutput>, Vec<Digest>), JournalError> {
        let mut stored = Vec::with_capacity(closing.outputs.len());
        let mut hashes = Vec::with_capacity(closing.outputs.len());
        for output in &closing.outputs {
            let (hash, len) = match &output.data {
                OutputData::Bytes(bytes) => (self.put_blob(bytes)?, bytes.len() as u64),
                OutputData::Stored { hash, len } => (*hash, *len),
            };
            let len = i64::try_from(len).map_err(|_| JournalError::Invalid("output too long".to_owned()))?;
            hashes.push(hash);
            stored.push(StoredOutput {
                kind: output.kind.clone(),
                hash: chain::hex(&hash),
                len,
                meta: output.meta.clone(),
                bytes: Kept::Unknown,
            });
        }
        Ok((stored, hashes))
    }

    /// Notes who may read outputs: the owner of their session, and who asked.
    fn own(
        &self,
        hashes: &[Digest],
        outputs: &[StoredOutput],
        owner: &str,
        principal: &str,
    ) -> Result<(), JournalError> {
        let mut insert =
            self.db.prepare_cached("INSERT OR IGNORE INTO owned (hash, owner, kind) VALUES (?1, ?2, ?3)")?;
        for (hash, output) in hashes.iter().zip(outputs) {
            insert.execute(params![hash, owner, output.kind])?;
            if principal != owner {
                insert.execute(params![hash, principal, output.kind])?;
            }
        }
        Ok(())
    }

    /// Notes now and then from which row on open ones have to be looked for: an index of them would change twice for every
    /// execution.
    fn raise_floor(&mut self) -> Result<(), JournalError> {
        self.closed += 1;
        if self.closed < FLOOR_EVERY {
            return Ok(());
        }
        self.closed = 0;
        let floor = self.floor()?;
        let first: Option<i64> = self
            .db
            .prepare_cached("SELECT id FROM entry WHERE id >= ?1 AND ok IS NULL ORDER BY id LIMIT 1")?
            .query_row(params![floor], |r| r.get(0))
            .optional()?;
        let newest = || self.db.query_row("SELECT coalesce(max(id), 0) FROM entry", [], |r| r.get(0));
        let first = first.map_or_else(newest, Ok)?;
        self.raise_counter(FLOOR, first)
    }

    /// No row before this one is open.
    fn floor(&self) -> Result<i64, JournalError> {
        self.counter(FLOOR)
    }

    /// Rows that match, newest first.
    pub fn query(&self, query: &crate::Query) -> Result<Vec<Row>, JournalError> {
        query::run(&self.db, query)
    }

    /// One row.
    pub fn row(&self, id: i64) -> Result<Row, JournalError> {
        query::by_id(&self.db, id)?.ok_or(JournalError::Unknown("row"))
    }

    /// One row without its newest link: what durable events are derived from.
    pub fn bare_row(&self, id: i64) -> Result<Row, JournalError> {
        query::bare_by_id(&self.db, id)?.ok_or(JournalError::Unknown("row"))
    }

    /// The row of a key in a session, the newest one.
    pub fn row_of_key(&self, owner: &str, session: &str, key: &str) -> Result<Option<Row>, JournalError> {
        let id: Option<i64> = self
            .db
            .prepare_cached("SELECT max(id) FROM entry WHERE owner = ?1 AND session = ?2 AND key = ?3")?
            .query_row(params![owner, session, key], |r| r.get(0))?;
        id.map(|id| self.row(id)).transpose()
    }

    /// The row whose result is `out:N` of a session.
    pub fn row_of_out(&self, owner: &str, session: &str, out: i64) -> Result<Option<Row>, JournalError> {
        let id: Option<i64> = self
            .db
            .prepare_cached("SELECT max(id) FROM entry WHERE owner = ?1 AND session = ?2 AND out = ?3")?
            .query_row(params![owner, session, out], |r| r.get(0))?;
        id.map(|id| self.row(id)).transpose()
    }

    /// The last `out:N` that a session had before it was last made; 0 without one.
    pub fn out_before_creation(&self, owner: &str, session: &str) -> Result<i64, JournalError> {
        // Results are numbered as they end, and no more than a few runs of a session are open at a time.
        let sql = "SELECT coalesce(max(out), 0) FROM (
            SELECT out FROM entry WHERE owner = ?1 AND session = ?2 AND out IS NOT NULL AND id < (
                SELECT coalesce(max(id), 0) FROM entry WHERE owner = ?1 AND session = ?2 AND kind = 'session'
                    AND detail ->> '$.action' = 'created')
            ORDER BY id DESC LIMIT 64)";
        Ok(self.db.prepare_cached(sql)?.query_row(params![owner, session], |row| row.get(0))?)
    }

    /// Rows that are still open, oldest first.
    pub fn open_rows(&self) -> Result<Vec<Row>, JournalError> {
        let mut ids = self.db.prepare_cached("SELECT id FROM entry WHERE id >= ?1 AND ok IS NULL ORDER BY id")?;
        let ids = ids.query_map([self.floor()?], |r| r.get(0))?.collect::<Result<Vec<i64>, _>>()?;
        ids.into_iter().map(|id| self.row(id)).collect()
    }

    /// Recomputes the chain. `head` is a digest noted earlier, 64 lower-case hex digits.
    pub fn verify(&self, head: Option<&str>) -> Result<Verified, JournalError> {
        if head.is_some_and(|h| chain::unhex(h).is_none()) {
            return Err(JournalError::Invalid("head is not 64 lowercase hex digits".to_owned()));
        }
        chain::verify(&self.db, head)
    }

    /// Digest of the newest link, hex; `None` for an empty chain.
    pub fn head(&self) -> Option<String> {
        (self.head.seq != 0).then(|| chain::hex(&self.head.digest))
    }

    /// Bytes of the content store, inside and beside the database.
    pub fn cas_bytes(&self) -> Result<u64, JournalError> {
        let bytes: i64 = self.db.query_row("SELECT coalesce(sum(stored_len), 0) FROM blob", [], |r| r.get(0))?;
        Ok(u64::try_from(bytes).unwrap_or(0))
    }

    /// Room taken.
    pub fn usage(&self) -> Result<Usage, JournalError> {
        let rows = self.db.query_row("SELECT count(*) FROM entry", [], |r| r.get(0))?;
        let size = |name: &str| std::fs::metadata(self.dir.join(name)).map_or(0, |m| m.len());
        Ok(Usage {
            rows,
            db_bytes: size("journal.db"),
            wal_bytes: size("journal.db-wal"),
            cas_bytes: self.cas_bytes()?,
        })
    }

    /// Whether a caller's rows reference a blob.
    pub fn owns_blob(&self, hash: &Digest, principal: &str) -> Result<bool, JournalError> {
        let sql = "SELECT 1 FROM owned WHERE hash = ?1 AND owner = ?2";
        Ok(self.db.prepare_cached(sql)?.query_row(params![hash, principal], |_| Ok(())).optional()?.is_some())
    }

    /// Kind of an output a blob was stored as.
    pub fn blob_kind(&self, hash: &Digest) -> Result<Option<String>, JournalError> {
        let sql = "SELECT kind FROM owned WHERE hash = ?1 LIMIT 1";
        Ok(self.db.prepare_cached(sql)?.query_row(params![hash], |r| r.get(0)).optional()?)
    }

    /// Opens the database again, as it lies there now, and looks through all of it; the first thing that is wrong is the
    /// error. What can be read stays readable.
    pub(crate) fn reopen(&mut self) -> Result<(), JournalError> {
        // The old connection goes first: it holds the lock.
        drop(std::mem::replace(&mut self.db, Connection::open_in_memory()?));
        (self.db, self.log) = LogLength::watch(schema::open(&self.dir.join("journal.db"))?)?;
        let found: String = self.db.query_row("PRAGMA quick_check(1)", [], |r| r.get(0))?;
        if found != "ok" {
            return Err(JournalError::Unusable(found));
        }
        self.reload_head()
    }

    /// Syncs what was written since the last sync: blob files, their directories, then the write-ahead log.
    pub(crate) fn sync(&mut self) -> Result<(), JournalError> {
        cas::sync_files(&mut self.unsynced)?;
        fs::sync_file(&self.dir.join("journal.db-wal"))
    }
}

/// The row as verification will read it back.
fn row_of(id: i64, new: &NewRow) -> Row {
    Row {
        kind: new.kind.name().to_owned(),
        parent: new.parent,
        session: new.session.clone(),
        owner: new.owner.clone(),
        principal: new.principal.clone(),
        ts: new.ts,
        cwd: new.cwd.clone(),
        env_hash: new.env_hash.map(|h| chain::hex(&h)),
        src: new.src.clone(),
        effects: new.effects.clone(),
        opaque: new.is_opaque(),
        key: new.key.as_ref().map(|(key, _)| key.clone()),
        detail: new.detail.clone(),
        ..Row::closing_only(id)
    }
}

impl Row {
    /// A row of which only the closing members matter.
    fn closing_only(id: i64) -> Self {
        Self {
            id,
            kind: String::new(),
            parent: None,
            session: String::new(),
            owner: String::new(),
            principal: String::new(),
            ts: 0,
            dur_ns: None,
            cwd: Vec::new(),
            env_hash: None,
            src: String::new(),
            ast: None,
            effects: serde_json::Value::Array(Vec::new()),
            opaque: false,
            status: None,
            ok: None,
            ended: None,
            key: None,
            key_body: None,
            run: None,
            out: None,
            summary: None,
            detail: None,
            outputs: Vec::new(),
            prev: None,
            digest: None,
        }
    }
}
