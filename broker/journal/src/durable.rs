//! Durable channels: only numbers are stored, payloads are derived from the rows.

use rusqlite::{OptionalExtension as _, params};

use crate::error::JournalError;
use crate::row::Row;
use crate::store::Store;

impl Store {
    /// Appends an event about a row and returns its sequence number, from 0 per owner and channel.
    pub fn append_event(&mut self, owner: &str, channel: &str, entry: i64) -> Result<i64, JournalError> {
        let last: Option<i64> = self
            .db
            .prepare_cached(
                "SELECT seq FROM durable_event WHERE owner = ?1 AND channel = ?2 ORDER BY seq DESC LIMIT 1",
            )?
            .query_row(params![owner, channel], |r| r.get(0))
            .optional()?;
        let seq = last.map_or(0, |l| l.saturating_add(1));
        self.db
            .prepare_cached("INSERT INTO durable_event (owner, channel, seq, entry_id) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![owner, channel, seq, entry])?;
        Ok(seq)
    }

    /// Events after `since` (exclusive; `None` from the first), oldest first, at most `limit`, with their bare rows.
    pub fn events(
        &self,
        owner: &str,
        channel: &str,
        since: Option<i64>,
        limit: u32,
    ) -> Result<Vec<(i64, Row)>, JournalError> {
        let mut statement = self.db.prepare_cached(
            "SELECT seq, entry_id FROM durable_event WHERE owner = ?1 AND channel = ?2 AND seq > ?3 ORDER BY seq LIMIT ?4",
        )?;
        let found = statement
            .query_map(params![owner, channel, since.unwrap_or(-1), limit], |r| Ok((r.get(0)?, r.get(1)?)))?
            .collect::<Result<Vec<(i64, i64)>, _>>()?;
        found.into_iter().map(|(seq, entry)| Ok((seq, self.bare_row(entry)?))).collect()
    }

    /// Owner and name of every durable channel that has events.
    pub fn durable_channels(&self) -> Result<Vec<(String, String)>, JournalError> {
        let mut statement = self.db.prepare_cached("SELECT DISTINCT owner, channel FROM durable_event")?;
        let found = statement.query_map([], |r| Ok((r.get(0)?, r.get(1)?)))?;
        Ok(found.collect::<Result<_, _>>()?)
    }

    /// The newest sequence number of a channel.
    pub fn newest_event(&self, owner: &str, channel: &str) -> Result<Option<i64>, JournalError> {
        Ok(self
            .db
            .prepare_cached("SELECT max(seq) FROM durable_event WHERE owner = ?1 AND channel = ?2")?
            .query_row(params![owner, channel], |r| r.get(0))?)
    }
}
