//! How long the write-ahead log is: the length of its file does not tell, because it keeps its room.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use crate::error::JournalError;

/// Pages of the write-ahead log, as the database tells after each commit.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogLength(Arc<AtomicU32>);

impl LogLength {
    /// Listens to a database; it is given back with the length.
    pub(crate) fn watch(mut db: Connection) -> Result<(Connection, Self), JournalError> {
        let length = Self::default();
        let told = length.clone();
        db.wal_hook(Some(move |_: &mut Wal, pages| {
            told.0.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok((db, length))
    }

    /// Pages since it last started.
    pub(crate) fn pages(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// All of it is in the database: the next commit starts it again.
    pub(crate) fn restarts(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}
