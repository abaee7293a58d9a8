//! What a key does: it moves the selection, opens a text or a question, or asks for a call. Everything that ends or
//! allows something is asked about first, with what it is about in full.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};

use super::board::{Board, Call, Inside, Over, PANES, Pane, SessionName};
use crate::commands::approvals;
use crate::context::text;
use crate::escape;

/// What the loop has to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    None,
    Look,
    Quit,
    Call { method: &'static str, params: Value, owner: Option<SessionName> },
}

/// Rows a page key moves.
const PAGE: isize = 10;

/// The keys as the help shows them.
pub(super) const HELP: [(&str, &str); 9] = [
    ("Tab", "next list; Shift-Tab the one before"),
    ("arrows", "select a row; PageUp, PageDown, Home, End"),
    ("Enter", "details; on somebody else's session: look into it (its journal records that)"),
    ("k", "kill: the session, or the selected task or terminal"),
    ("f", "freeze or thaw the session"),
    ("a", "approve the selected plan"),
    ("d", "deny the selected plan"),
    ("?", "these keys"),
    ("q", "quit; Escape closes what is open first"),
];

/// Takes a key.
pub(super) fn action(board: &mut Board, key: KeyEvent) -> Action {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return if key.code == KeyCode::Char('c') { Action::Quit } else { Action::None };
    }
    match std::mem::replace(&mut board.over, Over::None) {
        Over::None => on_lists(board, key.code),
        Over::Confirm { question, body, call, scroll } => match (key.code, scrolled(scroll, key.code)) {
            (KeyCode::Char('y' | 'Y'), _) => {
                Action::Call { method: call.method, params: call.params, owner: call.session }
            }
            (_, Some(scroll)) => {
                board.over = Over::Confirm { question, body, call, scroll };
                Action::None
            }
            _ => {
                board.message = "nothing done".to_owned();
                Action::None
            }
        },
        Over::Details { title, body, scroll } => {
            if let Some(scroll) = scrolled(scroll, key.code) {
                board.over = Over::Details { title, body, scroll };
            }
            Action::None
        }
        Over::Help => Action::None,
    }
}

/// Where a text is after a key that moves it.
fn scrolled(scroll: u16, key: KeyCode) -> Option<u16> {
    let page = PAGE.unsigned_abs() as u16;
    Some(match key {
        KeyCode::Up => scroll.saturating_sub(1),
        KeyCode::Down => scroll.saturating_add(1),
        KeyCode::PageUp => scroll.saturating_sub(page),
        KeyCode::PageDown => scroll.saturating_add(page),
        _ => return None,
    })
}

fn on_lists(board: &mut Board, key: KeyCode) -> Action {
    match key {
        KeyCode::Char('q') | KeyCode::Esc => return Action::Quit,
        KeyCode::Tab | KeyCode::Right => board.turn(1),
        KeyCode::BackTab | KeyCode::Left => board.turn(PANES.len() - 1),
        KeyCode::Up => return moved(board, -1),
        KeyCode::Down => return moved(board, 1),
        KeyCode::PageUp => return moved(board, -PAGE),
        KeyCode::PageDown => return moved(board, PAGE),
        KeyCode::Home => return moved(board, isize::MIN),
        KeyCode::End => return moved(board, isize::MAX),
        KeyCode::Char('?' | 'h') => board.over = Over::Help,
        KeyCode::Enter => return details(board),
        KeyCode::Char('k') => kill(board),
        KeyCode::Char('f') => return freeze(board),
        KeyCode::Char('a') => decide(board, "approve"),
        KeyCode::Char('d') => decide(board, "deny"),
        _ => {}
    }
    Action::None
}

/// Another session has another inside.
fn moved(board: &mut Board, by: isize) -> Action {
    board.step(by);
    if board.pane == Pane::Sessions { Action::Look } else { Action::None }
}

fn details(board: &mut Board) -> Action {
    let (title, body) = match board.pane {
        Pane::Sessions => {
            let Some(session) = board.session() else { return Action::None };
            if board.closed.is_some() && !board.is_entered(&session) {
                board.enter(session);
                return Action::Look;
            }
            let row = board.sessions.get(board.at(Pane::Sessions)).cloned().unwrap_or_default();
            (format!("session {}", session.session), pretty(&row))
        }
        Pane::Inside => match board.thing() {
            Some(Inside::Task(task)) => (text(task, "task"), pretty(task)),
            Some(Inside::Pty(pty)) => (text(pty, "pty_id"), pretty(pty)),
            None => return Action::None,
        },
        Pane::Approvals => match board.approval() {
            Some(approval) => (text(approval, "plan_ref"), approvals::shown(approval)),
            None => return Action::None,
        },
        Pane::Processes => match board.process() {
            Some(process) => (format!("process {}", text(process, "pid")), pretty(process)),
            None => return Action::None,
        },
    };
    board.over = Over::Details { title: escape::line(&title), body, scroll: 0 };
    Action::None
}

fn pretty(value: &Value) -> String {
    escape::block(&format!("{value:#}"))
}

fn kill(board: &mut Board) {
    let Some(session) = board.session() else {
        board.message = "no session is selected".to_owned();
        return;
    };
    let (question, body, call) = match (board.pane, board.thing()) {
        (Pane::Inside, Some(Inside::Task(task))) => {
            let name = text(task, "task");
            let call = in_session("task.cancel", json!({"task": name}), session);
            (format!("cancel {name}?"), text(task, "src"), call)
        }
        (Pane::Inside, Some(Inside::Pty(pty))) => {
            let name = text(pty, "pty_id");
            let call = in_session("pty.close", json!({"pty_id": name}), session);
            (format!("close terminal {name}?"), text(pty, "cmd"), call)
        }
        (Pane::Inside, None) => {
            board.message = "nothing is selected in this session".to_owned();
            return;
        }
        (Pane::Sessions | Pane::Approvals | Pane::Processes, _) => {
            let params = json!({"session": session.session, "owner": session.owner, "reason": "shoal top"});
            let body = "Ends every process of it, verified. Its bindings are lost, its journal stays.".to_owned();
            let call = Call { method: "session.kill", params, session: None };
            (format!("kill session {} of {}?", session.session, session.owner), body, call)
        }
    };
    board.over = Over::Confirm { question: escape::line(&question), body: escape::block(&body), call, scroll: 0 };
}

fn in_session(method: &'static str, params: Value, session: SessionName) -> Call {
    Call { method, params, session: Some(session) }
}

/// Freezing loses nothing, so nobody is asked.
fn freeze(board: &mut Board) -> Action {
    let Some(session) = board.session() else {
        board.message = "no session is selected".to_owned();
        return Action::None;
    };
    let row = board.sessions.get(board.at(Pane::Sessions));
    let is_frozen = row.is_some_and(|row| row["state"] == json!("frozen"));
    let method = if is_frozen { "session.thaw" } else { "session.freeze" };
    Action::Call { method, params: json!({"session": session.session, "owner": session.owner}), owner: None }
}

fn decide(board: &mut Board, decision: &'static str) {
    if board.pane != Pane::Approvals {
        board.pane = Pane::Approvals;
        board.message = format!("select the plan, then {} again", if decision == "deny" { "d" } else { "a" });
        return;
    }
    let Some(approval) = board.approval() else {
        board.message = "nothing waits for a decision".to_owned();
        return;
    };
    let plan = text(approval, "plan_ref");
    let params = json!({"plan_ref": plan, "decision": decision, "note": "shoal top"});
    let call = Call { method: "approval.decide", params, session: None };
    board.over = Over::Confirm {
        question: format!("{decision} {}?", escape::line(&plan)),
        body: approvals::shown(approval),
        call,
        scroll: 0,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(board: &mut Board, code: KeyCode) -> Action {
        action(board, KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn board() -> Board {
        let mut board = Board::new(false);
        board.take_sessions(vec![json!({"owner": "uid:1", "session": "work", "state": "busy"})]);
        board.take_approvals(vec![json!({"plan_ref": "plan:1", "src": "rm -r x"})]);
        board
    }

    #[test]
    fn nothing_is_killed_without_a_yes() {
        let mut board = board();
        assert_eq!(press(&mut board, KeyCode::Char('k')), Action::None);
        assert!(matches!(board.over, Over::Confirm { .. }));
        assert_eq!(press(&mut board, KeyCode::Enter), Action::None);
        assert_eq!((&board.over, board.message.as_str()), (&Over::None, "nothing done"));
        press(&mut board, KeyCode::Char('k'));
        // Reading on is no answer.
        assert_eq!(press(&mut board, KeyCode::PageDown), Action::None);
        assert!(matches!(board.over, Over::Confirm { scroll: 10, .. }));
        let Action::Call { method, params, .. } = press(&mut board, KeyCode::Char('y')) else { panic!("no call") };
        assert_eq!((method, &params["session"], &params["owner"]), ("session.kill", &json!("work"), &json!("uid:1")));
    }

    #[test]
    fn a_decision_needs_the_list_of_plans_in_front() {
        let mut board = board();
        press(&mut board, KeyCode::Char('a'));
        assert_eq!((board.pane, &board.over), (Pane::Approvals, &Over::None));
        press(&mut board, KeyCode::Char('a'));
        let Over::Confirm { body, .. } = &board.over else { panic!("no question") };
        assert!(body.contains("rm -r x"), "the source is shown before the decision: {body}");
        let Action::Call { params, .. } = press(&mut board, KeyCode::Char('y')) else { panic!("no call") };
        assert_eq!((&params["plan_ref"], &params["decision"]), (&json!("plan:1"), &json!("approve")));
    }

    #[test]
    fn freeze_and_thaw_share_a_key() {
        let mut board = board();
        assert!(matches!(press(&mut board, KeyCode::Char('f')), Action::Call { method: "session.freeze", .. }));
        board.take_sessions(vec![json!({"owner": "uid:1", "session": "work", "state": "frozen"})]);
        assert!(matches!(press(&mut board, KeyCode::Char('f')), Action::Call { method: "session.thaw", .. }));
    }

    #[test]
    fn a_task_and_a_terminal_are_ended_in_their_session() {
        let mut board = board();
        board.pane = Pane::Inside;
        board.inside = vec![Inside::Task(json!({"task": "task:1"})), Inside::Pty(json!({"pty_id": "pty:2"}))];
        for (method, step) in [("task.cancel", 1), ("pty.close", 0)] {
            press(&mut board, KeyCode::Char('k'));
            let Action::Call { method: called, owner, .. } = press(&mut board, KeyCode::Char('y')) else {
                panic!("no call")
            };
            assert_eq!((called, owner.expect("in a session").session), (method, "work".to_owned()));
            board.step(step);
        }
    }

    #[test]
    fn escape_closes_what_is_open_and_then_quits() {
        let mut board = board();
        press(&mut board, KeyCode::Char('?'));
        assert_eq!(board.over, Over::Help);
        assert_eq!(press(&mut board, KeyCode::Esc), Action::None);
        press(&mut board, KeyCode::Enter);
        assert!(matches!(board.over, Over::Details { .. }));
        press(&mut board, KeyCode::Down);
        assert!(matches!(board.over, Over::Details { scroll: 1, .. }));
        assert_eq!(press(&mut board, KeyCode::Esc), Action::None);
        assert_eq!(press(&mut board, KeyCode::Esc), Action::Quit);
        let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(action(&mut board, ctrl_c), Action::Quit);
    }

    #[test]
    fn without_rows_keys_do_nothing_and_say_so() {
        let mut board = Board::new(false);
        for key in ['k', 'f', 'a', 'a', 'd'] {
            assert_eq!(press(&mut board, KeyCode::Char(key)), Action::None);
            assert_eq!(board.over, Over::None);
            assert!(!board.message.is_empty());
        }
        for key in [KeyCode::Enter, KeyCode::Up, KeyCode::Down, KeyCode::Tab, KeyCode::End] {
            press(&mut board, key);
        }
    }
}
