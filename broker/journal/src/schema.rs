//! The database file: its settings, its tables, and the checks before it is trusted.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::JournalError;

/// `SHJL`: the file is a Shoal journal.
const APPLICATION_ID: i64 = 0x5348_4A4C;
/// Version of the tables. 1: first. 2: outputs stand in their row, fewer indexes.
const USER_VERSION: i64 = 2;
/// A write-ahead log that grew beyond this is cut back to it when it starts again.
const JOURNAL_SIZE_LIMIT: i64 = 64 * 1024 * 1024;

// Every index is a page more in the log of each commit; so a row names its newest link and holds its outputs, and open rows
// are looked for from a mark on (`store.rs`).
const TABLES: &str = "
CREATE TABLE entry (
  id INTEGER PRIMARY KEY, kind TEXT NOT NULL, parent_id INTEGER, session TEXT NOT NULL, owner TEXT NOT NULL,
  principal TEXT NOT NULL, ts INTEGER NOT NULL, dur_ns INTEGER, cwd BLOB NOT NULL, env_hash BLOB, src TEXT NOT NULL,
  ast TEXT, effects TEXT NOT NULL, opaque INTEGER NOT NULL, status INTEGER, ok INTEGER, ended TEXT, key TEXT,
  key_body BLOB, run INTEGER, out INTEGER, summary TEXT, detail TEXT,
  outputs TEXT, link INTEGER NOT NULL) STRICT;
CREATE INDEX entry_ts ON entry (ts);
CREATE INDEX entry_session ON entry (owner, session, id);
CREATE INDEX entry_key ON entry (owner, session, key) WHERE key IS NOT NULL;
CREATE TABLE link (
  seq INTEGER PRIMARY KEY, entry_id INTEGER NOT NULL, closes INTEGER NOT NULL, digest BLOB NOT NULL) STRICT;
CREATE TABLE owned (
  hash BLOB NOT NULL, owner TEXT NOT NULL, kind TEXT NOT NULL, PRIMARY KEY (hash, owner)) STRICT, WITHOUT ROWID;
CREATE TABLE undo (entry_id INTEGER NOT NULL, op TEXT NOT NULL, inverse TEXT NOT NULL) STRICT;
CREATE INDEX undo_entry ON undo (entry_id);
CREATE TABLE pin (hash BLOB PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE blob (
  hash BLOB PRIMARY KEY, stored_len INTEGER NOT NULL, created_ns INTEGER NOT NULL, last_access_ns INTEGER NOT NULL,
  data BLOB) STRICT;
CREATE TABLE durable_event (
  owner TEXT NOT NULL, channel TEXT NOT NULL, seq INTEGER NOT NULL, entry_id INTEGER NOT NULL,
  PRIMARY KEY (owner, channel, seq)) STRICT, WITHOUT ROWID;
CREATE TABLE plan (ref TEXT PRIMARY KEY, owner TEXT NOT NULL, session TEXT NOT NULL, principal TEXT NOT NULL,
  state TEXT NOT NULL, created_ns INTEGER NOT NULL, expires_ns INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
CREATE TABLE watch (owner TEXT NOT NULL, session TEXT NOT NULL, name TEXT NOT NULL, uri TEXT NOT NULL, on_event TEXT,
  lang TEXT NOT NULL, PRIMARY KEY (owner, session, name)) STRICT, WITHOUT ROWID;
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
";

/// Opens or makes the database of a state directory.
pub(crate) fn open(path: &Path) -> Result<Connection, JournalError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let db = Connection::open_with_flags(path, flags)?;
    db.set_prepared_statement_cache_capacity(64);
    db.busy_timeout(std::time::Duration::from_secs(5))?;
    harden(&db)?;
    db.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    let mode: String = db.query_row("PRAGMA journal_mode=WAL", [], |r| r.get(0))?;
    if mode != "wal" {
        return Err(JournalError::Unusable(format!("{} cannot use a write-ahead log ({mode})", path.display())));
    }
    db.pragma_update(None, "synchronous", "NORMAL")?;
    db.pragma_update(None, "journal_size_limit", JOURNAL_SIZE_LIMIT)?;
    // Checkpoints run when the queue is empty, never inside a commit.
    db.pragma_update(None, "wal_autocheckpoint", 0)?;
    migrate(&db, path)?;
    Ok(db)
}

/// A planted schema must not run anything of its own.
fn harden(db: &Connection) -> Result<(), JournalError> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    // The process that owns the journal may open nothing outside the state directory, a temporary directory included.
    db.pragma_update(None, "temp_store", "MEMORY")?;
    db.pragma_update(None, "trusted_schema", false)?;
    db.pragma_update(None, "cell_size_check", true)?;
    // A plan that depends on bound values would be made again whenever they change: at every row.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

fn migrate(db: &Connection, path: &Path) -> Result<(), JournalError> {
    let number = |name: &str| db.query_row(&format!("PRAGMA {name}"), [], |r| r.get::<_, i64>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |r| r.get(0))?;
    if tables == 0 && application == 0 && version == 0 {
        let script = format!(
            "BEGIN IMMEDIATE; {TABLES} PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={USER_VERSION}; COMMIT;"
        );
        return Ok(db.execute_batch(&script)?);
    }
    if application != APPLICATION_ID {
        return Err(JournalError::Unusable(format!("{} is not a Shoal journal", path.display())));
    }
    if version != USER_VERSION {
        return Err(JournalError::Unusable(format!(
            "{} has version {version}; this build reads version {USER_VERSION}",
            path.display()
        )));
    }
    check_schema(db, path)
}

/// The tables must be the ones we make: the hash of their texts is compared, so a planted table or index is seen.
fn check_schema(db: &Connection, path: &Path) -> Result<(), JournalError> {
    let fresh = Connection::open_in_memory()?;
    fresh.execute_batch(TABLES)?;
    if texts(db)? == texts(&fresh)? {
        Ok(())
    } else {
        Err(JournalError::Unusable(format!("{} has tables this build did not make", path.display())))
    }
}

fn texts(db: &Connection) -> Result<Vec<String>, JournalError> {
    let mut statement =
        db.prepare("SELECT coalesce(sql, name) FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%' ORDER BY 1")?;
    let texts = statement.query_map([], |r| r.get(0))?.collect::<Result<Vec<String>, _>>()?;
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_not_ours() {
        let dir = tempfile::tempdir().expect("temp dir");
        let path = dir.path().join("journal.db");
        drop(open(&path).expect("made"));
        drop(open(&path).expect("opened again"));
        let db = Connection::open(&path).expect("opens");
        db.execute_batch("CREATE TABLE planted (x)").expect("planted");
        drop(db);
        assert!(matches!(open(&path), Err(JournalError::Unusable(text)) if text.contains("did not make")));

        let other = dir.path().join("other.db");
        let db = Connection::open(&other).expect("opens");
        db.execute_batch("CREATE TABLE x (y); PRAGMA user_version=1").expect("made");
        drop(db);
        assert!(matches!(open(&other), Err(JournalError::Unusable(text)) if text.contains("not a Shoal journal")));

        let garbage = dir.path().join("garbage.db");
        std::fs::write(&garbage, vec![7u8; 8192]).expect("written");
        assert!(matches!(open(&garbage), Err(JournalError::Unusable(_))));
    }
}
