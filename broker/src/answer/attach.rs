//! `session.attach`: who a connection is, which session it gets, and what it is told of both.

use std::rc::Rc;

use serde_json::json;
use shoal_journal::Kind;
use shoal_proto::supervisor_broker::Limits;
use shoal_wire::elide::Budgets;
use shoal_wire::error::Reason;
use shoal_wire::params::session::{Attach, Enter};
use shoal_wire::{AST_VERSION, BUILD, Code, PROTOCOL, RpcError, params};

use super::Params;
use crate::broker::Broker;
use crate::clients::{Ask, Attachment, Phase};
use crate::json::{quoted, wire_path};
use crate::policy::{Policy, caps_json, claims_json, isolation_json};
use crate::quotas::Quota;
use crate::sessions::{Recipe, Sid};

/// Ancestors of a peer that are looked at: deeper trees than this are not sessions of ours.
const MAX_ANCESTRY: usize = 256;

/// Names that never reach a session.
const SCRUBBED: [&str; 8] = [
    "SHOAL_TOKEN",
    "LISTEN_PID",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "MAINPID",
];

/// Who a connection turned out to be.
struct Identity {
    principal: Rc<str>,
    token: Option<Rc<str>>,
    profile: String,
    caps: Vec<String>,
}

impl Broker {
    /// Begins an attach: frames behind it wait for its verdict.
    pub(super) fn answer_attach(&mut self, ask: Ask, text: Params<'_>) {
        let attach = match params::decode::<Attach>(text) {
            Ok(attach) => attach,
            Err(error) => return self.reply(ask, Err(error)),
        };
        if let Some(client) = self.clients.at_mut(ask.conn) {
            client.step(Phase::begin_attach);
        }
        self.decide_attach(ask, attach);
    }

    fn decide_attach(&mut self, ask: Ask, attach: Attach) {
        match self.choose_session(&ask, &attach) {
            Ok((attachment, identity, _)) if attachment.sid == Sid::NONE => {
                self.attached(ask, attachment, &identity, false);
            }
            Ok((attachment, identity, created)) => self.await_session(ask, attach, attachment, identity, created),
            Err(error) => self.refuse_attach(ask, error),
        }
    }

    fn refuse_attach(&mut self, ask: Ask, error: RpcError) {
        let conn = ask.conn;
        if error.is(Code::AuthFailed) {
            // Refused attachments leave a row like denials do.
            self.reply_denial(ask, error, "", json!([]));
        } else {
            self.reply(ask, Err(error));
        }
        self.end_attach(conn, None);
    }

    fn end_attach(&mut self, conn: crate::clients::ConnId, new: Option<Attachment>) {
        let Some(client) = self.clients.at_mut(conn) else { return };
        if new.is_some() {
            client.attached.set(true);
        }
        let held = client.step(|phase| phase.end_attach(new));
        for frame in held {
            self.on_frame(conn, frame);
        }
    }

    fn identify(&mut self, ask: &Ask, attach: &Attach) -> Result<Identity, RpcError> {
        if let Some(bearer) = &attach.token {
            self.refresh_tokens();
            let token = self.tokens.find(bearer.as_str(), self.now.ns)?;
            return Ok(Identity {
                principal: token.principal.as_str().into(),
                token: Some(token.id.as_str().into()),
                profile: token.profile.clone(),
                caps: token.caps.clone(),
            });
        }
        if self.start.require_token {
            return Err(RpcError::auth_failed("token_required", "this kernel attaches nobody without a token"));
        }
        let pid = self.clients.at(ask.conn).and_then(|client| client.peer.pid);
        if pid.is_some_and(|pid| self.is_descendant(pid)) {
            let message = "processes of a session need a token to attach";
            return Err(RpcError::auth_failed("session_descendant", message));
        }
        let principal = self.local_user();
        Ok(Identity { principal, token: None, profile: "local-human".to_owned(), caps: Vec::new() })
    }

    /// The process is inside a session of this kernel.
    fn is_descendant(&self, pid: i32) -> bool {
        let mut pid = pid;
        for _ in 0..MAX_ANCESTRY {
            if self.ancestors.values().any(|launcher| *launcher == pid) {
                return true;
            }
            match shoal_sys::procfs::process(pid) {
                Ok(Some(process)) if process.ppid > 0 => pid = process.ppid,
                Ok(_) | Err(_) => return false,
            }
        }
        false
    }

    fn choose_session(&mut self, ask: &Ask, attach: &Attach) -> Result<(Attachment, Identity, bool), RpcError> {
        let identity = self.identify(ask, attach)?;
        let human = self.is_local_user(&identity.principal) && attach.client.kind != "mcp";
        let outside = attach.enter == Enter::Nothing;
        let name = if outside { "" } else { attach.session.as_ref().map_or("default", |name| name.as_str()) };
        let owner: Rc<str> = attach.owner.as_ref().map_or_else(|| identity.principal.clone(), |o| o.0.as_str().into());
        let foreign = owner != identity.principal;
        if foreign && !human {
            return Err(RpcError::not_permitted("human"));
        }
        let known = self.sessions.find(&owner, name);
        let (sid, created) = match known {
            _ if outside => (Sid::NONE, false),
            Some(sid) => (sid, false),
            None if foreign || attach.enter == Enter::Existing => {
                let message = format!("{owner} has no session `{name}`");
                let param = if foreign { "owner" } else { "session" };
                return Err(RpcError::invalid(param, Reason::UnknownSession, message));
            }
            None => (self.create_session(&owner, name, attach)?, true),
        };
        let attachment = Attachment {
            principal: identity.principal.clone(),
            owner,
            session: name.into(),
            sid,
            human,
            kind: attach.client.kind.as_str().into(),
            name: attach.client.name.as_deref().unwrap_or_default().into(),
            tty: attach.client.tty,
            token: identity.token.clone(),
            last_out: None,
            ended: None,
        };
        Ok((attachment, identity, created))
    }

    fn create_session(&mut self, owner: &Rc<str>, name: &str, attach: &Attach) -> Result<Sid, RpcError> {
        if self.draining {
            return Err(RpcError::session_ended(name, owner, "shutdown", None, None));
        }
        let Some(rules) = self.policy.of(owner) else {
            return Err(unserved(owner));
        };
        let missing = Policy::missing(rules, self.start.claims);
        if !missing.is_empty() {
            let missing: Vec<&str> = missing.iter().map(String::as_str).collect();
            let hint = match self.start.isolation.missing.as_str() {
                "" => "start the kernel by the service manager: shoal setup service",
                said => said,
            };
            return Err(RpcError::confinement(&missing, hint));
        }
        self.quotas.admit(Quota::Sessions, self.sessions.len())?;
        self.check_journal()?;
        let cwd = attach.create.cwd.clone().unwrap_or_else(|| self.start.start_dir.to_string());
        if !cwd.starts_with('/') || cwd.len() > 4096 {
            let message = "`create.cwd` must be an absolute path";
            return Err(RpcError::invalid("create.cwd", Reason::NotADirectory, message));
        }
        let asked = &attach.create.limits;
        let small = |n: Option<params::session::Positive>| n.and_then(|n| u32::try_from(n.value()).ok());
        let recipe = Recipe {
            owner: owner.clone(),
            name: name.into(),
            cwd: cwd.into_bytes(),
            cwd_wanted: attach.create.cwd.is_some(),
            env: self.session_env(&attach.create.env)?,
            limits: Limits {
                memory: asked.memory.map(|n| n.unsigned()),
                pids: small(asked.pids),
                cpu_seconds: asked.cpu_seconds.map(|n| n.unsigned()),
                open_files: small(asked.open_files),
            },
            output_cap: asked.output.map(|n| n.unsigned()),
            last_out: self.numbers.last_out(owner, name),
        };
        let sid = self.sessions.create(recipe, self.now.ns, self.now.mono);
        // Its first worker is told of the watches that were left, so they are read before it is ordered.
        self.load_watches(sid, move |broker| broker.order_session(sid));
        Ok(sid)
    }

    /// Allow-listed variables of the kernel's, the client's over them, minus what never reaches a session.
    fn session_env(&self, over: &std::collections::BTreeMap<String, String>) -> Result<Vec<Vec<u8>>, RpcError> {
        let mut env: std::collections::BTreeMap<&str, &str> =
            self.start.env.as_slice().iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        for (name, value) in over {
            let bad = name.is_empty() || name.contains(['=', '\0']) || value.contains('\0');
            if bad || name.len() + value.len() >= 131_072 {
                let message =
                    "names must not be empty or contain `=`, and nothing may contain a zero byte or exceed 128 KiB";
                return Err(RpcError::invalid("create.env", Reason::Range, message));
            }
            env.insert(name, value);
        }
        env.retain(|name, _| !SCRUBBED.contains(name));
        Ok(env.iter().map(|(name, value)| format!("{name}={value}").into_bytes()).collect())
    }

    fn await_session(&mut self, ask: Ask, attach: Attach, attachment: Attachment, identity: Identity, created: bool) {
        let sid = attachment.sid;
        self.when_up(sid, move |broker, up| match up {
            // What another client asked for could not be made: this one creates the session as it asks itself.
            Err(error) if !created && error.is(Code::InvalidParams) => broker.decide_attach(ask, attach),
            // A new broker has not heard its worker yet; whoever comes can thaw it.
            Err(error) if error.is(Code::SessionFrozen) => broker.attached(ask, attachment, &identity, false),
            Err(error) => broker.refuse_attach(ask, error),
            Ok(()) if created => broker.record_creation(ask, attachment, identity),
            Ok(()) => broker.attached(ask, attachment, &identity, false),
        });
    }

    /// The row of a creation is written before anybody works in the session.
    fn record_creation(&mut self, ask: Ask, attachment: Attachment, identity: Identity) {
        let detail = json!({"action": "created", "reason": null, "by": &*attachment.principal});
        let sid = attachment.sid;
        let row = self.plain_row(Kind::Session, Some(sid), &attachment.principal, detail);
        self.write_plain(row, move |broker, written| match written {
            Ok(_) => {
                broker.session_event(sid, "created", None, None);
                broker.attached(ask, attachment, &identity, true);
            }
            Err(error) => {
                let ended = crate::sessions::Ended { reason: "killed", by: None, note: None };
                broker.end_session(sid, ended);
                broker.refuse_attach(ask, RpcError::journal_unavailable(error.to_string()));
            }
        });
    }

    fn attached(&mut self, ask: Ask, attachment: Attachment, identity: &Identity, created: bool) {
        let conn = ask.conn;
        if self.clients.at(conn).is_none() {
            // Nobody will leave a session that nobody came into.
            return self.arm_idle(attachment.sid);
        }
        let result = match self.attach_result(&attachment, identity, created) {
            Ok(result) => result,
            Err(error) => return self.refuse_attach(ask, error),
        };
        if let Some(before) = self.attachment(conn).map(|before| before.sid) {
            self.detach(before);
        }
        for sub in self.bus.forget_connection(conn) {
            if let Some(client) = self.clients.at(conn) {
                client.out.with(|queue| queue.close_share(sub));
            }
        }
        if let Some(session) = self.sessions.at_mut(attachment.sid) {
            session.attached += 1;
        }
        if attachment.principal != attachment.owner {
            self.note_session(attachment.sid, "attached", None, Some(&attachment.principal));
        }
        self.send_answer(ask, &Ok(result));
        self.end_attach(conn, Some(attachment));
    }

    /// What an attach is told; the session may have ended, and its owner's section may be gone, while it was waited for.
    fn attach_result(&self, attachment: &Attachment, identity: &Identity, created: bool) -> Result<String, RpcError> {
        let section = self.policy.of(&attachment.owner).ok_or_else(|| unserved(&attachment.owner))?;
        let (name, cwd, env_hash) = if attachment.sid == Sid::NONE {
            ("null".to_owned(), "null".to_owned(), "null".to_owned())
        } else {
            let session = self.sessions.at(attachment.sid).filter(|session| session.is_there());
            let session = session.ok_or_else(|| RpcError::worker_lost(&attachment.session, None, false, "it ended"))?;
            let hash = blake3::Hash::from(session.env_hash).to_hex();
            (quoted(&attachment.session), wire_path(&session.cwd), quoted(&hash))
        };
        let budgets = serde_json::to_string(&Budgets::DEFAULT).map_err(|e| RpcError::internal(e.to_string()))?;
        let kernel = if attachment.human { r#","kernel""# } else { "" };
        let enforced = crate::policy::is_enforced(&self.start, section);
        Ok(format!(
            concat!(
                r#"{{"session":{},"owner":{},"principal":{},"created":{},"protocol":{},"build":{},"ast_version":{},"#,
                r#""cwd":{},"env_hash":{},"caps":{},"caps_enforced":{},"level":"{}","claims":{},"isolation":{},"#,
                r#""elide_defaults":{},"channels":["session.transcript","journal","approval","render","session"{}]}}"#
            ),
            name,
            quoted(&attachment.owner),
            quoted(&attachment.principal),
            created,
            PROTOCOL,
            quoted(BUILD),
            AST_VERSION,
            cwd,
            env_hash,
            caps_json(&self.start, section, &attachment.owner, &identity.profile, &identity.caps),
            enforced,
            self.start.level.as_str(),
            claims_json(self.start.claims),
            isolation_json(&self.start, section),
            budgets,
            kernel,
        ))
    }

    /// A connection left a session.
    pub(super) fn detach(&mut self, sid: Sid) {
        if let Some(session) = self.sessions.at_mut(sid) {
            session.attached = session.attached.saturating_sub(1);
        }
        self.arm_idle(sid);
    }
}

/// No section of the policy serves a principal.
fn unserved(principal: &str) -> RpcError {
    let hint = format!("add [principal.\"{principal}\"] or [default] to leash.toml");
    RpcError::denied("policy", format!("no policy section serves {principal}")).and("hint", hint)
}
