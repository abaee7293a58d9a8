//! Terminals as the broker knows them: whose they are, who has taken one, whether their program lives.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use shoal_journal::Row;
use shoal_proto::broker_ptyd::Hosted;
use shoal_proto::hello::ExitStatus;
use shoal_wire::Ref;

use crate::clients::ConnId;
use crate::sessions::Sid;

/// What a human types into a taken terminal is kept up to this, when it is kept at all.
const MAX_TYPED: usize = 64 * 1024;

/// Who has taken a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The connection.
    pub(crate) conn: ConnId,
    /// Its principal.
    pub(crate) by: Rc<str>,
    /// What was typed meanwhile, when it is recorded.
    pub(crate) typed: Option<Vec<u8>>,
}

/// A terminal.
#[derive(Clone, Debug)]
pub(crate) struct Pty {
    /// Its number.
    pub(crate) n: u64,
    /// Its session.
    pub(crate) sid: Sid,
    /// Owner of the session.
    pub(crate) owner: Rc<str>,
    /// Program and arguments, joined by spaces.
    pub(crate) cmd: String,
    /// Pid inside the jail; 0 until its program has started.
    pub(crate) pid: i32,
    /// Columns.
    pub(crate) cols: u16,
    /// Rows.
    pub(crate) rows: u16,
    /// How its program ended.
    pub(crate) exit: Option<ExitStatus>,
    /// Who has taken it.
    pub(crate) taken: Option<Taken>,
    /// When a change was told last.
    pub(crate) told: Option<Duration>,
    /// A change is told when the next telling is due.
    pub(crate) due: bool,
}

impl Taken {
    /// Keeps what was typed, up to its bound.
    pub(crate) fn note(&mut self, bytes: &[u8]) {
        if let Some(typed) = &mut self.typed {
            let room = MAX_TYPED.saturating_sub(typed.len());
            typed.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
        }
    }
}

impl Pty {
    /// `pty:N`.
    pub(crate) fn reference(&self) -> String {
        format!("pty:{}", self.n)
    }
}

/// A terminal that another broker opened and did not close, as the journal has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LeftOpen {
    owner: String,
    session: String,
    cmd: String,
}

/// All of them, by number.
#[derive(Debug, Default)]
pub(crate) struct Ptys {
    all: BTreeMap<u64, Pty>,
    /// Those of an earlier broker that no ptyd has named yet.
    left: BTreeMap<u64, LeftOpen>,
}

impl Ptys {
    /// What an earlier broker left open, from its `pty` rows, newest first.
    pub(crate) fn after(rows: &[Row]) -> Self {
        let (mut left, mut closed) = (BTreeMap::new(), BTreeSet::new());
        for row in rows {
            let member = |name: &str| row.detail.as_ref().and_then(|detail| detail.get(name)?.as_str());
            let Some(Ref::Pty(n)) = member("pty_id").and_then(Ref::parse) else { continue };
            match member("action") {
                Some("close") => {
                    closed.insert(n);
                }
                Some("open") if !closed.contains(&n) => {
                    let cmd = member("cmd").unwrap_or_default().to_owned();
                    left.insert(n, LeftOpen { owner: row.owner.clone(), session: row.session.clone(), cmd });
                }
                Some(_) | None => {}
            }
        }
        Self { all: BTreeMap::new(), left }
    }

    /// A ptyd named a terminal it hosts. It is taken in when the journal says that it was opened in this very session
    /// and not closed: a ptyd cannot claim another session's.
    pub(crate) fn reopen(&mut self, sid: Sid, owner: &Rc<str>, session: &str, hosted: Hosted) -> bool {
        let is_theirs = |left: &LeftOpen| *left.owner == **owner && left.session == session;
        if !self.left.get(&hosted.id).is_some_and(is_theirs) {
            return false;
        }
        let Some(left) = self.left.remove(&hosted.id) else { return false };
        self.insert(Pty {
            n: hosted.id,
            sid,
            owner: Rc::clone(owner),
            cmd: left.cmd,
            pid: hosted.pid,
            cols: hosted.cols,
            rows: hosted.rows,
            exit: None,
            taken: None,
            told: None,
            due: false,
        });
        true
    }

    /// Takes one in.
    pub(crate) fn insert(&mut self, pty: Pty) {
        self.all.insert(pty.n, pty);
    }

    /// One of a session, once its program has started.
    pub(crate) fn of(&self, sid: Sid, n: u64) -> Option<&Pty> {
        self.all.get(&n).filter(|pty| pty.sid == sid && pty.pid != 0)
    }

    /// One of a session, to change it.
    pub(crate) fn of_mut(&mut self, sid: Sid, n: u64) -> Option<&mut Pty> {
        self.all.get_mut(&n).filter(|pty| pty.sid == sid)
    }

    /// It is closed.
    pub(crate) fn remove(&mut self, n: u64) -> Option<Pty> {
        self.all.remove(&n)
    }

    /// Those of a session, ascending.
    pub(crate) fn of_session(&self, sid: Sid) -> impl Iterator<Item = &Pty> {
        self.all.values().filter(move |pty| pty.sid == sid)
    }

    /// How many an owner has.
    pub(crate) fn of_owner(&self, owner: &str) -> usize {
        self.all.values().filter(|pty| &*pty.owner == owner).count()
    }

    /// Numbers of those a connection has taken.
    pub(crate) fn taken_by(&self, conn: ConnId) -> Vec<(Sid, u64)> {
        let by = |pty: &&Pty| pty.taken.as_ref().is_some_and(|taken| taken.conn == conn);
        self.all.values().filter(by).map(|pty| (pty.sid, pty.n)).collect()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_kept_up_to_its_bound_and_only_when_asked() {
        let mut taken = Taken { conn: ConnId(1), by: "uid:1".into(), typed: Some(Vec::new()) };
        taken.note(&[b'x'; 60 * 1024]);
        taken.note(&[b'y'; 60 * 1024]);
        assert_eq!(taken.typed.as_ref().map(Vec::len), Some(MAX_TYPED));
        let mut silent = Taken { typed: None, ..taken };
        silent.note(b"secret");
        assert_eq!(silent.typed, None);
    }

    #[test]
    fn a_terminal_is_taken_in_again_by_its_own_session_and_once() {
        let left = LeftOpen { owner: "uid:1".to_owned(), session: "default".to_owned(), cmd: "cat -u".to_owned() };
        let mut ptys = Ptys { left: BTreeMap::from([(3, left)]), ..Ptys::default() };
        let hosted = Hosted { id: 3, pid: 7, cols: 80, rows: 24 };
        let (mine, other): (Rc<str>, Rc<str>) = ("uid:1".into(), "uid:2".into());
        assert!(!ptys.reopen(Sid(1), &other, "default", hosted));
        assert!(!ptys.reopen(Sid(1), &mine, "else", hosted));
        assert!(!ptys.reopen(Sid(1), &mine, "default", Hosted { id: 4, ..hosted }));
        assert!(ptys.reopen(Sid(2), &mine, "default", hosted));
        assert_eq!(ptys.of(Sid(2), 3).map(|pty| (pty.cmd.as_str(), pty.pid)), Some(("cat -u", 7)));
        assert!(!ptys.reopen(Sid(2), &mine, "default", hosted));
    }
}
