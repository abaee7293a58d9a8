//! `shoal approvals`: what waits for a decision, and the decision.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::args::Approvals;
use crate::context::{Context, call, items, text};
use crate::fail::Fail;
use crate::{escape, out, table};

/// Carries out the action.
pub(crate) fn run(context: &Context, action: Approvals) -> Result<ExitCode, Fail> {
    let (method, params) = match &action {
        Approvals::List { all } => ("approval.list", json!({"state": if *all { "all" } else { "pending" }})),
        Approvals::Show { plan } => ("approval.list", json!({"state": "all", "plan_ref": plan})),
        Approvals::Approve { plan, effects, note } => {
            let mut params = json!({"plan_ref": plan, "decision": "approve", "effects": effects});
            params["note"] = json!(note);
            ("approval.decide", params)
        }
        Approvals::Deny { plan, note } => {
            ("approval.decide", json!({"plan_ref": plan, "decision": "deny", "note": note}))
        }
    };
    let result = context.block_on(async {
        let (connection, _) = context.administer().await?;
        call(&connection, method, params).await
    })?;
    if context.json {
        out::json(&result)?;
    } else {
        match action {
            Approvals::List { .. } => out::line(&listing(&result))?,
            Approvals::Show { plan } => match items(&result, "approvals").first() {
                Some(approval) => out::line(&shown(approval))?,
                None => {
                    return Err(Fail::Said(format!(
                        "no plan {plan} that you may see; list them with: shoal approvals list --all"
                    )));
                }
            },
            Approvals::Approve { .. } | Approvals::Deny { .. } => return decided(&result),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn listing(result: &Value) -> String {
    let rows: Vec<Vec<String>> = items(result, "approvals")
        .iter()
        .map(|a| {
            let effects: Vec<&str> = items(a, "effects_text").iter().filter_map(Value::as_str).collect();
            let first = text(a, "src").lines().next().unwrap_or_default().to_owned();
            vec![text(a, "plan_ref"), text(a, "state"), text(a, "principal"), effects.join("; "), first]
        })
        .collect();
    if rows.is_empty() {
        "nothing waits for a decision".to_owned()
    } else {
        table::render(&["PLAN", "STATE", "BY", "EFFECTS", "SOURCE"], &rows)
    }
}

/// A plan in full, for a decision.
pub(super) fn shown(approval: &Value) -> String {
    let mut out = String::new();
    for (name, member) in [
        ("plan", "plan_ref"),
        ("state", "state"),
        ("by", "principal"),
        ("owner", "owner"),
        ("session", "session"),
        ("why", "why"),
        ("reversibility", "reversibility"),
        ("decided by", "decided_by"),
        ("note", "note"),
    ] {
        let value = text(approval, member);
        if !value.is_empty() {
            out.push_str(&format!("{name:<14} {}\n", escape::line(&value)));
        }
    }
    let directory = approval.get("cwd").map(|c| text(c, "display")).unwrap_or_default();
    out.push_str(&format!("{:<14} {}\n", "directory", escape::line(&directory)));
    for effect in items(approval, "effects_text") {
        out.push_str(&format!("{:<14} {}\n", "effect", escape::line(effect.as_str().unwrap_or_default())));
    }
    for effect in items(approval, "beyond_grants") {
        out.push_str(&format!("{:<14} {}\n", "beyond grants", escape::line(&effect.to_string())));
    }
    for (name, member) in [("program", "programs"), ("script", "scripts")] {
        for item in items(approval, member) {
            let path = item.get("path").map(|p| text(p, "display")).unwrap_or_default();
            out.push_str(&format!("{name:<14} {} {}\n", escape::line(&path), text(item, "hash")));
        }
    }
    out.push_str(&format!(
        "{:<14} {}\n\n{}\n",
        "bindings",
        text(approval, "bindings"),
        escape::block(&text(approval, "src"))
    ));
    out
}

fn decided(result: &Value) -> Result<ExitCode, Fail> {
    let uncovered = items(result, "uncovered_effects");
    if !uncovered.is_empty() {
        let names: Vec<String> = uncovered.iter().map(ToString::to_string).collect();
        return Err(Fail::Said(format!(
            "nothing changed: these effects of the plan are not in --effects: {}",
            names.join(", ")
        )));
    }
    out::line(&format!("{} {}", text(result, "plan_ref"), text(result, "state")))?;
    Ok(ExitCode::SUCCESS)
}
