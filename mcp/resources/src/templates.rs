//! The templates of what can be read.

use serde_json::{Value, json};
use shoal_wire::EVENTS_MIME;

struct Template {
    uri: &'static str,
    name: &'static str,
    description: &'static str,
    /// A URI to watch, where that is possible.
    example: Option<(&'static str, &'static str)>,
}

const fn template(uri: &'static str, name: &'static str, description: &'static str) -> Template {
    Template { uri, name, description, example: None }
}

const fn watchable(
    uri: &'static str,
    name: &'static str,
    description: &'static str,
    example: (&'static str, &'static str),
) -> Template {
    Template { uri, name, description, example: Some(example) }
}

/// The order is part of the protocol; new ones go to the end.
const TEMPLATES: [Template; 12] = [
    template(
        "shoal://out/{n}{?path,slice,format,elide,pull}",
        "transcript-value",
        "Result number n of this session, or a part of it; pull takes items of a stream.",
    ),
    template(
        "shoal://val/{hash}{?path,slice,format,elide,offset,length}",
        "content-value",
        "A stored value or output by its digest.",
    ),
    watchable("shoal://task/{id}", "task", "A running or kept task.", ("build", "shoal://task/7")),
    watchable(
        "shoal://task/{id}/out{?path,slice,format,elide}",
        "task-output",
        "The result of a task; its record while there is none.",
        ("result", "shoal://task/7/out"),
    ),
    template("shoal://plan/{ref}", "plan", "A plan: source, effects, programs, state."),
    watchable(
        "shoal://session/{view}",
        "session-view",
        "The session's cwd, env or reef (tool pinning) now.",
        ("dir", "shoal://session/cwd"),
    ),
    watchable("shoal://pty/{id}", "pty-screen", "The screen of a terminal.", ("screen", "shoal://pty/3")),
    watchable(
        "shoal://journal{?since,until,head,principal,ok,effects,kinds,before,limit}",
        "journal",
        "What ran, newest first; since and until are nanoseconds.",
        ("history", "shoal://journal"),
    ),
    watchable(
        "shoal://events/{channel}{?since,limit}",
        "events",
        "The numbered events of a channel: journal, session, approval, task.N, pty.N, user.NAME and more.",
        ("runs", "shoal://events/journal"),
    ),
    watchable(
        "shoal://task/{id}/log{?stream,offset,max}",
        "task-log",
        "Output of a task, by position; a negative offset counts from the end.",
        ("log", "shoal://task/7/log"),
    ),
    template("shoal://approval/{ref}", "approval", "What is asked for approval, and the decision."),
    watchable("shoal://watch/{name}", "watch", "A watch and its notices.", ("notices", "shoal://watch/cm")),
];

/// The entries of `resources/templates/list`.
pub fn entries() -> Vec<Value> {
    let templates = TEMPLATES.iter().map(|template| {
        let mime = if matches!(template.name, "events" | "watch") { EVENTS_MIME } else { "application/json" };
        let description = match template.example {
            None => template.description.to_owned(),
            Some((name, uri)) => example(template.description, name, uri),
        };
        json!({ "uriTemplate": template.uri, "name": template.name, "description": description, "mimeType": mime })
    });
    templates.collect()
}

/// A description that ends in how to watch the thing.
pub(crate) fn example(description: &str, name: &str, uri: &str) -> String {
    format!("{description}\nExample: watch_start(name: \"{name}\", uri: \"{uri}\")")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watchable_templates_end_in_an_example() {
        let templates = entries();
        assert_eq!(templates.len(), 12);
        for template in &templates {
            let watchable = !matches!(
                template["name"].as_str().unwrap(),
                "transcript-value" | "content-value" | "plan" | "approval"
            );
            let last = template["description"].as_str().unwrap().lines().last().unwrap();
            assert_eq!(last.starts_with("Example: watch_start(name: \""), watchable, "{template}");
        }
    }
}
