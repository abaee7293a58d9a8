//! Inverses of what a row did. They are kept here and replayed inside the session's jail, never by the broker.

use rusqlite::params;
use serde_json::Value;

use crate::error::JournalError;
use crate::store::Store;

/// One inverse.
#[derive(Clone, Debug, PartialEq)]
pub struct UndoRecord {
    /// `trash_move`, `restore_bytes`, `move_back` or `delete_created`.
    pub op: String,
    /// Its arguments and the fingerprint of the state it expects.
    pub inverse: Value,
}

impl Store {
    /// Adds an inverse to a row.
    pub fn add_undo(&mut self, entry: i64, record: &UndoRecord) -> Result<(), JournalError> {
        self.db.prepare_cached("INSERT INTO undo (entry_id, op, inverse) VALUES (?1, ?2, ?3)")?.execute(params![
            entry,
            record.op,
            record.inverse.to_string()
        ])?;
        Ok(())
    }

    /// The inverses of a row, newest first: the order they are replayed in.
    pub fn undo_records(&self, entry: i64) -> Result<Vec<UndoRecord>, JournalError> {
        let mut statement =
            self.db.prepare_cached("SELECT op, inverse FROM undo WHERE entry_id = ?1 ORDER BY rowid DESC")?;
        let found = statement.query_map(params![entry], |r| {
            let inverse: String = r.get(1)?;
            Ok(UndoRecord { op: r.get(0)?, inverse: serde_json::from_str(&inverse).unwrap_or(Value::Null) })
        })?;
        Ok(found.collect::<Result<_, _>>()?)
    }
}
