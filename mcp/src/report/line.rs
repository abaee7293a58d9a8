//! The last text item: one line of `key=value` pairs.

use serde_json::{Map, Value};
use shoal_wire::text;

use super::{Cut, Report};

/// Longest status line.
const LINE_BYTES: usize = 1024;

pub(super) fn status_line(report: &Report, summary: &Map<String, Value>, uri: Option<&str>) -> String {
    let mut line = String::from("[shoal]");
    let mut pair = |key: &str, value: Option<String>| {
        let Some(value) = value else { return };
        let clean: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let quoted = clean.contains(' ') || clean.is_empty();
        line.push_str(&if quoted {
            format!(" {key}=\"{}\"", clean.replace('"', "'"))
        } else {
            format!(" {key}={clean}")
        });
    };
    let body = |name: &str| report.body.get(name).and_then(word);
    let outcome = |name: &str| {
        let value = report.body.get("value").filter(|value| value["$"] == "outcome")?;
        value.get(name).and_then(word)
    };
    pair("status", Some(report.status.word().to_owned()));
    pair("code", summary.get("code").and_then(word));
    pair("name", summary.get("name").and_then(word));
    pair("exit", outcome("status"));
    pair("signal", outcome("signal"));
    for (key, name) in [("ref", "ref"), ("task", "task"), ("plan", "plan_ref"), ("pty", "pty_id")] {
        pair(key, summary.get(name).and_then(word));
    }
    pair("uri", uri.map(str::to_owned));
    pair("elapsed_ms", body("elapsed_ms").or_else(|| data(report, "elapsed_ms")));
    let cwd = report.body.get("cwd").or_else(|| report.body.get("data")?.get("cwd"));
    pair("cwd", cwd.and_then(|cwd| cwd.get("display")).and_then(word));
    pair("held_by", body("held_by"));
    pair("replayed", body("replayed").or_else(|| data(report, "replayed")));
    pair("cut", cut_text(&report.cut));
    pair("note", report.note.clone());
    let next = summary.get("next").and_then(Value::as_array).filter(|steps| !steps.is_empty());
    pair("next", next.map(|steps| steps.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; ")));
    bounded(line)
}

fn data(report: &Report, name: &str) -> Option<String> {
    report.body.get("data")?.get(name).and_then(word)
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Array(_) | Value::Object(_) => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn cut_text(cuts: &[Cut]) -> Option<String> {
    let texts: Vec<String> =
        cuts.iter().map(|cut| format!("{} {}/{} {}", cut.what, cut.shown, cut.total, cut.unit)).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

fn bounded(line: String) -> String {
    if line.len() <= LINE_BYTES {
        return line;
    }
    format!("{}…", text::cut(&line, LINE_BYTES - '…'.len_utf8()))
}
