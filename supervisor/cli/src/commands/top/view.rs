//! Drawing the board. Every text of the kernel is escaped before it gets here or on the way.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Cell, Clear, Paragraph, Row, Sparkline, Table, TableState, Wrap};
use serde_json::Value;

use super::board::{Board, Inside, Over, Pane};
use super::keys::HELP;
use super::rates::CHANNELS;
use crate::commands::status::size;
use crate::context::{items, text};
use crate::escape;

/// From this width on the lists stand in two columns.
const WIDE: u16 = 130;

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, board: &Board) {
    let [head, lists, foot] =
        Layout::vertical([Constraint::Length(2), Constraint::Min(8), Constraint::Length(1)]).areas(frame.area());
    header(frame, head, board);
    if lists.width >= WIDE {
        let [left, right] = Layout::horizontal([Constraint::Percentage(56), Constraint::Fill(1)]).areas(lists);
        let [sessions, inside] = Layout::vertical([Constraint::Percentage(50), Constraint::Fill(1)]).areas(left);
        let [approvals, processes] = Layout::vertical([Constraint::Percentage(40), Constraint::Fill(1)]).areas(right);
        panes(frame, board, [sessions, inside, approvals, processes]);
    } else {
        // At 24 lines this leaves every list its head and at least one row.
        let [sessions, inside, approvals, processes] =
            Layout::vertical([6, 5, 4, 6].map(Constraint::Fill)).areas(lists);
        panes(frame, board, [sessions, inside, approvals, processes]);
    }
    let message = Paragraph::new(board.message.as_str()).style(toned(board, Color::Yellow));
    frame.render_widget(message, foot);
    over(frame, board);
}

fn toned(board: &Board, color: Color) -> Style {
    if board.color { Style::new().fg(color) } else { Style::new() }
}

fn header(frame: &mut Frame<'_>, area: Rect, board: &Board) {
    let [facts, events] = Layout::vertical([Constraint::Length(1), Constraint::Length(1)]).areas(area);
    let status = &board.status;
    let value = |member| escape::line(&text(status, member));
    let journal = status.get("journal").unwrap_or(&Value::Null);
    let writable = if journal["writable"] == Value::Bool(false) { " NOT WRITABLE" } else { "" };
    let line = format!(
        "up {}  level {}  sessions {}  tasks {}  terminals {}  connections {}  journal {} rows{writable}  build {}",
        elapsed(status["uptime_ms"].as_u64().unwrap_or(0)),
        value("level"),
        value("sessions"),
        value("tasks_running"),
        value("ptys"),
        value("connections"),
        escape::line(&text(journal, "rows")),
        value("build"),
    );
    let title = Span::styled("shoal ", toned(board, Color::Cyan).add_modifier(Modifier::BOLD));
    frame.render_widget(Line::from(vec![title, Span::raw(line)]), facts);
    let rates: Vec<String> = CHANNELS
        .iter()
        .zip(board.rates.tenths())
        .map(|(channel, tenths)| format!("{channel} {}.{}", tenths / 10, tenths % 10))
        .collect();
    let words = format!("events/s  {}  ", rates.join("  "));
    let width = u16::try_from(words.len()).unwrap_or(u16::MAX);
    let [left, right] = Layout::horizontal([Constraint::Length(width), Constraint::Fill(1)]).areas(events);
    frame.render_widget(Paragraph::new(words), left);
    let history = board.rates.history();
    let fit = history.len().saturating_sub(usize::from(right.width));
    let newest = history.get(fit..).unwrap_or_default();
    frame.render_widget(Sparkline::default().data(newest).style(toned(board, Color::Green)), right);
}

/// Hours and minutes, or minutes and seconds.
fn elapsed(ms: u64) -> String {
    let seconds = ms / 1000;
    match (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (0, hours, minutes, _) => format!("{hours}h{minutes:02}m"),
        (days, hours, _, _) => format!("{days}d{hours:02}h"),
    }
}

fn panes(frame: &mut Frame<'_>, board: &Board, areas: [Rect; 4]) {
    let [sessions, inside, approvals, processes] = areas;
    let widths = [20, 8, 4, 5, 4, 5, 9].map(Constraint::Length).into_iter().chain([Constraint::Fill(1)]);
    let head = ["SESSION", "STATE", "RUNS", "TASKS", "PTYS", "PROCS", "MEMORY", "DIRECTORY"];
    let rows = board.sessions.iter().map(|row| session(board, row)).collect();
    list(frame, board, sessions, Pane::Sessions, ("sessions", &head), widths.collect(), rows);

    let named = board.session().map_or_else(String::new, |session| format!(" of {}", escape::line(&session.session)));
    let title = format!("tasks and terminals{named}");
    let widths = [9, 11, 10].map(Constraint::Length).into_iter().chain([Constraint::Fill(1)]).collect();
    let rows = match board.closed {
        Some(why) => vec![Row::new(vec![Cell::from(""), Cell::from(""), Cell::from(""), Cell::from(why)])],
        None => board.inside.iter().map(|thing| inside_row(board, thing)).collect(),
    };
    list(frame, board, inside, Pane::Inside, (&title, &["ID", "STATE", "OUTPUT", "WHAT"]), widths, rows);

    let title = format!("approvals ({} wait)", board.approvals.len());
    let widths = vec![Constraint::Length(14), Constraint::Fill(2), Constraint::Fill(3)];
    let rows = board.approvals.iter().map(approval).collect();
    list(frame, board, approvals, Pane::Approvals, (&title, &["BY", "EFFECTS", "SOURCE"]), widths, rows);

    let widths = [10, 7].map(Constraint::Length).into_iter().chain([Constraint::Fill(1)]);
    let widths = widths.chain([8, 9, 8, 4].map(Constraint::Length)).collect();
    let head = ["ROLE", "PID", "SESSION", "STATE", "MEMORY", "RESTARTS", "JAIL"];
    let rows = items(&board.status, "processes").iter().map(|row| process(board, row)).collect();
    list(frame, board, processes, Pane::Processes, ("processes", &head), widths, rows);
}

fn list(
    frame: &mut Frame<'_>,
    board: &Board,
    area: Rect,
    pane: Pane,
    (title, head): (&str, &[&str]),
    widths: Vec<Constraint>,
    rows: Vec<Row<'_>>,
) {
    let in_front = board.pane == pane;
    let (border, kind) = if in_front { (Color::Cyan, BorderType::Thick) } else { (Color::DarkGray, BorderType::Plain) };
    let block = Block::bordered().title(format!(" {title} ")).border_type(kind).border_style(toned(board, border));
    let head = Row::new(head.iter().map(|cell| Cell::from((*cell).to_owned())));
    let selected = if in_front { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
    let table = Table::new(rows, widths)
        .header(head.style(Style::new().add_modifier(Modifier::BOLD)))
        .block(block)
        .row_highlight_style(selected);
    let mut state = TableState::default();
    if board.len(pane) > 0 {
        state.select(Some(board.at(pane)));
    }
    frame.render_stateful_widget(table, area, &mut state);
}

fn cell(row: &Value, member: &str) -> Cell<'static> {
    Cell::from(escape::line(&text(row, member)))
}

/// A state in the colour of its urgency.
fn state(board: &Board, row: &Value) -> Cell<'static> {
    let name = text(row, "state");
    let color = match name.as_str() {
        "busy" | "running" | "up" | "completed" => Color::Green,
        "frozen" | "suspended" | "restarting" | "starting" | "draining" | "cancelling" => Color::Yellow,
        "failed" => Color::Red,
        _ => Color::Reset,
    };
    Cell::from(escape::line(&name)).style(toned(board, color))
}

fn memory(row: &Value) -> Cell<'static> {
    Cell::from(size(row["rss_bytes"].as_u64().unwrap_or(0)))
}

fn session(board: &Board, row: &Value) -> Row<'static> {
    let name = format!("{}/{}", text(row, "owner"), text(row, "session"));
    let cwd = row.get("cwd").map(|cwd| text(cwd, "display")).unwrap_or_default();
    let counts = ["execs_running", "tasks", "ptys", "processes"].map(|member| cell(row, member));
    let first = [Cell::from(escape::line(&name)), state(board, row)];
    Row::new(first.into_iter().chain(counts).chain([memory(row), Cell::from(escape::line(&cwd))]))
}

fn inside_row(board: &Board, thing: &Inside) -> Row<'static> {
    match thing {
        Inside::Task(task) => {
            let bytes = task["stdout_bytes"].as_u64().unwrap_or(0) + task["stderr_bytes"].as_u64().unwrap_or(0);
            let first = text(task, "src").lines().next().unwrap_or_default().to_owned();
            Row::new([
                cell(task, "task"),
                state(board, task),
                Cell::from(bytes.to_string()),
                Cell::from(escape::line(&first)),
            ])
        }
        Inside::Pty(pty) => {
            let alive = if pty["alive"] == Value::Bool(true) { "running" } else { "ended" };
            let taken = if pty["taken"] == Value::Bool(true) { " (taken by a person)" } else { "" };
            let what = format!("{}{taken}", escape::line(&text(pty, "cmd")));
            let size = format!("{}x{}", text(pty, "cols"), text(pty, "rows"));
            Row::new([cell(pty, "pty_id"), Cell::from(alive), Cell::from(escape::line(&size)), Cell::from(what)])
        }
    }
}

fn approval(row: &Value) -> Row<'static> {
    let effects: Vec<&str> = items(row, "effects_text").iter().filter_map(Value::as_str).collect();
    let first = text(row, "src").lines().next().unwrap_or_default().to_owned();
    Row::new([cell(row, "principal"), Cell::from(escape::line(&effects.join("; "))), Cell::from(escape::line(&first))])
}

fn process(board: &Board, row: &Value) -> Row<'static> {
    let tier = row.pointer("/jail/tier").and_then(Value::as_str).unwrap_or("-").to_owned();
    Row::new([
        cell(row, "role"),
        cell(row, "pid"),
        // Whose session it is stands in the list of sessions.
        cell(row, "session"),
        state(board, row),
        memory(row),
        cell(row, "restarts"),
        Cell::from(escape::line(&tier)),
    ])
}

/// What lies over the lists, in the middle.
fn over(frame: &mut Frame<'_>, board: &Board) {
    let (title, body, scroll, color) = match &board.over {
        Over::None => return,
        Over::Help => {
            let lines: Vec<String> = HELP.iter().map(|(key, what)| format!("{key:<8}{what}")).collect();
            ("keys".to_owned(), lines.join("\n"), 0, Color::Cyan)
        }
        Over::Details { title, body, scroll } => (title.clone(), body.clone(), *scroll, Color::Cyan),
        Over::Confirm { question, body, scroll, .. } => {
            (format!("{question}  y: yes, arrows: read on, any other key: no"), body.clone(), *scroll, Color::Red)
        }
    };
    let area = frame.area();
    let lines = u16::try_from(body.lines().count()).unwrap_or(u16::MAX);
    let height = lines.saturating_add(4).min(area.height.saturating_sub(2));
    let width = area.width.saturating_sub(8).min(100);
    let [middle] = Layout::vertical([Constraint::Length(height)]).flex(ratatui::layout::Flex::Center).areas(area);
    let [middle] = Layout::horizontal([Constraint::Length(width)]).flex(ratatui::layout::Flex::Center).areas(middle);
    let block =
        Block::bordered().border_type(BorderType::Thick).title(format!(" {title} ")).border_style(toned(board, color));
    frame.render_widget(Clear, middle);
    frame.render_widget(Paragraph::new(body).block(block).wrap(Wrap { trim: false }).scroll((scroll, 0)), middle);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    fn screen(board: &Board, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        terminal.draw(|frame| draw(frame, board)).expect("drawn");
        terminal.backend().to_string()
    }

    fn board() -> Board {
        let mut board = Board::new(true);
        board.status = json!({"uptime_ms": 3_725_000, "level": "L3", "sessions": 1, "journal": {"rows": 412},
            "processes": [{"role": "worker", "pid": 950, "session": "work", "owner": "uid:1", "state": "up",
                "rss_bytes": 33_554_432, "restarts": 1, "jail": {"tier": "A"}}]});
        board.take_sessions(vec![json!({"owner": "uid:1", "session": "work", "state": "busy", "tasks": 2,
            "cwd": {"display": "/srv/\u{1b}[2Jsite"}})]);
        board.inside = vec![Inside::Task(json!({"task": "task:7", "state": "running", "src": "make\nall"}))];
        board.take_approvals(vec![json!({"plan_ref": "plan:1", "principal": "agent:x", "src": "rm y",
            "effects_text": ["deletes y"]})]);
        board
    }

    #[test]
    fn everything_is_on_the_screen_and_nothing_steers_it() {
        for (width, height) in [(80, 24), (160, 40)] {
            let shown = screen(&board(), width, height);
            for text in [
                "up 1h02m",
                "uid:1/work",
                "busy",
                "task:7",
                "make",
                "agent:x",
                "deletes y",
                "worker",
                "950",
                "32.0 MiB",
            ] {
                assert!(shown.contains(text), "{text} is missing at {width}x{height}:\n{shown}");
            }
            assert!(!shown.contains('\u{1b}'));
        }
    }

    #[test]
    fn any_size_can_be_drawn() {
        let mut board = board();
        for over in [Over::None, Over::Help, Over::Details { title: "t".into(), body: "b\n".repeat(99), scroll: 5 }] {
            board.over = over;
            for (width, height) in [(1, 1), (10, 3), (40, 10), (300, 100)] {
                screen(&board, width, height);
            }
        }
    }

    #[test]
    fn a_question_shows_what_it_is_about() {
        let mut board = board();
        board.over = Over::Confirm {
            question: "approve plan:1?".into(),
            body: "rm y".into(),
            call: super::super::board::Call { method: "approval.decide", params: json!({}), session: None },
            scroll: 0,
        };
        let shown = screen(&board, 80, 24);
        assert!(shown.contains("approve plan:1?") && shown.contains("y: yes"), "{shown}");
    }

    #[test]
    fn times_are_short() {
        assert_eq!(
            (elapsed(59_000), elapsed(3_725_000), elapsed(90_000_000)),
            ("0m59s".into(), "1h02m".into(), "1d01h".into())
        );
    }
}
