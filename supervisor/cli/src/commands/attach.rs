//! `shoal attach`: an interactive prompt in a session. Every line is an ordinary run of the session; the prompt adds an
//! editor, the output as it comes, and notices about what happens beside it.

mod editor;
mod highlight;
mod link;
mod notice;
mod run;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use reedline::Signal;
use serde_json::Value;

use crate::args::AttachTo;
use crate::context::{Context, text};
use crate::fail::Fail;
use crate::{escape, out};
use editor::Prompt;
use link::Link;

/// Words that end the prompt; they are commands of the language too, which end a script.
const LEAVE: [&str; 2] = ["exit", "quit"];

/// Runs the prompt until the person leaves. The exit code is 0 then, whatever the last line did.
pub(crate) fn run(mut context: Context, to: AttachTo) -> Result<ExitCode, Fail> {
    if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
        return Err(Fail::Usage(
            "attach needs a terminal; to run a text use: shoal exec - < FILE (or shoal exec SRC)".to_owned(),
        ));
    }
    if let Some(name) = to.name {
        context.config.session = name;
    }
    let color = crate::style::on_stdout();
    let (link, notices) = Link::open(&context, to.owner)?;
    greet(&link)?;
    let link = std::sync::Arc::new(link);
    let mut editor = editor::make(std::sync::Arc::clone(&link), notices, color)?;
    loop {
        let prompt = Prompt::of(&link.place());
        match editor.read_line(&prompt).map_err(|e| Fail::Said(format!("the terminal cannot be read: {e}")))? {
            Signal::Success(line) if LEAVE.contains(&line.trim()) => break,
            Signal::Success(line) if line.trim().is_empty() => {}
            Signal::Success(line) => run::line(&link, &line)?,
            Signal::CtrlC => out::line("")?,
            Signal::CtrlD => break,
            // Nothing is bound to a host command and nobody breaks the editor from outside.
            _ => {}
        }
    }
    out::line(&farewell(&link))?;
    Ok(ExitCode::SUCCESS)
}

fn greet(link: &Link) -> Result<(), Fail> {
    let attached = link.attached();
    let made = if attached.created { "new session" } else { "session" };
    let level = text(&attached.all, "level");
    out::line(&format!(
        "{made} {} of {}, level {level}. Tab completes, Ctrl-C cancels a run, Ctrl-Z leaves it running, exit leaves.",
        escape::line(&attached.session),
        escape::line(&attached.owner)
    ))
}

/// What goes on without the prompt: a person who leaves should know.
fn farewell(link: &Link) -> String {
    let tasks = link.call("task.list", Value::Null).ok();
    let running = tasks.as_ref().and_then(Value::as_array).map_or(0, |tasks| {
        tasks.iter().filter(|task| matches!(task["state"].as_str(), Some("running" | "suspended"))).count()
    });
    let session = escape::line(&link.attached().session);
    match running {
        0 => format!("left {session}; it stays as it is"),
        1 => format!("left {session}; 1 task goes on (see it with: shoal top)"),
        n => format!("left {session}; {n} tasks go on (see them with: shoal top)"),
    }
}
