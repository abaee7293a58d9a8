//! The line editor: prompt, completion through the session, history from its journal.

use std::borrow::Cow;
use std::sync::Arc;

use reedline::{
    ColumnarMenu, Completer, CompletionResult, Emacs, ExternalPrinter, FileBackedHistory, HistoryItem, KeyCode,
    KeyModifiers, MenuBuilder as _, PromptEditMode, PromptHistorySearch, Reedline, ReedlineEvent, ReedlineMenu, Span,
    Suggestion, ValidationResult, Validator, default_emacs_keybindings,
};
use serde_json::{Value, json};
use shoal_syntax::{Names, parse};

use super::highlight::Colours;
use super::link::{Link, Place};
use crate::context::{items, text};
use crate::escape;
use crate::fail::Fail;

/// Lines of history taken from the journal and kept.
const HISTORY: usize = 1000;
/// Columns of the directory that the prompt shows at most.
const DIRECTORY: usize = 40;
const MENU: &str = "completion";

/// The editor of a session.
pub(crate) fn make(link: Arc<Link>, notices: ExternalPrinter<String>, color: bool) -> Result<Reedline, Fail> {
    let mut keys = default_emacs_keybindings();
    let complete = ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext]);
    keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, complete);
    let mut editor = Reedline::create()
        .with_ansi_colors(color)
        .with_external_printer(notices)
        .with_history(Box::new(history(&link)?))
        .with_validator(Box::new(Whole))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(ColumnarMenu::default().with_name(MENU))))
        .with_edit_mode(Box::new(Emacs::new(keys)));
    if color {
        editor = editor.with_highlighter(Box::new(Colours));
    }
    Ok(editor.with_completer(Box::new(SessionNames { link })))
}

/// What this principal ran in the session before, oldest first.
fn history(link: &Link) -> Result<FileBackedHistory, Fail> {
    let broken = |e: reedline::ReedlineError| Fail::Said(format!("cannot keep a history: {e}"));
    let mut history = FileBackedHistory::new(HISTORY).map_err(broken)?;
    let asked = json!({
        "kinds": ["exec"],
        "session": link.attached().session,
        "principal": link.principal(),
        "limit": HISTORY,
    });
    let rows = link.call("journal.query", asked)?;
    for row in rows.as_array().into_iter().flatten().rev() {
        let src = text(row, "src");
        if !src.trim().is_empty() {
            reedline::History::save(&mut history, HistoryItem::from_command_line(src)).map_err(broken)?;
        }
    }
    Ok(history)
}

/// Whether a text can be run as it stands; an open bracket or string asks for another line.
struct Whole;

impl Validator for Whole {
    fn validate(&self, line: &str) -> ValidationResult {
        if parse(line, &Names { session: true, ..Names::default() }).diags.iter().any(|diag| diag.partial) {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Complete
        }
    }
}

/// Names of the session, asked when the person asks.
struct SessionNames {
    link: Arc<Link>,
}

impl Completer for SessionNames {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let answer = self.link.call("complete", json!({"src": line, "cursor": pos})).unwrap_or_default();
        CompletionResult::fresh(suggestions(&answer, line, pos))
    }
}

/// Candidates in place of the identifier before the cursor.
fn suggestions(answer: &Value, line: &str, pos: usize) -> Vec<Suggestion> {
    let before = line.get(..pos).unwrap_or(line);
    let start = before
        .rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .map_or(0, |at| at + before.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8));
    items(answer, "candidates")
        .iter()
        .filter_map(Value::as_str)
        .map(|name| Suggestion {
            value: name.to_owned(),
            span: Span::new(start, before.len()),
            ..Suggestion::default()
        })
        .collect()
}

/// `SESSION DIRECTORY>`; after a failure the sign is `!`.
pub(crate) struct Prompt {
    left: String,
    sign: &'static str,
}

impl Prompt {
    pub(crate) fn of(place: &Place) -> Self {
        let home = std::env::var("HOME").unwrap_or_default();
        let directory = match place.cwd.strip_prefix(&home).filter(|_| !home.is_empty()) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("~{rest}"),
            _ => place.cwd.clone(),
        };
        let directory = shortened(&escape::line(&directory));
        Self {
            left: format!("{} {directory}", escape::line(&place.session)),
            sign: if place.failed { "! " } else { "> " },
        }
    }
}

/// The end of a long path: where one is says more than where it began.
fn shortened(path: &str) -> String {
    let count = path.chars().count();
    if count <= DIRECTORY {
        return path.to_owned();
    }
    let tail: String = path.chars().skip(count - DIRECTORY + 1).collect();
    format!("…{tail}")
}

impl reedline::Prompt for Prompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.left)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed(self.sign)
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("... ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("(search: {}) ", search.term))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_replace_the_name_before_the_cursor() {
        let answer = json!({"candidates": ["filter", "first"]});
        let spans = |line: &str, pos| {
            suggestions(&answer, line, pos)
                .iter()
                .map(|s| (s.value.clone(), s.span.start, s.span.end))
                .collect::<Vec<_>>()
        };
        assert_eq!(spans("x.fi", 4)[0], ("filter".to_owned(), 2, 4));
        assert_eq!(spans("é fi", 5)[1], ("first".to_owned(), 3, 5));
        assert_eq!(spans("", 0)[0].1, 0);
    }

    #[test]
    fn an_open_text_asks_for_more() {
        let is_whole = |line: &str| matches!(Whole.validate(line), ValidationResult::Complete);
        assert!(is_whole("1 + 1") && is_whole("ls ."));
        assert!(!is_whole("if true {") && !is_whole("[1,") && !is_whole("(ls ."));
        // A mistake that no further line mends is the kernel's to explain.
        assert!(is_whole(")"));
    }

    #[test]
    fn the_prompt_is_short_and_escaped() {
        let place = Place { session: "a\x1b".to_owned(), cwd: format!("/{}", "x".repeat(60)), failed: true };
        let prompt = Prompt::of(&place);
        assert!(prompt.left.starts_with("a\\u{1b} …"), "{}", prompt.left);
        assert_eq!(prompt.left.chars().count(), "a\\u{1b} ".chars().count() + DIRECTORY);
        assert_eq!(prompt.sign, "! ");
    }
}
