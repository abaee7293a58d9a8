//! A row as clients see it.

use serde_json::{Value, json};

use crate::row::Row;

impl Row {
    /// The wire row. `path` makes the wire form of a path from its bytes.
    pub fn to_wire(&self, path: impl Fn(&[u8]) -> Value) -> Value {
        let outputs: Vec<Value> =
            self.outputs.iter().map(|o| json!({"kind": o.kind, "hash": o.hash, "len": o.len})).collect();
        json!({
            "id": self.id, "kind": self.kind, "parent_id": self.parent, "session": self.session, "owner": self.owner,
            "principal": self.principal, "ts": self.ts, "dur_ns": self.dur_ns, "cwd": path(&self.cwd),
            "env_hash": self.env_hash, "src": self.src, "ast": self.ast, "effects": self.effects, "opaque": self.opaque,
            "status": self.status, "ok": self.ok, "ended": self.ended, "key": self.key, "outputs": outputs,
            "detail": self.detail, "prev": self.prev, "digest": self.digest,
        })
    }
}
