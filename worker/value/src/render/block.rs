//! The block form: what a reader sees of a final or echoed value.

use std::borrow::Cow;

use shoal_wire::limits::TEXT_BYTES;
use shoal_wire::text::ends;

use super::bound::{line_count, more_lines, tail_lines, whole_lines};
use super::columns::{Drawing, cell};
use super::inline::inline;
use super::text::{escape_controls, one_line, width};
use super::{Budgeted, Full};
use crate::{Bytes, ErrorValue, Outcome, PathValue, Record, Str, Value, units};

/// How block text is made.
#[derive(Clone, Debug)]
pub struct Style {
    /// Display cells of a line that tables are fitted to.
    pub width: usize,
    /// Whether headers, keys and errors are set off with ANSI escapes. Only for terminals.
    pub color: bool,
    /// Working directory: paths that only repeat it are not drawn.
    pub cwd: Option<PathValue>,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: 80, color: false, cwd: None }
    }
}

/// Bytes of a command's output that a bounded form shows whole.
const STREAMS_WHOLE: u64 = 56 * 1024;
/// Of longer output, so much of each stream's beginning.
const STREAM_HEAD: usize = 16 * 1024;
/// And so much of its end.
const STREAM_TAIL: usize = 8 * 1024;

/// Lines of each stream of a failed command shown with its error.
const ERROR_LINES: usize = 20;

/// Bytes of those lines: one line of a program may be arbitrarily long.
const ERROR_BYTES: usize = 16 * 1024;

/// The block form, complete, without a final newline.
pub fn block(value: &Value, style: &Style) -> String {
    let mut page = Page::new(usize::MAX, None);
    page.draw(value, style);
    page.out.text
}

/// The block form within [`TEXT_BYTES`] bytes: whole leading lines, and a line that counts the lines left out and names
/// `uri`. What does not fit is counted without being drawn. Of a command that printed more than fits, the beginning and the
/// end of each stream are shown, because that is where its errors stand, and how it ended.
pub fn block_within(value: &Value, style: &Style, uri: Option<&str>) -> String {
    let mut page = Page::new(TEXT_BYTES, uri);
    page.draw(value, style);
    let Page { out: Budgeted { text, .. }, left_out, last_is_cut, .. } = page;
    if left_out == 0 {
        return text;
    }
    let kept = whole_lines(&text);
    // A cut last line is counted among those left out already.
    let drawn = if last_is_cut { text.rfind('\n').map_or(0, |at| at + 1) } else { text.len() };
    let more = left_out + line_count(&text[kept..drawn.max(kept)]);
    format!("{}{}", &text[..kept], more_lines(&text[..kept], more, uri))
}

/// Lines drawn so far, and the number of lines that did not fit, a cut one included.
struct Page<'u> {
    out: Budgeted,
    /// Where the whole is, if what is drawn is bounded.
    uri: Option<&'u str>,
    left_out: u64,
    last_is_cut: bool,
    started: bool,
}

impl<'u> Page<'u> {
    fn new(budget: usize, uri: Option<&'u str>) -> Self {
        Self { out: Budgeted::new(budget), uri, left_out: 0, last_is_cut: false, started: false }
    }

    fn is_full(&self) -> bool {
        self.left_out > 0
    }

    /// Adds one or more lines of finished text.
    fn text(&mut self, text: &str) {
        let lines = line_count(text).max(1);
        if self.is_full() {
            self.left_out += lines;
            return;
        }
        let gap = if self.started { "\n" } else { "" };
        self.started = true;
        if let Err(Full) = self.out.push(gap) {
            self.left_out = lines;
            return;
        }
        let before = self.out.text.len();
        if let Err(Full) = self.out.push(text) {
            let drawn = self.out.text[before..].bytes().filter(|b| *b == b'\n').count() as u64;
            self.left_out = lines - drawn;
            self.last_is_cut = true;
        }
    }

    fn lines<T>(&mut self, items: impl ExactSizeIterator<Item = T>, mut line: impl FnMut(T) -> String) {
        let mut items = items;
        while let Some(item) = items.next() {
            self.text(&line(item));
            if self.is_full() {
                self.left_out += items.len() as u64;
                return;
            }
        }
    }

    fn draw(&mut self, value: &Value, style: &Style) {
        match value {
            Value::Null => {}
            Value::Str(text) => self.raw(text),
            Value::Table(table) => self.table(table.columns(), table.rows(), style),
            Value::List(list) => self.list(list, style),
            Value::Record(record) => self.record(record, style),
            Value::Outcome(outcome) => self.outcome(outcome, style),
            Value::Bytes(bytes) => self.bytes(bytes),
            Value::Error(error) => self.error(error, style),
            other => self.text(&escape_controls(&inline(other))),
        }
    }

    /// Text of a value. Escaping makes it longer, so it is done only for the part that can fit.
    fn raw(&mut self, text: &str) {
        let (near, far) = text.split_at(text.ceil_char_boundary(self.out.left.saturating_add(1)));
        self.text(&escape_controls(near));
        self.left_out += further_lines(near.as_bytes(), far.as_bytes());
    }

    fn list(&mut self, list: &[Value], style: &Style) {
        let rows: Option<Vec<Record>> = list
            .iter()
            .map(|item| match item {
                Value::Record(row) => Some(row.clone()),
                _ => None,
            })
            .collect();
        match rows {
            Some(rows) if !rows.is_empty() => match crate::Table::new(rows) {
                Ok(table) => self.table(table.columns(), table.rows(), style),
                Err(_) => self.items(list),
            },
            _ if list.is_empty() => self.text("[]"),
            _ => self.items(list),
        }
    }

    fn items(&mut self, list: &[Value]) {
        let budget = self.out.left.saturating_add(1);
        self.lines(list.iter(), |item| cell(item, budget));
    }

    fn table(&mut self, columns: &[Str], rows: &[Record], style: &Style) {
        if rows.is_empty() {
            return self.text("(empty table)");
        }
        // A line has at least its newline, so no more rows than bytes left can be shown or influence the widths.
        let drawing = Drawing::new(columns, &rows[..rows.len().min(self.out.left)], style.width, style.cwd.as_ref());
        self.text(&paint(&drawing.header(), BOLD, style));
        self.text(&paint(&drawing.rule(), DIM, style));
        self.lines(rows.iter(), |row| drawing.row(row));
    }

    fn record(&mut self, record: &Record, style: &Style) {
        if record.is_empty() {
            return self.text("{}");
        }
        let keys: Vec<Cow<'_, str>> = record.keys().iter().map(|key| one_line(key)).collect();
        let widest = keys.iter().map(|key| width(key)).max().unwrap_or(0);
        let budget = self.out.left.saturating_add(1);
        self.lines(keys.iter().zip(record.values()), |(key, value)| {
            let pad = " ".repeat(widest - width(key) + 2);
            format!("{}{pad}{}", paint(key, BOLD, style), cell(value, budget)).trim_end_matches(' ').to_owned()
        });
    }

    fn outcome(&mut self, outcome: &Outcome, style: &Style) {
        if !outcome.ok {
            let both = outcome.stdout.len().saturating_add(outcome.stderr.len());
            self.stream_text("stdout", &outcome.stdout, both);
            self.stream_text("stderr", &outcome.stderr, both);
            self.capture_note(outcome);
            let end = match (&outcome.signal, outcome.status) {
                (Some(signal), _) if outcome.limit.is_some() => {
                    format!("[{signal}, limit {}]", outcome.limit.as_deref().unwrap_or_default())
                }
                (Some(signal), _) => format!("[{signal}]"),
                (None, Some(status)) => format!("[exit {status}]"),
                (None, None) => "[no status]".to_owned(),
            };
            return self.text(&paint(&end, RED, style));
        }
        match outcome.peek_out() {
            out @ (Value::Table(_) | Value::Record(_) | Value::List(_)) => self.draw(out, style),
            _ if !outcome.stdout.is_empty() => self.stream_text("stdout", &outcome.stdout, outcome.stdout.len()),
            Value::Str(text) if !text.is_empty() => self.raw(text),
            _ => self.text("ok"),
        }
        self.capture_note(outcome);
    }

    /// Says of a stream of which not everything was kept how much was.
    fn capture_note(&mut self, outcome: &Outcome) {
        let Some(capture) = outcome.capture else { return };
        let streams = [
            ("stdout", capture.stdout_kept, capture.stdout_seen),
            ("stderr", capture.stderr_kept, capture.stderr_seen),
        ];
        for (name, kept, seen) in streams.into_iter().filter(|(_, kept, seen)| kept < seen) {
            let (kept, seen) = (units::format_size(kept), units::format_size(seen));
            self.text(&format!("[{name}: capture stopped at {kept} of {seen}]"));
        }
    }

    /// What a program printed, without its last newline; nothing if it printed nothing. When all that is shown of it is
    /// too long, both ends.
    fn stream_text(&mut self, name: &str, bytes: &Bytes, printed: u64) {
        if bytes.is_empty() {
            return;
        }
        match (self.uri, bytes) {
            (Some(uri), Bytes::Held(_) | Bytes::Cut(_)) if printed > STREAMS_WHOLE => {
                let text = bytes.to_text_lossy();
                let step = if uri.contains("?path=") { "." } else { "?path=" };
                let text = escape_controls(&text);
                let shown = ends(&text, STREAM_HEAD, STREAM_TAIL, &format!("{uri}{step}{name}"));
                self.text(shown.strip_suffix('\n').unwrap_or(&shown));
            }
            _ => self.bytes(bytes),
        }
    }

    fn bytes(&mut self, bytes: &Bytes) {
        let text = match bytes.held() {
            // Only what can fit is decoded; the rest is counted.
            Some(held) if held.len() / 4 > self.out.left => return self.long_bytes(held),
            _ => bytes.to_text_lossy(),
        };
        self.raw(text.strip_suffix('\n').unwrap_or(&text));
        if let Bytes::Stored(stored) = bytes {
            let size = units::format_size(stored.len);
            self.text(&format!("[{size} in all, val:blake3:{}]", stored.hash));
        }
    }

    fn long_bytes(&mut self, held: &[u8]) {
        let held = held.strip_suffix(b"\n").unwrap_or(held);
        let (near, far) = held.split_at(self.out.left.saturating_add(1).min(held.len()));
        self.text(&escape_controls(&String::from_utf8_lossy(near)));
        self.left_out += further_lines(near, far);
    }

    fn error(&mut self, error: &ErrorValue, style: &Style) {
        let head = format!("error({}): {}", error.code, error.msg);
        self.text(&paint(&escape_controls(&head), RED, style));
        for (label, bytes) in [("stdout", &error.stdout), ("stderr", &error.stderr)] {
            if let Some(bytes) = bytes.as_ref().filter(|bytes| !bytes.is_empty()) {
                let text = bytes.to_text_lossy();
                self.text(&format!("{label}:"));
                self.text(&escape_controls(tail_lines(&text, ERROR_LINES, ERROR_BYTES)));
            }
        }
        if let Some(hint) = &error.hint {
            self.text(&format!("hint: {}", escape_controls(hint)));
        }
    }
}

/// Lines that `far` adds to `near`, which is more than fits: the first may be the rest of the last line of `near`.
fn further_lines(near: &[u8], far: &[u8]) -> u64 {
    let breaks = far.iter().filter(|b| **b == b'\n').count() as u64;
    match (near.ends_with(b"\n"), far.last()) {
        (_, None) => 0,
        (true, Some(b'\n')) => breaks,
        (true, Some(_)) => breaks + 1,
        (false, Some(b'\n')) => breaks - 1,
        (false, Some(_)) => breaks,
    }
}

const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";

fn paint<'a>(text: &'a str, sgr: &str, style: &Style) -> Cow<'a, str> {
    if style.color { Cow::Owned(format!("\x1b[{sgr}m{text}\x1b[0m")) } else { Cow::Borrowed(text) }
}
