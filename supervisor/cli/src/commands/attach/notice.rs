//! What a person at the prompt is told about: one line for an event.

use serde_json::Value;
use shoal_client::Subscription;

use crate::escape;

/// One line for the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) text: String,
    /// The task it is about.
    pub(crate) task: Option<String>,
    /// Whose run it is about.
    pub(crate) principal: Option<String>,
}

impl Notice {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { text: format!("-- {}", text.into()), task: None, principal: None }
    }
}

/// Tells every event of a subscription that is news, until the connection is lost.
pub(crate) async fn follow(mut events: Subscription, tell: impl Fn(Notice)) {
    while let Some(event) = events.next().await {
        let payload = serde_json::to_value(&event.payload).unwrap_or_default();
        if let Some(notice) = of(&event.channel, &payload) {
            tell(notice);
        }
    }
}

/// The notice of an event; most events are none.
pub(crate) fn of(channel: &str, payload: &Value) -> Option<Notice> {
    let field = |name: &str| plain(payload, name);
    match channel {
        "session" => session(&field("action")?, field("name"), field("reason")),
        "approval" => (field("action")? == "requested").then(|| {
            let plan = field("plan_ref").unwrap_or_default();
            let by = field("principal").unwrap_or_default();
            Notice::text(format!("{by} asks for approval of {plan}; look at it with: shoal approvals show {plan}"))
        }),
        "journal" => {
            let principal = field("principal")?;
            let ended = if payload.pointer("/v/ok/v") == Some(&Value::Bool(true)) { "ok" } else { "failed" };
            let head = field("head").unwrap_or_default();
            let text = format!("{principal} ran {head}: {ended}");
            Some(Notice { principal: Some(principal), ..Notice::text(text) })
        }
        "kernel" => {
            let action = field("action")?.replace('_', " ");
            let role = field("role").map(|role| format!(" {role}")).unwrap_or_default();
            let detail = field("detail").map(|detail| format!(" ({detail})")).unwrap_or_default();
            Some(Notice::text(format!("kernel: {action}{role}{detail}")))
        }
        _ => None,
    }
}

fn session(action: &str, name: Option<String>, reason: Option<String>) -> Option<Notice> {
    let name = name.unwrap_or_default();
    let because = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let text = match action {
        "task_started" => format!("{name} started"),
        "task_ended" => format!("{name} ended; its result: shoal events tail {}", name.replace(':', ".")),
        "pty_opened" => format!("terminal {name} opened; watch it with: shoal pty show {name}"),
        "pty_closed" => format!("terminal {name} closed"),
        "worker_lost" => {
            format!("the session's worker died{because}; directory and environment are kept, bindings are not")
        }
        "killed" | "expired" | "frozen" | "thawed" | "restarted" | "watch_failed" => {
            format!("session {}{because}", action.replace('_', " "))
        }
        // `created` and `changed` are what the person just did or sees in the prompt.
        _ => return None,
    };
    let task = name.starts_with("task:").then(|| name.clone());
    Some(Notice { task, ..Notice::text(text) })
}

/// A text member of a tagged record, escaped; `None` when it is absent, null or empty.
fn plain(payload: &Value, name: &str) -> Option<String> {
    let value = payload.get("v")?.get(name)?.get("v")?;
    value.as_str().filter(|text| !text.is_empty()).map(escape::line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(members: &[(&str, &str)]) -> Value {
        let members: serde_json::Map<String, Value> =
            members.iter().map(|(name, text)| ((*name).to_owned(), json!({"$": "str", "v": text}))).collect();
        json!({"$": "record", "v": members})
    }

    #[test]
    fn what_is_news_is_one_escaped_line() {
        let told = |channel, members: &[(&str, &str)]| of(channel, &record(members)).map(|notice| notice.text);
        assert_eq!(told("session", &[("action", "changed")]), None);
        assert_eq!(told("session", &[("action", "frozen")]).as_deref(), Some("-- session frozen"));
        assert_eq!(
            told("session", &[("action", "killed"), ("reason", "\x1b[2J")]).as_deref(),
            Some("-- session killed: \\u{1b}[2J")
        );
        let asked = [("action", "requested"), ("plan_ref", "plan:1"), ("principal", "agent:docs")];
        assert!(told("approval", &asked).expect("news").contains("shoal approvals show plan:1"));
        assert_eq!(told("approval", &[("action", "approved")]), None);
        assert_eq!(
            told("kernel", &[("action", "policy_rejected"), ("detail", "line 2")]).as_deref(),
            Some("-- kernel: policy rejected (line 2)")
        );
    }

    #[test]
    fn a_task_and_a_principal_are_named_for_the_filter() {
        let ended = of("session", &record(&[("action", "task_ended"), ("name", "task:3")])).expect("news");
        assert_eq!(ended.task.as_deref(), Some("task:3"));
        assert!(ended.text.ends_with("shoal events tail task.3"));
        let mut payload = record(&[("principal", "agent:x"), ("head", "git")]);
        payload["v"]["ok"] = json!({"$": "bool", "v": true});
        let ran = of("journal", &payload).expect("news");
        assert_eq!((ran.text.as_str(), ran.principal.as_deref()), ("-- agent:x ran git: ok", Some("agent:x")));
    }

    #[test]
    fn a_payload_of_another_shape_is_no_news() {
        for payload in [json!(null), json!(3), json!({"$": "record", "v": []}), record(&[("error", "history_lost")])] {
            for channel in ["session", "approval", "journal", "kernel", "user.x"] {
                assert_eq!(of(channel, &payload), None);
            }
        }
    }
}
