//! Stored watches start again with a new worker.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use shoal_proto::broker_worker::UpMethod;
use shoal_watch::{Notice, Spec, State};
use shoal_wire::{Code, RpcError};

use super::driver::emit;
use super::{Starter, log, start};
use crate::session::Session;

/// Name of the watch that reports it.
const NAME: &str = "restore";

/// Starts what the broker remembers, and says what came of it.
pub(crate) fn restore(session: &Arc<Session>) {
    let stored: Vec<Spec> = session.facts["watches"].as_array().into_iter().flatten().filter_map(spec).collect();
    if stored.is_empty() {
        return;
    }
    let (mut restored, mut failed, mut lines) = (0, 0, Vec::new());
    for spec in stored {
        let name = spec.name.clone();
        match start(session, spec.clone(), Starter::Restore) {
            Ok(_) => {
                restored += 1;
                lines.push(format!("restored {name}"));
            }
            Err(error) => {
                failed += 1;
                lines.push(format!("{}: {}", not_restored(session, &spec, &error), error.message));
            }
        }
    }
    log::event(session, "watch.restored", NAME, json!({"restored": restored, "failed": failed}));
    let about = Spec { name: NAME.into(), uri: String::new(), on_event: None, lang: "shoal".into(), persist: false };
    let lines = lines.into_iter().map(|line| shoal_watch::line::clean(&line)).collect();
    let notice = Notice { lines, ..Notice::word(&about, String::new()) };
    if let Err(error) = emit(session, &notice) {
        log::untold(NAME, &error);
    }
}

/// One that can never start is removed; one that failed for now stays listed. What to say of it.
fn not_restored(session: &Session, spec: &Spec, error: &RpcError) -> String {
    if !error.is(Code::InvalidParams) && !error.is(Code::QuotaExceeded) {
        let account = shoal_watch::Account { last_error: Some(error.message.clone()), ..Default::default() };
        let record = spec.record(None, State::Failed, &account, true);
        session.watches.unrestored().insert(spec.name.clone(), record);
        return format!("not restored {}", spec.name);
    }
    let told = json!({"action": "stopped", "name": spec.name});
    if let Err(error) = session.broker.request(UpMethod::Watch, &told) {
        log::untold(&spec.name, &error);
    }
    format!("removed {}", spec.name)
}

fn spec(stored: &Json) -> Option<Spec> {
    Some(Spec {
        name: stored["name"].as_str()?.to_owned(),
        uri: stored["uri"].as_str()?.to_owned(),
        on_event: stored["on_event"].as_str().map(str::to_owned),
        lang: stored["lang"].as_str().unwrap_or("shoal").to_owned(),
        persist: true,
    })
}
