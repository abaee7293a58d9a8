//! Pins and collection: a dry run unless told otherwise; only pins protect; rows are never removed.

use rusqlite::params;

use crate::cas::now_ns;
use crate::chain::{self, Digest};
use crate::error::JournalError;
use crate::store::Store;

/// What to collect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GcRequest {
    /// Blobs last read longer ago than this many seconds go.
    pub ttl_s: Option<i64>,
    /// Then the least recently used go until the total fits.
    pub budget_bytes: Option<i64>,
    /// Really delete.
    pub apply: bool,
}

/// What was, or would be, collected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GcReport {
    /// Blobs that go.
    pub candidates: i64,
    /// Blobs that went.
    pub deleted: i64,
    /// Nothing was deleted.
    pub dry_run: bool,
    /// Bytes that go.
    pub reclaimed_bytes: i64,
    /// Bytes that stay.
    pub remaining_bytes: i64,
}

impl Store {
    /// Protects a blob from collection.
    pub fn pin(&mut self, hash: &str) -> Result<(), JournalError> {
        let digest = self.known(hash)?;
        self.db.execute("INSERT OR IGNORE INTO pin (hash) VALUES (?1)", params![digest])?;
        Ok(())
    }

    /// Lifts a protection.
    pub fn unpin(&mut self, hash: &str) -> Result<(), JournalError> {
        let digest = self.known(hash)?;
        self.db.execute("DELETE FROM pin WHERE hash = ?1", params![digest])?;
        Ok(())
    }

    fn known(&self, hash: &str) -> Result<Digest, JournalError> {
        let digest = chain::unhex(hash).ok_or(JournalError::Unknown("blob"))?;
        let found: i64 =
            self.db.query_row("SELECT count(*) FROM blob WHERE hash = ?1", params![digest], |r| r.get(0))?;
        if found == 0 { Err(JournalError::Unknown("blob")) } else { Ok(digest) }
    }

    /// Collects. Files of deleted blobs go after the commit that forgets them.
    pub fn gc(&mut self, request: GcRequest) -> Result<GcReport, JournalError> {
        let total: i64 = self.db.query_row("SELECT coalesce(sum(stored_len), 0) FROM blob", [], |r| r.get(0))?;
        let chosen = self.choose(request, total)?;
        let reclaimed = chosen.iter().map(|(_, len)| len).sum();
        if request.apply {
            for (hash, _) in &chosen {
                self.delete_blob(hash)?;
            }
            self.orphans_due = true;
        }
        let candidates = i64::try_from(chosen.len()).unwrap_or(i64::MAX);
        Ok(GcReport {
            candidates,
            deleted: if request.apply { candidates } else { 0 },
            dry_run: !request.apply,
            reclaimed_bytes: reclaimed,
            remaining_bytes: total.saturating_sub(reclaimed),
        })
    }

    fn choose(&self, request: GcRequest, total: i64) -> Result<Vec<(Digest, i64)>, JournalError> {
        // Unreferenced first, then least recently used.
        let sql = "SELECT hash, stored_len, last_access_ns FROM blob WHERE hash NOT IN (SELECT hash FROM pin)
            ORDER BY EXISTS (SELECT 1 FROM owned WHERE owned.hash = blob.hash), last_access_ns";
        let mut statement = self.db.prepare(sql)?;
        let blobs = statement
            .query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))?
            .collect::<Result<Vec<(Digest, i64, i64)>, _>>()?;
        let cutoff = request.ttl_s.map(|ttl| now_ns().saturating_sub(ttl.saturating_mul(1_000_000_000)));
        let (mut chosen, mut kept) = (Vec::new(), Vec::new());
        for (hash, len, read) in blobs {
            if cutoff.is_some_and(|c| read < c) { chosen.push((hash, len)) } else { kept.push((hash, len)) }
        }
        if let Some(budget) = request.budget_bytes {
            let mut left = total - chosen.iter().map(|(_, len)| len).sum::<i64>();
            for (hash, len) in kept {
                if left <= budget {
                    break;
                }
                left -= len;
                chosen.push((hash, len));
            }
        }
        Ok(chosen)
    }
}
