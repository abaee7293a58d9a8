//! Numbers that go on over restarts: `out:N` per session, tasks, terminals, event marks.

use rusqlite::{OptionalExtension as _, params};

use crate::error::JournalError;
use crate::store::Store;

impl Store {
    /// The stored value, 0 when never set.
    pub fn counter(&self, name: &str) -> Result<i64, JournalError> {
        let found =
            self.db.prepare_cached("SELECT value FROM counter WHERE name = ?1")?.query_row(params![name], |r| r.get(0));
        Ok(found.optional()?.unwrap_or(0))
    }

    /// Sets a counter; it never goes back.
    pub fn raise_counter(&mut self, name: &str, value: i64) -> Result<(), JournalError> {
        self.db
            .prepare_cached(
                "INSERT INTO counter (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = max(value, ?2)",
            )?
            .execute(params![name, value])?;
        Ok(())
    }
}
