//! Rows and reports as clients see them, and what clients ask for.

use serde_json::{Value, json};
use shoal_wire::params::journal::{JournalGc, JournalQuery};

use crate::chain::Verified;
use crate::gc::{GcReport, GcRequest};
use crate::query::Query;
use crate::row::{Kept, Row, StoredOutput};
use crate::tokens::Token;

impl Row {
    /// The wire row. `path` makes the wire form of a path from its bytes.
    pub fn to_wire(&self, path: impl Fn(&[u8]) -> Value) -> Value {
        let outputs: Vec<Value> = self.outputs.iter().map(StoredOutput::to_wire).collect();
        json!({
            "id": self.id, "kind": self.kind, "parent_id": self.parent, "session": self.session, "owner": self.owner,
            "principal": self.principal, "ts": self.ts, "dur_ns": self.dur_ns, "cwd": path(&self.cwd),
            "env_hash": self.env_hash, "src": self.src, "ast": self.ast, "effects": self.effects, "opaque": self.opaque,
            "status": self.status, "ok": self.ok, "ended": self.ended, "key": self.key, "outputs": outputs,
            "detail": self.detail, "prev": self.prev, "digest": self.digest,
        })
    }
}

impl StoredOutput {
    fn to_wire(&self) -> Value {
        let mut output = json!({"kind": self.kind, "hash": self.hash, "len": self.len});
        let stored = match self.bytes {
            Kept::Unknown => return output,
            Kept::Gone => Value::Null,
            Kept::Stored(len) => len.into(),
        };
        output["stored_len"] = stored;
        output["meta"] = self.meta.clone().unwrap_or_default();
        output
    }
}

impl Query {
    /// What a client asks for; `visible_to` is the principal whose rows it may see, `None` for all rows.
    pub fn of_wire(wanted: &JournalQuery, visible_to: Option<String>) -> Self {
        Self {
            since: wanted.since,
            until: wanted.until,
            principal: wanted.principal.as_ref().map(|principal| principal.0.clone()),
            session: wanted.session.as_ref().map(|name| name.as_str().to_owned()),
            head: wanted.head.clone(),
            ok: wanted.ok,
            effects: wanted.effects.iter().map(|effect| effect.0.to_owned()).collect(),
            kinds: wanted.kinds.iter().flatten().map(|kind| kind.0.to_owned()).collect(),
            before: wanted.before,
            limit: wanted.rows(),
            stored: wanted.stored,
            visible_to,
        }
    }
}

impl From<&JournalGc> for GcRequest {
    fn from(wanted: &JournalGc) -> Self {
        let int = |n: Option<u64>| n.map(|n| i64::try_from(n).unwrap_or(i64::MAX));
        Self { ttl_s: int(wanted.ttl_s), budget_bytes: int(wanted.budget_bytes), apply: wanted.apply }
    }
}

impl Verified {
    /// The result of `journal.verify`.
    pub fn to_wire(&self) -> Value {
        let mut body = json!({"ok": self.ok, "rows": self.rows, "head": self.head});
        if let Some(first_bad) = self.first_bad {
            body["first_bad"] = first_bad.into();
        }
        if let Some(found) = self.head_found {
            body["head_found"] = found.into();
        }
        body
    }
}

impl GcReport {
    /// The result of `journal.gc`.
    pub fn to_wire(&self) -> Value {
        json!({"candidates": self.candidates, "deleted": self.deleted, "dry_run": self.dry_run,
            "reclaimed_bytes": self.reclaimed_bytes, "remaining_bytes": self.remaining_bytes})
    }
}

impl Token {
    /// An entry of `token.list`.
    pub fn to_wire(&self, now_ns: i64) -> Value {
        json!({"id": self.id, "principal": self.principal, "profile": self.profile, "caps": self.caps,
            "created_ns": self.created_ns, "expires_ns": self.expires_ns, "revoked_ns": self.revoked_ns,
            "state": self.state(now_ns)})
    }

    /// The result of `token.create`: the only place where the bearer stands.
    pub fn created(&self, bearer: &str) -> Value {
        json!({"id": self.id, "token": bearer, "principal": self.principal, "profile": self.profile,
            "caps": self.caps, "created_ns": self.created_ns, "expires_ns": self.expires_ns})
    }

    /// What the `admin` row of `token.create` says.
    pub fn arguments(&self) -> Value {
        json!({"id": self.id, "principal": self.principal, "profile": self.profile, "caps": self.caps,
            "expires_ns": self.expires_ns})
    }
}
