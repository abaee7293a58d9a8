//! Asking the person at the client to approve a plan.
//!
//! Only where the policy says `approve = "client"`, in the 2026 era, and for clients that can show a form. The question
//! goes out as an `input_required` result; the client repeats the call with the answer and our `requestState`. That
//! state comes back through the agent, so it is authenticated, bound to principal, plan and arguments, and good once.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};
use shoal_wire::{Method, effect};
use tokio::time::Instant;

use crate::call::{Call, Failure};
use crate::eras::{Era, modern};

/// How long a question stays open.
const OPEN_FOR: Duration = Duration::from_secs(600);
/// Answers remembered while their questions are open; more within ten minutes than a person can have given.
const REMEMBERED: usize = 4096;
/// A longer source cannot be judged in a form; its plan waits for `shoal approvals`.
const SOURCE_BYTES: usize = 8192;
const MAC_BYTES: usize = 32;

/// Keeps questions honest: the key lives as long as the process.
pub(crate) struct Asker {
    /// `None` where the system has no randomness for us; then nobody is asked.
    key: Option<[u8; 32]>,
    began: Instant,
    /// Numbers of answered questions, and the second each question ends.
    used: Mutex<HashMap<[u8; 16], u64>>,
}

/// What a question is about.
struct Subject<'s> {
    principal: &'s str,
    args: &'s str,
}

impl Asker {
    pub(crate) fn new() -> Asker {
        Asker { key: random(), began: Instant::now(), used: Mutex::default() }
    }

    fn mac(&self, body: &[u8], subject: &Subject<'_>) -> Option<blake3::Hash> {
        let mut hasher = blake3::Hasher::new_keyed(self.key.as_ref()?);
        for part in [body, subject.principal.as_bytes(), subject.args.as_bytes()] {
            hasher.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
            hasher.update(part);
        }
        Some(hasher.finalize())
    }

    /// A state for one question: when it ends, a number used once, and both authenticated.
    fn issue(&self, subject: &Subject<'_>) -> Option<String> {
        let ends = (self.began.elapsed() + OPEN_FOR).as_secs();
        let once: [u8; 16] = random()?;
        let mut state = [&ends.to_le_bytes()[..], &once].concat();
        let mac = self.mac(&state, subject)?;
        state.extend_from_slice(mac.as_bytes());
        Some(URL_SAFE_NO_PAD.encode(state))
    }

    /// Whether `state` was issued for this subject, is still open, and comes for the first time.
    fn redeem(&self, state: &str, subject: &Subject<'_>) -> bool {
        let Ok(state) = URL_SAFE_NO_PAD.decode(state) else { return false };
        let Some((body, mac)) = state.split_last_chunk::<MAC_BYTES>() else { return false };
        let expected = self.mac(body, subject);
        // Comparing two hashes takes the same time wherever they differ.
        if expected != Some(blake3::Hash::from_bytes(*mac)) {
            return false;
        }
        let Some((ends, once)) = body.split_first_chunk::<8>() else { return false };
        let Ok(once) = <[u8; 16]>::try_from(once) else { return false };
        let (ends, now) = (u64::from_le_bytes(*ends), self.began.elapsed().as_secs());
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.retain(|_, ends| *ends >= now);
        ends >= now && used.len() < REMEMBERED && used.insert(once, ends).is_none()
    }
}

fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom").ok()?.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

/// What came of consulting the person.
pub(crate) enum Asked {
    /// The result to answer with: a question.
    Question(Map<String, Value>),
    /// The person said yes: the kernel's account of the decision. Go on with the call.
    Decided(Value),
    /// Go on with the call as if nobody could be asked.
    GoOn,
}

/// Asks about the plan of a call, or takes the answer it brings. `effects` are those asked for; none means all.
pub(crate) async fn consult(call: &Call, args: &Map<String, Value>, effects: &[String]) -> Result<Asked, Failure> {
    if !matches!(&call.era, Era::Modern(modern::Client { asks_by_form: true, .. })) {
        return Ok(Asked::GoOn);
    }
    let kernel = &call.server.kernel;
    let (_, attached) = kernel.attached().await?;
    if attached.approve != "client" {
        return Ok(Asked::GoOn);
    }
    let digest = json!([call.params.get("name"), args]).to_string();
    let subject = Subject { principal: &attached.principal, args: &digest };
    let plan_ref = args.get("plan_ref").and_then(Value::as_str).unwrap_or_default();
    if let Some(state) = call.params.get("requestState") {
        if state.as_str().is_some_and(|state| call.server.asker.redeem(state, &subject)) && accepted(call) {
            let decision = json!({ "plan_ref": plan_ref, "decision": "approve", "via": "elicitation" });
            return kernel.call(Method::ApprovalDecide, &decision).await.map(Asked::Decided);
        }
        return Ok(Asked::GoOn);
    }
    let plan = match kernel.call(Method::PlanGet, &json!({ "plan_ref": plan_ref })).await {
        Ok(plan) => plan,
        // The call itself says what is wrong with the plan.
        Err(Failure::Kernel(_)) => return Ok(Asked::GoOn),
        Err(ours) => return Err(ours),
    };
    let askable = plan["state"] == "pending" && covers(&plan, effects);
    let message = question(&plan, &attached.principal).filter(|_| askable);
    let state = call.server.asker.issue(&subject);
    Ok(message.zip(state).map_or(Asked::GoOn, |(message, state)| Asked::Question(input_required(&message, &state))))
}

fn accepted(call: &Call) -> bool {
    let answer = call.params.get("inputResponses").and_then(|answers| answers.get("approve"));
    answer.is_some_and(|answer| answer["action"] == "accept" && answer["content"]["ok"] == true)
}

fn covers(plan: &Value, effects: &[String]) -> bool {
    let asked: Vec<&str> = effects.iter().filter_map(|name| effect::kind(name)).collect();
    let mut kinds = plan["effects"].as_array().into_iter().flatten().filter_map(|effect| effect["kind"].as_str());
    effects.is_empty() || kinds.all(|kind| asked.contains(&kind))
}

fn input_required(message: &str, state: &str) -> Map<String, Value> {
    let schema = json!({ "type": "object", "properties": { "ok": { "type": "boolean" } }, "required": ["ok"] });
    let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    Map::from_iter([
        ("resultType".to_owned(), json!("input_required")),
        ("inputRequests".to_owned(), json!({ "approve": { "method": "elicitation/create", "params": params } })),
        ("requestState".to_owned(), json!(state)),
    ])
}

/// Source, directory and every effect in one sentence; `None` when a person could not judge it there.
fn question(plan: &Value, principal: &str) -> Option<String> {
    let src = plan["src"].as_str().filter(|src| src.len() <= SOURCE_BYTES)?;
    let cwd = plan["cwd"]["display"].as_str()?;
    let effects: Vec<String> = plan["effects"].as_array()?.iter().map(effect_text).collect();
    let effects = if effects.is_empty() { "none".to_owned() } else { effects.join("; ") };
    Some(visible(&format!("Let {principal} run `{src}` in {cwd}? Effects: {effects}")))
}

fn effect_text(effect: &Value) -> String {
    let kind = effect["kind"].as_str().unwrap_or_default();
    if kind == "opaque" {
        return "opaque (effects unknown)".to_owned();
    }
    let members = effect.as_object().into_iter().flatten().filter(|(name, _)| *name != "kind");
    let words = members.flat_map(|(_, value)| match value {
        Value::Array(items) => items.iter().map(text).collect(),
        other => vec![text(other)],
    });
    let words: Vec<String> = words.collect();
    format!("{} {}", effect::spoken(kind), words.join(", ")).trim_end().to_owned()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Control and direction characters are shown as escapes: what a person reads is what would run.
fn visible(text: &str) -> String {
    let hidden = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
    };
    text.chars().map(|c| if hidden(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_bound_and_good_once() {
        let asker = Asker::new();
        let subject = Subject { principal: "agent:docs", args: "[\"shoal_apply\",{}]" };
        let state = asker.issue(&subject).unwrap();
        assert!(!asker.redeem(&state, &Subject { principal: "agent:x", ..subject }));
        assert!(!asker.redeem(&state, &Subject { args: "[]", ..subject }));
        assert!(!Asker::new().redeem(&state, &subject), "another process");
        assert!(!asker.redeem("", &subject) && !asker.redeem("AAAA", &subject) && !asker.redeem("%", &subject));
        assert!(asker.redeem(&state, &subject));
        assert!(!asker.redeem(&state, &subject), "used before");
    }

    #[test]
    fn the_question_names_everything_and_hides_nothing() {
        let plan = json!({"src":"sh ./s.sh\u{202e}\u{7}","cwd":{"display":"/srv/site"},
            "effects":[{"kind":"opaque"},{"kind":"fs_write","paths":["/a","/b"]},{"kind":"net_connect","host":"h","port":443}]});
        assert_eq!(
            question(&plan, "agent:docs").unwrap(),
            "Let agent:docs run `sh ./s.sh\\u{202e}\\u{7}` in /srv/site? Effects: opaque (effects unknown); \
             fs.write /a, /b; net.connect h, 443"
        );
        let long = json!({"src":"x".repeat(SOURCE_BYTES + 1),"cwd":{"display":"/"},"effects":[]});
        assert_eq!(question(&long, "p"), None);
    }

    #[test]
    fn effects_that_are_left_out_are_not_asked_about() {
        let plan = json!({"effects":[{"kind":"opaque"},{"kind":"fs_write","paths":[]}]});
        assert!(covers(&plan, &[]) && covers(&plan, &["opaque".into(), "fs.write".into()]));
        assert!(!covers(&plan, &["fs_write".into()]));
    }
}
