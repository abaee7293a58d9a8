//! What a source is claimed to do, before it runs.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use shoal_eval::effects::Effect;
use shoal_eval::host::{Run, Silent};
use shoal_eval::request::State;
use shoal_proto::broker_worker::Purpose;
use shoal_syntax::ast::Program;
use shoal_syntax::describe;
use shoal_syntax::tree_json::to_json;

use crate::runs::RunState;
use crate::session::Session;

/// The claim of a parsed source. A plan's, to make or to apply it, also has what it is bound to.
pub(crate) fn of(session: &Session, program: &Program, state: &State, run: &Arc<RunState>, purpose: Purpose) -> Json {
    let claimed = (purpose != Purpose::Run).then(|| session.evaluators.claim(program, state, request(run)));
    let effects = match &claimed {
        Some(claimed) => claimed.effects.clone(),
        None => derive(session, program, state, run),
    };
    let description = describe(program);
    let names: Vec<_> = description.values.iter().chain(&description.commands).map(|name| &**name).collect();
    let mut claim = json!({
        "effects": effects_json(&effects), "reversibility": reversibility(&effects),
        "head": description.head.as_deref().unwrap_or_default(), "names": names,
    });
    if let Some(claimed) = &claimed {
        claim["ast"] = to_json(program);
        claim["cwd"] = wire_path(state.place.cwd.path().as_bytes());
        for (name, member) in crate::bound::members(claimed, &state.place.cwd, &run.cancel) {
            claim[name] = member;
        }
    }
    claim
}

/// The effects of a program, derived without running it. A cancel ends the derivation, which is opaque then.
pub(crate) fn derive(session: &Session, program: &Program, state: &State, run: &Arc<RunState>) -> Vec<Effect> {
    session.evaluators.derive(program, state, request(run))
}

fn request(run: &Arc<RunState>) -> Run {
    let meter: Arc<RunState> = Arc::clone(run);
    Run { id: 0, cancel: run.cancel.clone(), meter, sink: Arc::new(Silent) }
}

/// `irreversible` if something can never be taken back.
pub(crate) fn reversibility(effects: &[Effect]) -> &'static str {
    if effects.iter().any(Effect::is_irreversible) { "irreversible" } else { "reversible" }
}

/// Effects as the public protocol has them. Paths and names of one kind stand together, in order.
pub(crate) fn effects_json(effects: &[Effect]) -> Vec<Json> {
    let mut out: Vec<Json> = Vec::new();
    let mut listed = |kind: &'static str, member: &'static str, item: &str| {
        let found = out.iter_mut().find(|effect| effect["kind"] == kind);
        match found.and_then(|effect| effect[member].as_array_mut()) {
            Some(items) if items.iter().any(|known| known == item) => {}
            Some(items) => items.push(item.into()),
            None => out.push(json!({"kind": kind, member: [item]})),
        }
    };
    let mut rest: Vec<Json> = Vec::new();
    for effect in effects {
        match effect {
            Effect::Read(path) => listed("fs_read", "paths", path),
            Effect::Write(path) => listed("fs_write", "paths", path),
            Effect::Delete(path) => listed("fs_delete", "paths", path),
            Effect::EnvRead(name) => listed("env_read", "names", name),
            Effect::EnvWrite(name) => listed("env_write", "names", name),
            Effect::Secret(name) => listed("secret_use", "names", name),
            Effect::Spawn { hash, argv0 } => {
                rest.push(json!({"kind": "proc_spawn", "bin_hash": &**hash, "argv0": &**argv0}));
            }
            Effect::Connect(host, port) => {
                rest.push(json!({"kind": "net_connect", "host": &**host, "port": port.parse::<u16>().unwrap_or(0)}));
            }
            Effect::Listen(port) => rest.push(json!({"kind": "net_listen", "port": port.parse::<u16>().unwrap_or(0)})),
            Effect::Session => rest.push(json!({"kind": "session_write"})),
            Effect::Journal => rest.push(json!({"kind": "journal_read"})),
            Effect::Time => rest.push(json!({"kind": "time"})),
            Effect::Opaque => rest.push(json!({"kind": "opaque"})),
        }
    }
    rest.dedup();
    out.extend(rest);
    out
}

/// A path of the protocol: its text, and its bytes when they are not text.
pub(crate) fn wire_path(path: &[u8]) -> Json {
    use base64::Engine as _;
    match std::str::from_utf8(path) {
        Ok(text) => json!({"display": text}),
        Err(_) => {
            let raw = base64::engine::general_purpose::STANDARD.encode(path);
            json!({"display": String::from_utf8_lossy(path), "raw": raw})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_kinds_stand_together() {
        let effects = [
            Effect::Read("/a".into()),
            Effect::Write("/b".into()),
            Effect::Read("/c".into()),
            Effect::Read("/a".into()),
            Effect::Spawn { hash: "h".into(), argv0: "git".into() },
            Effect::Opaque,
        ];
        let expected = json!([
            {"kind": "fs_read", "paths": ["/a", "/c"]},
            {"kind": "fs_write", "paths": ["/b"]},
            {"kind": "proc_spawn", "bin_hash": "h", "argv0": "git"},
            {"kind": "opaque"},
        ]);
        assert_eq!(Json::from(effects_json(&effects)), expected);
        assert_eq!(reversibility(&effects), "irreversible");
        assert_eq!(reversibility(&effects[..3]), "reversible");
    }
}
