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

    /// Every counter whose name begins with `prefix`, with the rest of its name.
    pub fn counters(&self, prefix: &str) -> Result<Vec<(String, i64)>, JournalError> {
        let mut statement = self.db.prepare_cached("SELECT name, value FROM counter WHERE substr(name, 1, ?1) = ?2")?;
        let length = i64::try_from(prefix.chars().count()).unwrap_or(i64::MAX);
        let rows = statement.query_map(params![length, prefix], |r| Ok((r.get::<_, String>(0)?, r.get(1)?)))?;
        let named = rows.collect::<Result<Vec<_>, _>>()?;
        Ok(named.into_iter().map(|(name, value)| (name[prefix.len()..].to_owned(), value)).collect())
    }

    /// Forgets a counter whose numbers cannot come again.
    pub fn delete_counter(&mut self, name: &str) -> Result<(), JournalError> {
        self.db.prepare_cached("DELETE FROM counter WHERE name = ?1")?.execute(params![name])?;
        Ok(())
    }
}
