//! Sessions by (owner, name): their life, their place on the edges, what their last commit left.
//!
//! A session waits for its launcher and worker (`Starting`), for the worker alone after one died (`Restarting`), is
//! `Up`, or has `Failed` after too many deaths. Freezing is a flag beside that: a frozen session may lose its worker. A session
//! that ended is forgotten; connections that were attached to it keep why.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use shoal_proto::broker_launcher::ToLauncher;
use shoal_proto::broker_ptyd::ToPtyd;
use shoal_proto::broker_worker::ToWorker;
use shoal_proto::supervisor_broker::{Limits, SessionId};

use crate::edge::Peer;
use crate::keys::Keys;
use crate::watches::{Listen, WatchSpec};

/// The broker's number of a session; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Sid(pub(crate) u64);

impl Sid {
    /// No session: what a connection has that entered none. Sessions count from 1.
    pub(crate) const NONE: Sid = Sid(0);
}

/// How and by whom a session was ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// `killed`, `idle` or `shutdown`.
    pub(crate) reason: &'static str,
    /// Principal that asked for it.
    pub(crate) by: Option<String>,
    /// What they said.
    pub(crate) note: Option<String>,
}

/// So many numbers of results without a row are marked as given at a time.
pub(crate) const OUT_MARKS: u64 = 64;
/// Deaths in the window that make a session fail.
const DEATHS: usize = 5;
/// The window.
const DEATH_WINDOW: Duration = Duration::from_secs(300);
/// Longest delay before a worker is used again after a death.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// Where a session is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Ordered; no launcher yet, or its worker has not spoken.
    Starting,
    /// It works.
    Up,
    /// Its worker died and the next one has not spoken.
    Restarting,
    /// Its worker died too often.
    Failed,
    /// Its end is ordered.
    Ending,
}

/// What a session is made of and from.
#[derive(Debug)]
pub(crate) struct Session {
    /// The broker's number.
    pub(crate) sid: Sid,
    /// The supervisor's number, once it is up.
    pub(crate) id: Option<SessionId>,
    /// Whose it is.
    pub(crate) owner: Rc<str>,
    /// Its name.
    pub(crate) name: Rc<str>,
    /// Limits asked for at creation.
    pub(crate) limits: Limits,
    /// Bytes of output per execution asked for at creation.
    pub(crate) output_cap: Option<u64>,
    /// Where it is in its life.
    pub(crate) stage: Stage,
    /// Everything in it is stopped.
    pub(crate) frozen: bool,
    /// Its worker went on without a broker.
    pub(crate) went_on: bool,
    /// The edges, while they are there.
    pub(crate) worker: Option<Peer<ToWorker>>,
    /// Launcher's edge.
    pub(crate) launcher: Option<Peer<ToLauncher>>,
    /// Ptyd's edge.
    pub(crate) ptyd: Option<Peer<ToPtyd>>,
    /// Directory of the last commit.
    pub(crate) cwd: Vec<u8>,
    /// It was named by who makes the session, and is not entered yet: without it there is no session.
    pub(crate) cwd_wanted: bool,
    /// Environment of the last commit, `NAME=value` each.
    pub(crate) env: Vec<Vec<u8>>,
    /// BLAKE3 of it.
    pub(crate) env_hash: [u8; 32],
    /// The first `out:N` it can have: lower ones are of an earlier life.
    pub(crate) first_out: u64,
    /// The last `out:N`.
    pub(crate) last_out: u64,
    /// Up to here numbers of results without a row are marked as given in the database.
    pub(crate) out_mark: u64,
    /// A mark is being written.
    pub(crate) marks_outs: bool,
    /// When it was made, ns.
    pub(crate) created_ns: i64,
    /// When it was last used, ns.
    pub(crate) used_ns: i64,
    /// The same on the monotonic clock.
    pub(crate) used: Duration,
    /// Connections attached.
    pub(crate) attached: usize,
    /// Executions that are not over.
    pub(crate) running: Vec<u64>,
    /// Kept task records, oldest first.
    pub(crate) kept: VecDeque<u64>,
    /// Idempotency keys.
    pub(crate) keys: Keys,
    /// Deaths of workers in the window.
    pub(crate) deaths: VecDeque<Duration>,
    /// Worker starts beyond the first.
    pub(crate) restarts: u32,
    /// The worker before the present one died; its live handles are gone.
    pub(crate) lost_worker: bool,
    /// Watches, with whether they persist.
    pub(crate) watches: Vec<WatchSpec>,
    /// Channels its worker listens to.
    pub(crate) listens: Vec<Listen>,
    /// Up-calls outside runs that are not answered.
    pub(crate) up_calls: usize,
}

impl Session {
    /// `owner/name`, for listings and logs.
    pub(crate) fn label(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    /// Whether it can be entered, frozen and thawed. A frozen one is there although a new broker has not heard its worker.
    pub(crate) fn is_there(&self) -> bool {
        self.stage == Stage::Up || self.frozen
    }

    /// Takes the number of a result: the next one.
    pub(crate) fn take_out(&mut self, n: u64) -> Result<(), &'static str> {
        if n != self.last_out + 1 {
            return Err("an out number that is not the next one");
        }
        self.last_out = n;
        Ok(())
    }

    /// A worker said which number it tells next. One that went on without a broker tells those again that it does not know
    /// to be recorded, so the database may be ahead of it.
    pub(crate) fn next_out_is(&mut self, next: u64) {
        let told = next.saturating_sub(1);
        self.last_out = if self.went_on { told } else { self.last_out.max(told) };
    }

    /// Whether this `out:N` was given out in this life.
    pub(crate) fn has_out(&self, n: u64) -> bool {
        (self.first_out..=self.last_out).contains(&n)
    }

    /// Keeps an environment and its hash.
    pub(crate) fn commit_env(&mut self, env: Vec<Vec<u8>>) {
        self.env_hash = env_hash(&env);
        self.env = env;
    }

    /// A worker died: how long until the next one is used, or `None` when that was once too often.
    pub(crate) fn on_death(&mut self, now: Duration) -> Option<Duration> {
        while self.deaths.front().is_some_and(|first| now.saturating_sub(*first) > DEATH_WINDOW) {
            self.deaths.pop_front();
        }
        self.deaths.push_back(now);
        if self.deaths.len() >= DEATHS {
            return None;
        }
        let earlier = u32::try_from(self.deaths.len() - 1).unwrap_or(u32::MAX);
        // 0, 1, 2, 4 … seconds.
        let delay = earlier.checked_sub(1).map_or(0, |power| 1_u64 << power.min(10));
        Some(Duration::from_secs(delay).min(MAX_DELAY))
    }

    /// `idle`, `busy`, `frozen`, `restarting` or `failed`.
    pub(crate) fn state(&self) -> &'static str {
        match self.stage {
            Stage::Failed => "failed",
            Stage::Up | Stage::Restarting if self.frozen => "frozen",
            Stage::Starting | Stage::Restarting | Stage::Ending => "restarting",
            Stage::Up if self.running.is_empty() => "idle",
            Stage::Up => "busy",
        }
    }
}

/// BLAKE3 of an environment: for each variable, sorted by name bytes, `NAME=value` and one zero byte.
pub(crate) fn env_hash(env: &[Vec<u8>]) -> [u8; 32] {
    let name = |entry: &Vec<u8>| entry.split(|byte| *byte == b'=').next().unwrap_or_default().to_vec();
    let mut sorted: Vec<&Vec<u8>> = env.iter().collect();
    sorted.sort_by_key(|entry| name(entry));
    let mut hasher = blake3::Hasher::new();
    for entry in sorted {
        hasher.update(entry);
        hasher.update(&[0]);
    }
    *hasher.finalize().as_bytes()
}

/// What a new session is made from.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    /// Whose it is.
    pub(crate) owner: Rc<str>,
    /// Its name.
    pub(crate) name: Rc<str>,
    /// Directory to start in.
    pub(crate) cwd: Vec<u8>,
    /// It was named by who makes the session.
    pub(crate) cwd_wanted: bool,
    /// Environment to start with.
    pub(crate) env: Vec<Vec<u8>>,
    /// Limits below the section's.
    pub(crate) limits: Limits,
    /// Bytes of output per execution below the section's.
    pub(crate) output_cap: Option<u64>,
    /// The last `out:N` of this session in an earlier life.
    pub(crate) last_out: u64,
}

/// The registry.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    all: HashMap<Sid, Session>,
    by_key: HashMap<(Rc<str>, Rc<str>), Sid>,
    by_id: HashMap<SessionId, Sid>,
    next: u64,
}

impl Sessions {
    /// Makes a session that waits for its processes.
    pub(crate) fn create(&mut self, recipe: Recipe, now_ns: i64, now: Duration) -> Sid {
        self.next += 1;
        let sid = Sid(self.next);
        self.by_key.insert((recipe.owner.clone(), recipe.name.clone()), sid);
        let session = Session {
            sid,
            id: None,
            owner: recipe.owner,
            name: recipe.name,
            limits: recipe.limits,
            output_cap: recipe.output_cap,
            stage: Stage::Starting,
            frozen: false,
            went_on: false,
            worker: None,
            launcher: None,
            ptyd: None,
            cwd: recipe.cwd,
            cwd_wanted: recipe.cwd_wanted,
            env_hash: env_hash(&recipe.env),
            env: recipe.env,
            first_out: recipe.last_out + 1,
            last_out: recipe.last_out,
            out_mark: 0,
            marks_outs: false,
            created_ns: now_ns,
            used_ns: now_ns,
            used: now,
            attached: 0,
            running: Vec::new(),
            kept: VecDeque::new(),
            keys: Keys::default(),
            deaths: VecDeque::new(),
            restarts: 0,
            lost_worker: false,
            watches: Vec::new(),
            listens: Vec::new(),
            up_calls: 0,
        };
        self.all.insert(sid, session);
        sid
    }

    /// The session of an owner and name.
    pub(crate) fn find(&self, owner: &str, name: &str) -> Option<Sid> {
        self.by_key.get(&(Rc::from(owner), Rc::from(name))).copied()
    }

    /// The session of a supervisor's number.
    pub(crate) fn of_id(&self, id: SessionId) -> Option<Sid> {
        self.by_id.get(&id).copied()
    }

    /// Notes the supervisor's number.
    pub(crate) fn bind(&mut self, sid: Sid, id: SessionId) {
        if let Some(session) = self.all.get_mut(&sid) {
            if let Some(old) = session.id.replace(id) {
                self.by_id.remove(&old);
            }
            self.by_id.insert(id, sid);
        }
    }

    /// Forgets the supervisor's number: what it says of those processes is about nobody.
    pub(crate) fn unbind(&mut self, sid: Sid) -> Option<SessionId> {
        let id = self.all.get_mut(&sid)?.id.take()?;
        self.by_id.remove(&id);
        Some(id)
    }

    /// A session.
    pub(crate) fn at(&self, sid: Sid) -> Option<&Session> {
        self.all.get(&sid)
    }

    /// A session, to change it.
    pub(crate) fn at_mut(&mut self, sid: Sid) -> Option<&mut Session> {
        self.all.get_mut(&sid)
    }

    /// Forgets a session.
    pub(crate) fn remove(&mut self, sid: Sid) -> Option<Session> {
        let session = self.all.remove(&sid)?;
        let key = (session.owner.clone(), session.name.clone());
        if self.by_key.get(&key) == Some(&sid) {
            self.by_key.remove(&key);
        }
        if let Some(id) = session.id {
            self.by_id.remove(&id);
        }
        Some(session)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// All of them.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.all.values_mut()
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.all.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(owner: &str, name: &str) -> Recipe {
        Recipe {
            owner: owner.into(),
            name: name.into(),
            cwd: b"/".to_vec(),
            cwd_wanted: false,
            env: Vec::new(),
            limits: Limits::default(),
            output_cap: None,
            last_out: 0,
        }
    }

    #[test]
    fn hashes_are_those_of_the_protocol() {
        let env = [b"B=two words".to_vec(), b"A=1".to_vec()];
        let hex = |env: &[Vec<u8>]| blake3::Hash::from(env_hash(env)).to_hex().to_string();
        assert_eq!(hex(&env), "b86666cff12174879e00c8562c874bb6c29e6ccdd92bdb50d747df759c56fcf1");
        assert_eq!(hex(&[]), "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262");
    }

    #[test]
    fn the_same_name_of_two_owners_is_two_sessions() {
        let mut sessions = Sessions::default();
        let a = sessions.create(recipe("a", "default"), 0, Duration::ZERO);
        let b = sessions.create(recipe("b", "default"), 0, Duration::ZERO);
        assert_ne!(a, b);
        assert_eq!(sessions.find("a", "default"), Some(a));
        sessions.bind(a, 7);
        assert_eq!(sessions.of_id(7), Some(a));
        sessions.remove(a);
        assert_eq!((sessions.find("a", "default"), sessions.of_id(7)), (None, None));
        assert_eq!(sessions.find("b", "default"), Some(b));
    }

    #[test]
    fn deaths_delay_and_the_fifth_in_five_minutes_fails() {
        let mut sessions = Sessions::default();
        let sid = sessions.create(recipe("a", "s"), 0, Duration::ZERO);
        let session = sessions.at_mut(sid).expect("there");
        let delays: Vec<_> = (0..5).map(|n| session.on_death(Duration::from_secs(n))).collect();
        let secs = |n| Some(Duration::from_secs(n));
        assert_eq!(delays, [secs(0), secs(1), secs(2), secs(4), None]);
        assert_eq!(session.on_death(Duration::from_secs(1000)), secs(0));
    }
}
