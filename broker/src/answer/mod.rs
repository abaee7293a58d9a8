//! From a frame to its answerer: the checks that come before a parameter is looked at, in the protocol's order.

mod admin;
mod applying;
mod approvals;
mod attach;
mod events;
mod exec;
mod journal;
mod plans;
mod ptys;
mod replay;
mod resource;
mod sessions;
mod tasks;
mod tokens;
mod values;
mod watches;

use std::rc::Rc;

use serde_json::value::RawValue;
use shoal_wire::envelope::Rejected;
use shoal_wire::{AST_VERSION, BUILD, Method, PROTOCOL, Request, RpcError, params};
use tokio::net::UnixStream;
use tokio::sync::OwnedSemaphorePermit;

use crate::broker::{Broker, or_refuse};
use crate::clients::{Ask, Attachment, Client, ConnId, Frame, Life, Peer, Step, serve};
use crate::permits::{Authority, Needs, Permit, Who, permit};
use crate::quotas::Quota;
use crate::sessions::Sid;

pub(crate) use admin::read_sections;
pub(crate) use exec::{Order as RunOrder, default_elide};
pub(crate) use plans::Planning;
pub(crate) use tasks::TaskWaiter;

/// The parameters of a request, as text.
type Params<'a> = Option<&'a RawValue>;

impl Broker {
    /// A connection of the kernel's uid.
    pub(crate) fn on_accepted(&mut self, stream: UnixStream, peer: Peer, place: OwnedSemaphorePermit) {
        let surplus = self.draining || self.quotas.admit(Quota::Connections, self.clients.len()).is_err();
        let client = Client::new(peer, surplus, place);
        let (out, attached) = (client.out.clone(), client.attached.clone());
        let conn = self.clients.insert(client);
        let tasks = serve(conn, stream, out, attached, &self.wakes, self.frame_time);
        if let Some(client) = self.clients.at_mut(conn) {
            client.served_by(tasks);
        }
    }

    /// A connection is over: what it asked for goes on without it.
    pub(crate) fn on_client_gone(&mut self, conn: ConnId) {
        let Some(client) = self.clients.remove(conn) else { return };
        client.out.with(|queue| queue.end(Life::Over));
        self.bus.forget_connection(conn);
        if let Some(attachment) = client.attachment() {
            self.detach(attachment.sid);
        }
        self.release_ptys_of(conn);
        self.forget_task_waiters(conn);
        for n in self.runs.forget_connection(conn) {
            self.keep_task(n);
        }
    }

    /// A frame of a connection.
    pub(crate) fn on_frame(&mut self, conn: ConnId, frame: Frame) {
        let Some(client) = self.clients.at_mut(conn) else { return };
        match client.step(|phase| phase.on_frame(frame)) {
            Step::Held => {}
            Step::Dispatch(frame) => {
                // Whoever speaks is counted among the connections from now on, and keeps nobody in the backlog.
                client.place = None;
                self.on_request(conn, frame);
            }
            Step::Surplus(frame) => self.refuse_surplus(conn, frame),
        }
    }

    fn refuse_surplus(&mut self, conn: ConnId, frame: Frame) {
        if let Ok(request) = Request::decode(&frame.bytes) {
            let ask = Ask::of_client(conn, request.id.get(), "", frame.hold);
            let used = self.clients.len().saturating_sub(1);
            let error = self.quotas.admit(Quota::Connections, used).err();
            let error = error.unwrap_or_else(|| RpcError::restarting(1000));
            self.send_answer(ask, &Err(error));
        }
        self.finish_connection(conn);
    }

    fn on_request(&mut self, conn: ConnId, frame: Frame) {
        let request = match Request::decode(&frame.bytes) {
            Ok(request) => request,
            Err(Rejected::Answer(id, error)) => {
                let ask = Ask::of_client(conn, id.get(), "", frame.hold);
                return self.send_answer(ask, &Err(error));
            }
            Err(Rejected::Close(_)) => {
                // A client that does not speak the protocol is told nothing.
                if let Some(client) = self.clients.at(conn) {
                    client.out.with(|queue| queue.end(Life::Over));
                }
                return self.on_client_gone(conn);
            }
        };
        let Some(permit) = permit(&request.method) else {
            let ask = Ask::of_client(conn, request.id.get(), "", frame.hold);
            return self.send_answer(ask, &Err(RpcError::method_not_found(&request.method)));
        };
        let ask = Ask::of_client(conn, request.id.get(), permit.method.name(), frame.hold);
        if let Some(error) = self.token_fault(conn) {
            self.send_answer(ask, &Err(error));
            return self.finish_connection(conn);
        }
        if permit.who == Who::Anyone {
            return self.answer_anyone(ask, permit.method, request.params);
        }
        let caller = or_refuse!(self, ask, self.admit(conn, permit));
        self.dispatch(ask, caller, permit.method, request.params);
    }

    /// A token connection whose token is no longer good.
    fn token_fault(&mut self, conn: ConnId) -> Option<RpcError> {
        let token = self.attachment(conn)?.token.clone()?;
        self.refresh_tokens();
        self.tokens.fault(&token, self.now.ns)
    }

    /// Attachment, permission, session state: the checks before parameters.
    fn admit(&mut self, conn: ConnId, permit: Permit) -> Result<Attachment, RpcError> {
        let caller = self.attachment(conn).ok_or_else(RpcError::not_attached)?.clone();
        let journal_read = self.policy.of(&caller.principal).is_some_and(|section| section.journal_read);
        permit.check(Authority { human: caller.human, journal_read }).map_err(RpcError::not_permitted)?;
        if caller.sid == Sid::NONE {
            let outside = matches!(permit.needs, Needs::Nothing | Needs::Owner);
            return if outside { Ok(caller) } else { Err(RpcError::not_attached()) };
        }
        if permit.needs != Needs::Nothing {
            if let Some(end) = &caller.ended {
                let (by, note) = (end.by.as_deref(), end.note.as_deref());
                return Err(RpcError::session_ended(&caller.session, &caller.owner, end.reason, by, note));
            }
            let (now_ns, now) = (self.now.ns, self.now.mono);
            let Some(session) = self.sessions.at_mut(caller.sid) else {
                // Nobody would answer what is asked of it.
                return Err(RpcError::session_ended(&caller.session, &caller.owner, "killed", None, None));
            };
            session.used_ns = now_ns;
            session.used = now;
            if permit.needs == Needs::Work && session.frozen {
                return Err(RpcError::session_frozen(&caller.session, &caller.owner));
            }
            if permit.needs == Needs::Work && self.draining {
                return Err(RpcError::session_ended(&caller.session, &caller.owner, "shutdown", None, None));
            }
        }
        Ok(caller)
    }

    fn answer_anyone(&mut self, ask: Ask, method: Method, params: Params<'_>) {
        if method == Method::SessionAttach {
            return self.answer_attach(ask, params);
        }
        let answer = params::decode::<params::Empty>(params).map(|_| {
            format!(
                r#"{{"server":"shoal-kernel","protocol":{PROTOCOL},"build":"{BUILD}","ast_version":{AST_VERSION}}}"#
            )
        });
        self.reply(ask, answer);
    }

    /// One line per method.
    pub(crate) fn dispatch(&mut self, ask: Ask, caller: Attachment, method: Method, params: Params<'_>) {
        match method {
            Method::KernelVersion | Method::SessionAttach => self.answer_anyone(ask, method, params),
            Method::SessionSnapshot => self.answer_snapshot(ask, &caller, params),
            Method::SessionEnv | Method::SessionReef | Method::Parse | Method::Complete => {
                self.answer_by_worker(ask, &caller, method, params);
            }
            Method::Explain => self.answer_explain(ask, &caller, params),
            Method::Exec => self.answer_exec(ask, &caller, params),
            Method::ValueGet => self.answer_value_get(ask, &caller, params),
            Method::BlobGet => self.answer_blob_get(ask, &caller, params),
            Method::StreamPull | Method::StreamClose => self.answer_stream(ask, &caller, method, params),
            Method::JournalQuery => self.answer_journal_query(ask, &caller, params),
            Method::JournalVerify => self.answer_journal_verify(ask, params),
            Method::TaskList => self.answer_task_list(ask, &caller, params),
            Method::TaskGet => self.answer_task_get(ask, &caller, params),
            Method::TaskAwait => self.answer_task_await(ask, &caller, params),
            Method::TaskOutput => self.answer_task_output(ask, &caller, params),
            Method::TaskCancel => self.answer_task_cancel(ask, &caller, params),
            Method::TaskSuspend => self.answer_task_pause(ask, &caller, params, true),
            Method::TaskResume => self.answer_task_pause(ask, &caller, params, false),
            Method::PlanList => {
                let answer = self.plan_list(&caller, params);
                self.reply(ask, answer);
            }
            Method::PlanGet => self.answer_plan_get(ask, &caller, params),
            Method::PlanApply => self.answer_plan_apply(ask, &caller, params),
            Method::CapRequest => self.answer_cap_request(ask, &caller, params),
            Method::ApprovalList => {
                let answer = self.approval_list(&caller, params);
                self.reply(ask, answer);
            }
            Method::ApprovalDecide => self.answer_approval_decide(ask, &caller, params),
            Method::PtyOpen => self.answer_pty_open(ask, &caller, params),
            Method::PtySend => self.answer_pty_send(ask, &caller, params),
            Method::PtyRead => self.answer_pty_read(ask, &caller, params),
            Method::PtyResize => self.answer_pty_resize(ask, &caller, params),
            Method::PtyControl => self.answer_pty_control(ask, &caller, params),
            Method::PtyClose => self.answer_pty_close(ask, &caller, params),
            Method::PtyList => {
                let answer = self.pty_list(&caller, params);
                self.reply(ask, answer);
            }
            Method::EventsRead => self.answer_events_read(ask, &caller, params),
            Method::EventsPublish => self.answer_events_publish(ask, &caller, params),
            Method::EventsSubscribe => self.answer_events_subscribe(ask, &caller, params),
            Method::EventsUnsubscribe => {
                let answer = self.events_unsubscribe(ask.conn, &caller, params);
                self.reply(ask, answer);
            }
            Method::WatchStart => self.answer_watch_start(ask, &caller, params),
            Method::WatchStop => self.answer_watch_stop(ask, &caller, params),
            Method::WatchList => self.answer_by_worker(ask, &caller, method, params),
            Method::WatchGet => self.answer_watch_get(ask, &caller, params),
            Method::SessionList => self.answer_session_list(ask, params),
            Method::SessionKill => self.answer_session_kill(ask, &caller, params),
            Method::SessionFreeze => self.answer_session_freeze(ask, &caller, params, true),
            Method::SessionThaw => self.answer_session_freeze(ask, &caller, params, false),
            Method::TokenCreate => self.answer_token_create(ask, &caller, params),
            Method::TokenList => {
                let answer = self.token_list(params);
                self.reply(ask, answer);
            }
            Method::TokenRevoke => self.answer_token_revoke(ask, &caller, params),
            Method::KernelStatus => self.answer_kernel_status(ask, params),
            Method::JournalPin => self.answer_journal_pin(ask, &caller, params, true),
            Method::JournalUnpin => self.answer_journal_pin(ask, &caller, params, false),
            Method::JournalGc => self.answer_journal_gc(ask, &caller, params),
            Method::KernelShutdown => self.answer_kernel_shutdown(ask, &caller, params),
        }
    }

    /// The principal is the local user.
    pub(crate) fn is_local_user(&self, principal: &str) -> bool {
        principal.strip_prefix("uid:").and_then(|uid| uid.parse().ok()) == Some(self.start.uid)
    }

    /// The local user's principal.
    pub(crate) fn local_user(&self) -> Rc<str> {
        format!("uid:{}", self.start.uid).into()
    }
}
