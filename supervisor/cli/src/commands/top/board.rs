//! What is known of the kernel and what the person selected. No terminal and no socket here.

use serde_json::Value;

use super::rates::Rates;
use crate::context::{items, text};
use crate::escape;
use crate::fail::Fail;

/// The lists of the screen, in the order Tab goes through them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pane {
    Sessions,
    Inside,
    Approvals,
    Processes,
}

pub(super) const PANES: [Pane; 4] = [Pane::Sessions, Pane::Inside, Pane::Approvals, Pane::Processes];

/// What lies over the lists.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Over {
    /// Nothing.
    None,
    /// The keys.
    Help,
    /// A text to read.
    Details { title: String, body: String, scroll: u16 },
    /// A question; `y` makes the call. What it is about can be longer than the screen.
    Confirm { question: String, body: String, call: Call, scroll: u16 },
}

/// A call the person asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) method: &'static str,
    pub(super) params: Value,
    /// The session it has to be made in; none for calls about the kernel.
    pub(super) session: Option<SessionName>,
}

/// A session and whose it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct SessionName {
    pub(super) owner: String,
    pub(super) session: String,
}

/// Something that lives in a session.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Inside {
    Task(Value),
    Pty(Value),
}

/// The state of the screen.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) color: bool,
    pub(super) rates: Rates,
    pub(super) status: Value,
    pub(super) sessions: Vec<Value>,
    pub(super) inside: Vec<Inside>,
    /// Why the inside of the selected session is not shown.
    pub(super) closed: Option<&'static str>,
    pub(super) approvals: Vec<Value>,
    pub(super) pane: Pane,
    pub(super) over: Over,
    pub(super) message: String,
    selected: [usize; PANES.len()],
    /// Foreign sessions the person asked to look into.
    entered: Vec<SessionName>,
}

impl Board {
    pub(super) fn new(color: bool) -> Self {
        Self {
            color,
            rates: Rates::default(),
            status: Value::Null,
            sessions: Vec::new(),
            inside: Vec::new(),
            closed: None,
            approvals: Vec::new(),
            pane: Pane::Sessions,
            over: Over::None,
            message: "? shows the keys".to_owned(),
            selected: [0; PANES.len()],
            entered: Vec::new(),
        }
    }

    /// How many rows a list has.
    pub(super) fn len(&self, pane: Pane) -> usize {
        match pane {
            Pane::Sessions => self.sessions.len(),
            Pane::Inside => self.inside.len(),
            Pane::Approvals => self.approvals.len(),
            Pane::Processes => items(&self.status, "processes").len(),
        }
    }

    /// The selected row of a list, inside its bounds.
    pub(super) fn at(&self, pane: Pane) -> usize {
        let selected = self.selected.get(index(pane)).copied().unwrap_or(0);
        selected.min(self.len(pane).saturating_sub(1))
    }

    /// Moves the selection of the pane in front; it stops at both ends.
    pub(super) fn step(&mut self, by: isize) {
        let pane = self.pane;
        let last = self.len(pane).saturating_sub(1);
        let to = self.at(pane).saturating_add_signed(by).min(last);
        if let Some(selected) = self.selected.get_mut(index(pane)) {
            *selected = to;
        }
        if pane == Pane::Sessions {
            self.select(Pane::Inside, 0);
        }
    }

    fn select(&mut self, pane: Pane, at: usize) {
        if let Some(selected) = self.selected.get_mut(index(pane)) {
            *selected = at;
        }
    }

    /// Brings the next pane to the front.
    pub(super) fn turn(&mut self, by: usize) {
        let next = (index(self.pane) + by) % PANES.len();
        self.pane = PANES.get(next).copied().unwrap_or(Pane::Sessions);
    }

    /// The selected session.
    pub(super) fn session(&self) -> Option<SessionName> {
        self.sessions.get(self.at(Pane::Sessions)).map(session_name)
    }

    /// The selected task or terminal.
    pub(super) fn thing(&self) -> Option<&Inside> {
        self.inside.get(self.at(Pane::Inside))
    }

    /// The selected plan.
    pub(super) fn approval(&self) -> Option<&Value> {
        self.approvals.get(self.at(Pane::Approvals))
    }

    /// The selected process.
    pub(super) fn process(&self) -> Option<&Value> {
        items(&self.status, "processes").get(self.at(Pane::Processes))
    }

    /// Takes fresh sessions; the selection stays with the session, wherever it went in the list.
    pub(super) fn take_sessions(&mut self, sessions: Vec<Value>) {
        let before = self.session();
        self.sessions = sessions;
        let still = before.and_then(|before| self.sessions.iter().position(|session| session_name(session) == before));
        if let Some(at) = still {
            self.select(Pane::Sessions, at);
        }
    }

    /// Takes fresh plans; the selection stays with the plan, so that no decision ever hits another one.
    pub(super) fn take_approvals(&mut self, approvals: Vec<Value>) {
        let plan = |approval: &Value| text(approval, "plan_ref");
        let before = self.approval().map(plan);
        self.approvals = approvals;
        let still = before.and_then(|before| self.approvals.iter().position(|approval| plan(approval) == before));
        if let Some(at) = still {
            self.select(Pane::Approvals, at);
        }
    }

    /// Allows looking into a session of somebody else, which its journal records.
    pub(super) fn enter(&mut self, session: SessionName) {
        if !self.entered.contains(&session) {
            self.entered.push(session);
        }
    }

    /// Whether the person asked to look into it.
    pub(super) fn is_entered(&self, session: &SessionName) -> bool {
        self.entered.contains(session)
    }

    /// Notes what came of a call.
    pub(super) fn say(&mut self, method: &str, said: Result<Value, Fail>) {
        self.message = match said {
            Ok(result) => came_of(method, &result),
            Err(fail) => escape::line(&fail.to_string()),
        };
    }
}

fn index(pane: Pane) -> usize {
    PANES.iter().position(|other| *other == pane).unwrap_or(0)
}

/// Which session a row of `session.list` is.
pub(super) fn session_name(row: &Value) -> SessionName {
    SessionName { owner: text(row, "owner"), session: text(row, "session") }
}

fn came_of(method: &str, result: &Value) -> String {
    let named = |member| escape::line(&text(result, member));
    match method {
        "session.kill" if result["existed"] == Value::Bool(false) => format!("no session {}", named("session")),
        "session.kill" => format!(
            "killed {}: {} ended, {} survived, {} ms",
            named("session"),
            items(result, "ended").len(),
            items(result, "survived").len(),
            named("duration_ms")
        ),
        "session.freeze" | "session.thaw" => format!("{} is {}", named("session"), named("state")),
        "approval.decide" => format!("{} {}", named("plan_ref"), named("state")),
        "task.cancel" => format!("{} {}", named("task"), named("state")),
        "pty.close" => format!("{} closed", named("pty_id")),
        _ => format!("{method}: done"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn session(name: &str) -> Value {
        json!({"owner": "uid:1", "session": name})
    }

    #[test]
    fn a_selection_stays_with_its_row() {
        let mut board = Board::new(false);
        board.take_sessions(vec![session("a"), session("b")]);
        board.step(1);
        assert_eq!(board.session().expect("selected").session, "b");
        board.take_sessions(vec![session("b"), session("c"), session("a")]);
        assert_eq!(board.session().expect("selected").session, "b");
        board.take_sessions(vec![session("c")]);
        assert_eq!(board.session().expect("selected").session, "c");
        board.take_sessions(Vec::new());
        assert_eq!(board.session(), None);
        board.step(-1);
        board.step(5);
        assert_eq!(board.at(Pane::Sessions), 0);
    }

    #[test]
    fn a_plan_that_moves_stays_selected() {
        let plan = |reference: &str| json!({"plan_ref": reference});
        let mut board = Board::new(false);
        board.pane = Pane::Approvals;
        board.take_approvals(vec![plan("plan:1")]);
        board.take_approvals(vec![plan("plan:2"), plan("plan:1")]);
        assert_eq!(text(board.approval().expect("selected"), "plan_ref"), "plan:1");
    }

    #[test]
    fn panes_turn_around() {
        let mut board = Board::new(false);
        for pane in [Pane::Inside, Pane::Approvals, Pane::Processes, Pane::Sessions] {
            board.turn(1);
            assert_eq!(board.pane, pane);
        }
        board.turn(PANES.len() - 1);
        assert_eq!(board.pane, Pane::Processes);
    }

    #[test]
    fn what_came_of_a_call_is_one_escaped_line() {
        let mut board = Board::new(false);
        let killed = json!({"session": "a\n", "existed": true, "ended": [{}, {}], "survived": [], "duration_ms": 7});
        board.say("session.kill", Ok(killed));
        assert_eq!(board.message, "killed a\\n: 2 ended, 0 survived, 7 ms");
        board.say("session.kill", Err(Fail::Said("no\x1b".to_owned())));
        assert_eq!(board.message, "no\\u{1b}");
    }
}
