//! Administration of sessions: list, kill, freeze, thaw.

use std::rc::Rc;

use serde_json::{Value, json};
use shoal_proto::hello::HostProcess;
use shoal_proto::supervisor_broker::{Killed, Ping, Processes, SessionProcesses, ToSupervisor};
use shoal_wire::error::Reason;
use shoal_wire::params::session::{SessionKill, SessionPick};
use shoal_wire::params::{Empty, SessionName};
use shoal_wire::{RpcError, params};

use super::Params;
use crate::broker::{Broker, or_refuse};
use crate::clients::{Ask, Attachment};
use crate::sessions::{Ended, Session, Sid};
use crate::supervisor_edge::OrderDone;

impl Broker {
    /// Asks the supervisor for the processes of the kernel.
    pub(super) fn with_processes(&mut self, then: impl FnOnce(&mut Self, Option<Box<Processes>>) + 'static) {
        self.order(
            |n| ToSupervisor::ListProcesses(Ping { n }),
            |broker, done| {
                let processes = if let OrderDone::Processes(processes) = done { Some(processes) } else { None };
                then(broker, processes);
            },
        );
    }

    /// `session.list`.
    pub(super) fn answer_session_list(&mut self, ask: Ask, text: Params<'_>) {
        or_refuse!(self, ask, params::decode::<Empty>(text));
        self.with_processes(move |broker, processes| {
            let of = |session: &Session| {
                let all = processes.as_deref().map(|p| p.sessions.as_slice()).unwrap_or_default();
                all.iter().find(|p| Some(p.session) == session.id)
            };
            let mut listed: Vec<&Session> = broker.sessions.iter().collect();
            listed.sort_by_key(|session| session.sid);
            let sessions: Vec<Value> = listed.into_iter().map(|s| broker.session_record(s, of(s))).collect();
            broker.reply(ask, Ok(json!({"sessions": sessions}).to_string()));
        });
    }

    fn session_record(&self, session: &Session, processes: Option<&SessionProcesses>) -> Value {
        let cwd: Value = serde_json::from_str(&crate::json::wire_path(&session.cwd)).unwrap_or_default();
        let idle = self.policy.of_session(session).and_then(|section| section.idle_ttl);
        let all = processes.map(|p| p.all.as_slice()).unwrap_or_default();
        json!({
            "id": session.label(), "session": &*session.name, "owner": &*session.owner, "state": session.state(),
            "pid": processes.map(|p| p.worker).filter(|pid| *pid > 0),
            "created_ns": session.created_ns, "last_used_ns": session.used_ns,
            "idle_ttl_ms": idle.map(|seconds| seconds.saturating_mul(1000)), "cwd": cwd,
            "attached": session.attached, "execs_running": session.running.len(),
            "tasks": self.tasks.list(session.sid).count(), "ptys": self.ptys.of_session(session.sid).count(),
            "watches": session.watches.len(), "processes": all.len(),
            "rss_bytes": all.iter().map(|p| p.rss).sum::<u64>(),
        })
    }

    /// Learns the launchers of adopted sessions, to know their descendants.
    pub(crate) fn with_launchers(&mut self) {
        self.with_processes(|broker, processes| {
            let sessions = processes.as_deref().map(|p| p.sessions.as_slice()).unwrap_or_default();
            broker.ancestors.extend(sessions.iter().map(|session| (session.session, session.launcher)));
        });
    }

    fn named(&self, caller: &Attachment, name: &SessionName, owner: Option<&str>) -> (Rc<str>, Option<Sid>) {
        let owner: Rc<str> = owner.map_or_else(|| caller.principal.clone(), Rc::from);
        let sid = self.sessions.find(&owner, name.as_str());
        (owner, sid)
    }

    /// `session.kill`.
    pub(super) fn answer_session_kill(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<SessionKill>(text));
        let owner = wanted.owner.as_ref().map(|owner| owner.0.as_str());
        let (owner, sid) = self.named(caller, &wanted.session, owner);
        let name = wanted.session.as_str().to_owned();
        let Some(sid) = sid else {
            let body = json!({"session": name, "owner": &*owner, "existed": false, "ended": [], "survived": [], "duration_ms": 0});
            return self.reply(ask, Ok(body.to_string()));
        };
        let note = wanted.reason.map(|note| note.into_string());
        let ended = Ended { reason: "killed", by: Some(caller.principal.to_string()), note };
        self.kill_session(sid, ended, move |broker, killed| {
            let list = |processes: &[HostProcess]| -> Vec<Value> {
                processes.iter().map(|p| json!({"pid": p.pid, "comm": p.comm.as_str()})).collect()
            };
            let receipt =
                |killed: &Killed| (list(killed.ended.as_slice()), list(killed.survived.as_slice()), killed.duration_ms);
            let (ended, survived, duration) = killed.as_ref().map(receipt).unwrap_or_default();
            let body = json!({"session": name, "owner": &*owner, "existed": true, "ended": ended, "survived": survived,
                "duration_ms": duration});
            broker.reply(ask, Ok(body.to_string()));
        });
    }

    /// `session.freeze` and `session.thaw`.
    pub(super) fn answer_session_freeze(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>, freeze: bool) {
        let wanted = or_refuse!(self, ask, params::decode::<SessionPick>(text));
        let owner = wanted.owner.as_ref().map(|owner| owner.0.as_str());
        let (owner, sid) = self.named(caller, &wanted.session, owner);
        let name = wanted.session.as_str().to_owned();
        let id = sid.and_then(|sid| self.sessions.at(sid)).filter(|session| session.is_there()).and_then(|s| s.id);
        let (Some(sid), Some(id)) = (sid, id) else {
            let message = format!("{owner} has no session `{name}`");
            return self.reply(ask, Err(RpcError::invalid("session", Reason::UnknownSession, message)));
        };
        let by = caller.principal.clone();
        let make = move |order| {
            let order = Self::order_about(id)(order);
            if freeze { ToSupervisor::Freeze(order) } else { ToSupervisor::Thaw(order) }
        };
        self.order(make, move |broker, done| {
            let OrderDone::Frozen(frozen) = done else {
                return broker.reply(ask, Err(RpcError::internal("the supervisor did not freeze the session")));
            };
            let Some(session) = broker.sessions.at_mut(sid) else {
                return broker.reply(ask, Err(RpcError::session_ended(&name, &owner, "killed", None, None)));
            };
            let changed = std::mem::replace(&mut session.frozen, frozen) != frozen;
            let state = session.state();
            if changed {
                let action = if frozen { "frozen" } else { "thawed" };
                broker.session_event(sid, action, None, None);
                broker.note_session(sid, action, None, Some(&by));
            }
            let body = json!({"session": name, "owner": &*owner, "state": state});
            broker.reply(ask, Ok(body.to_string()));
        });
    }
}
