//! Plans: their members as one JSON body, with the columns that are searched beside it.

use rusqlite::{OptionalExtension as _, params};
use serde_json::Value;

use crate::error::JournalError;
use crate::store::Store;

/// A stored plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanRecord {
    /// `plan:` and 32 hex digits.
    pub plan_ref: String,
    /// Owner of the session it was planned in.
    pub owner: String,
    /// Session.
    pub session: String,
    /// Who planned it.
    pub principal: String,
    /// `allowed`, `pending`, `approved`, `denied`, `consumed`, `expired`.
    pub state: String,
    /// When.
    pub created_ns: i64,
    /// Until when it can be applied.
    pub expires_ns: i64,
    /// Everything it binds, and the decision.
    pub body: Value,
}

const COLUMNS: &str = "ref, owner, session, principal, state, created_ns, expires_ns, body";

impl Store {
    /// Stores a new plan or replaces a known one.
    pub fn put_plan(&mut self, plan: &PlanRecord) -> Result<(), JournalError> {
        self.db
            .prepare_cached(&format!(
                "INSERT OR REPLACE INTO plan ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
            ))?
            .execute(params![
                plan.plan_ref,
                plan.owner,
                plan.session,
                plan.principal,
                plan.state,
                plan.created_ns,
                plan.expires_ns,
                plan.body.to_string(),
            ])?;
        Ok(())
    }

    /// One plan.
    pub fn plan(&self, plan_ref: &str) -> Result<Option<PlanRecord>, JournalError> {
        let found = self
            .db
            .prepare_cached(&format!("SELECT {COLUMNS} FROM plan WHERE ref = ?1"))?
            .query_row(params![plan_ref], read);
        Ok(found.optional()?)
    }

    /// Every plan, oldest first, at most `limit`, optionally of one state.
    pub fn plans(&self, state: Option<&str>, limit: u32) -> Result<Vec<PlanRecord>, JournalError> {
        let sql =
            format!("SELECT {COLUMNS} FROM plan WHERE ?1 IS NULL OR state = ?1 ORDER BY created_ns DESC LIMIT ?2");
        let mut statement = self.db.prepare_cached(&sql)?;
        let mut plans = statement.query_map(params![state, limit], read)?.collect::<Result<Vec<_>, _>>()?;
        plans.reverse();
        Ok(plans)
    }

    /// Moves a plan from one state to another; `false` when it is not in that state (any more).
    pub fn move_plan(&mut self, plan_ref: &str, from: &str, to: &str) -> Result<bool, JournalError> {
        let changed = self
            .db
            .prepare_cached("UPDATE plan SET state = ?3 WHERE ref = ?1 AND state = ?2")?
            .execute(params![plan_ref, from, to])?;
        Ok(changed == 1)
    }
}

fn read(r: &rusqlite::Row<'_>) -> rusqlite::Result<PlanRecord> {
    let body: String = r.get(7)?;
    Ok(PlanRecord {
        plan_ref: r.get(0)?,
        owner: r.get(1)?,
        session: r.get(2)?,
        principal: r.get(3)?,
        state: r.get(4)?,
        created_ns: r.get(5)?,
        expires_ns: r.get(6)?,
        body: serde_json::from_str(&body).unwrap_or(Value::Null),
    })
}
