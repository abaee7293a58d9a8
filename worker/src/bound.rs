//! What a plan is bound to, hashed as it is now: programs, scripts, and a copy of the session names it reaches.

use std::io::Read as _;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use shoal_eval::cancel::CancelToken;
use shoal_eval::effects::{Claimed, Reached, Started};
use shoal_eval::host::{At, Dir};
use shoal_value::wire::to_wire;
use shoal_value::{PathValue, Value};

use crate::claim::wire_path;
use crate::files::open_input;

/// A copy of a value up to this stands in the claim; of a larger one only its hash, so that drift is still seen. All names
/// of a claim have to fit into one message of 16 MiB.
const COPIED: usize = 1024 * 1024;
/// Bytes of all copies of a claim together.
const COPIES: usize = 8 * 1024 * 1024;
/// A longer wire form is not made: the name counts as changed with every claim that has another length in memory.
const HASHED: usize = 256 * 1024 * 1024;

/// `programs`, `scripts` and `bindings` of a claim, as `docs/ipc.md` has them.
pub(crate) fn members(claimed: &Claimed, cwd: &Arc<dyn Dir>, cancel: &CancelToken) -> [(&'static str, Json); 3] {
    let hash = |path: &PathValue| hash_of(At { dir: cwd, path: path.as_bytes() }, cancel);
    let program = |started: &Started| {
        let path = started.path.as_ref()?;
        Some(json!({"argv0": &*started.head, "path": wire_path(path.as_bytes()), "hash": hash(path)}))
    };
    let script = |path: &PathValue| Some(json!({"path": wire_path(path.as_bytes()), "hash": hash(path)?}));
    let programs: Vec<Json> = claimed.programs.iter().filter_map(program).collect();
    let scripts: Vec<Json> = claimed.scripts.iter().filter_map(script).collect();
    [("programs", programs.into()), ("scripts", scripts.into()), ("bindings", json!({"data": copies(&claimed.names)}))]
}

/// BLAKE3 of a regular file; none if it is no such file or cannot be read.
fn hash_of(at: At<'_>, cancel: &CancelToken) -> Option<String> {
    let mut file = std::fs::File::from(open_input(at).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut hasher = blake3::Hasher::new();
    let mut chunk = vec![0; 256 * 1024];
    while !cancel.is_set() {
        match file.read(&mut chunk).ok()? {
            0 => return Some(hasher.finalize().to_hex().to_string()),
            n => hasher.update(chunk.get(..n)?),
        };
    }
    None
}

fn copies(names: &[Reached]) -> Json {
    if names.is_empty() {
        return Json::Null;
    }
    let mut left = COPIES;
    let copied = names.iter().map(|name| (name.name.to_string(), copy(name, &mut left)));
    copied.collect::<Map<String, Json>>().into()
}

/// `{kind, value}` of data, `{kind, src, captured}` of a function, `{kind, hash, len}` of what is too large to be kept.
fn copy(name: &Reached, left: &mut usize) -> Json {
    let mut copy = json!({"kind": name.kind});
    match &name.source {
        Some((src, captured)) => {
            copy["src"] = (&**src).into();
            copy["captured"] = captured.iter().map(|value| stored(value, left)).collect();
        }
        None => copy["value"] = stored(&name.value, left),
    }
    copy
}

fn stored(value: &Value, left: &mut usize) -> Json {
    let live = matches!(value, Value::Task(_) | Value::Stream(_));
    if live {
        // Live handles are no data: a plan does not carry them, and their state is no drift.
        return json!({"$": value.type_name(), "live": true});
    }
    let Some(wire) = to_wire(value, HASHED) else { return json!({"too_large": true}) };
    let hashed = || json!({"hash": blake3::hash(wire.as_bytes()).to_hex().to_string(), "len": wire.len()});
    match left.checked_sub(wire.len()) {
        Some(rest) if wire.len() <= COPIED => {
            *left = rest;
            serde_json::from_str(&wire).unwrap_or_else(|_| hashed())
        }
        Some(_) | None => hashed(),
    }
}
