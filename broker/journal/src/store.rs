//! What jobs see: the database inside a transaction, and the content store beside it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::hooks::Wal;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::chain::{self, Digest, Verified};
use crate::error::JournalError;
use crate::row::{Closing, Ended, NewRow, Output, OutputData, Row, StoredOutput};
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

/// The open journal. Jobs get it inside a transaction; it is never shared between threads.
#[derive(Debug)]
pub struct Store {
    pub(crate) db: Connection,
    pub(crate) dir: PathBuf,
    /// How long the write-ahead log is.
    pub(crate) log: LogLength,
    head: Digest,
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
        Ok(Self { db, dir: dir.to_owned(), log, head, unsynced: Vec::new(), forgotten: Vec::new(), orphans_due: false })
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
    fn insert_row(&mut self, new: &NewRow, end: Option<&Closing>) -> Result<i64, JournalError> {
        let env_hash = new.env_hash.map(|h| h.to_vec());
        let (key, key_body) = new.key.as_ref().map(|(k, b)| (k.as_str(), b.as_slice())).unzip();
        self.db
            .prepare_cached(
                "INSERT INTO entry (kind, parent_id, session, owner, principal, ts, cwd, env_hash, src, ast, effects, opaque, key, key_body, detail, run,
                   dur_ns, status, ok, ended, out, summary)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)",
            )?
            .execute(params![
                new.kind.name(), new.parent, new.session, new.owner, new.principal, new.ts, new.cwd, env_hash, new.src,
                new.ast.as_ref().map(ToString::to_string), new.effects.to_string(), new.is_opaque(), key, key_body,
                new.detail.as_ref().map(ToString::to_string), new.run, end.map(|end| end.dur_ns),
                end.and_then(|end| end.status), end.map(|end| end.ok), end.and_then(|end| end.ended).map(Ended::name),
                end.and_then(|end| end.out), end.and_then(|end| end.summary.as_ref()).map(ToString::to_string),
            ])?;
        let id = self.db.last_insert_rowid();
        let body = chain::open_body(&row_of(id, new));
        self.head = chain::append(&self.db, id, "open", self.head, &body)?;
        Ok(id)
    }

    /// Closes a row: outputs, result and closing link. A row is closed once.
    pub fn close_row(&mut self, id: i64, closing: &Closing) -> Result<(), JournalError> {
        let changed = self
            .db
            .prepare_cached(
                "UPDATE entry SET dur_ns = ?2, status = ?3, ok = ?4, ended = ?5, out = ?6, summary = ?7 WHERE id = ?1 AND ok IS NULL",
            )?
            .execute(params![
                id, closing.dur_ns, closing.status, closing.ok, closing.ended.map(Ended::name), closing.out,
                closing.summary.as_ref().map(ToString::to_string),
            ])?;
        if changed == 0 {
            return Err(JournalError::Unknown("open row"));
        }
        self.link_close(id, closing)
    }

    /// Writes the outputs and the closing link of a row that has its end.
    fn link_close(&mut self, id: i64, closing: &Closing) -> Result<(), JournalError> {
        let mut stored = Vec::with_capacity(closing.outputs.len());
        for output in &closing.outputs {
            stored.push(self.put_output(id, output)?);
        }
        let body = chain::close_body(&Row {
            dur_ns: Some(closing.dur_ns),
            status: closing.status,
            ok: Some(closing.ok),
            ended: closing.ended.map(|e| e.name().to_owned()),
            outputs: stored,
            ..Row::closing_only(id)
        });
        self.head = chain::append(&self.db, id, "close", self.head, &body)?;
        Ok(())
    }

    /// Writes a row that is over already, in one statement where [`Store::open_row`] and [`Store::close_row`] need two.
    /// Returns its id.
    pub fn write_closed(&mut self, new: &NewRow, closing: &Closing) -> Result<i64, JournalError> {
        let id = self.insert_row(new, Some(closing))?;
        self.link_close(id, closing)?;
        Ok(id)
    }

    /// Writes a row that is closed at once: everything but executions. Returns its id.
    pub fn write_row(&mut self, new: &NewRow) -> Result<i64, JournalError> {
        self.write_closed(new, &Closing { ok: true, status: Some(0), ..Closing::default() })
    }

    fn put_output(&mut self, id: i64, output: &Output) -> Result<StoredOutput, JournalError> {
        let (hash, len) = match &output.data {
            OutputData::Bytes(bytes) => (self.put_blob(bytes)?, bytes.len() as u64),
            OutputData::Stored { hash, len } => (*hash, *len),
        };
        let len = i64::try_from(len).map_err(|_| JournalError::Invalid("output too long".to_owned()))?;
        self.db
            .prepare_cached("INSERT INTO output (entry_id, kind, hash, len, meta) VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![id, output.kind, hash, len, output.meta.as_ref().map(ToString::to_string)])?;
        Ok(StoredOutput { kind: output.kind.clone(), hash: chain::hex(&hash), len, meta: output.meta.clone() })
    }

    /// Rows that match, newest first.
    pub fn query(&self, query: &crate::Query) -> Result<Vec<Row>, JournalError> {
        query::run(&self.db, query)
    }

    /// One row.
    pub fn row(&self, id: i64) -> Result<Row, JournalError> {
        query::by_id(&self.db, id)?.ok_or(JournalError::Unknown("row"))
    }

    /// One row without its outputs and links: what durable events are derived from.
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

    /// Rows that are still open, oldest first.
    pub fn open_rows(&self) -> Result<Vec<Row>, JournalError> {
        let mut ids = self.db.prepare_cached("SELECT id FROM entry WHERE ok IS NULL ORDER BY id")?;
        let ids = ids.query_map([], |r| r.get(0))?.collect::<Result<Vec<i64>, _>>()?;
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
        (self.head != [0; 32]).then(|| chain::hex(&self.head))
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
        let sql = "SELECT 1 FROM output JOIN entry ON entry.id = output.entry_id
            WHERE output.hash = ?1 AND (entry.owner = ?2 OR entry.principal = ?2) LIMIT 1";
        Ok(self.db.prepare_cached(sql)?.query_row(params![hash, principal], |_| Ok(())).optional()?.is_some())
    }

    /// Kind of the output a blob was stored as, the first one.
    pub fn blob_kind(&self, hash: &Digest) -> Result<Option<String>, JournalError> {
        let sql = "SELECT kind FROM output WHERE hash = ?1 ORDER BY entry_id LIMIT 1";
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

/// Pages of the write-ahead log, as the database tells after each commit.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogLength(Arc<AtomicU32>);

impl LogLength {
    fn watch(mut db: Connection) -> Result<(Connection, Self), JournalError> {
        let length = Self::default();
        let told = length.clone();
        db.wal_hook(Some(move |_: &mut Wal, pages| {
            told.0.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok((db, length))
    }

    pub(crate) fn pages(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// All of it is in the database: the next commit starts it again.
    pub(crate) fn restarts(&self) {
        self.0.store(0, Ordering::Relaxed);
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
