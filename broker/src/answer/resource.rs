//! Reading methods on behalf of the language: a worker asks for its own session, never as the human.

use serde::Deserialize;
use serde_json::value::RawValue;
use shoal_proto::broker_worker::{ToWorker, UpCall, UpMethod};
use shoal_wire::{Method, RpcError};

use crate::broker::Broker;
use crate::clients::Attachment;
use crate::sessions::Sid;
use crate::worker_edge::told;

#[derive(Deserialize)]
struct Wanted<'a> {
    method: String,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

impl Broker {
    /// A resource of the kernel, or the plans, for the language.
    pub(crate) fn up_resource(&mut self, sid: Sid, call: UpCall) {
        let Some(session) = self.sessions.at(sid) else { return };
        let caller = Attachment {
            principal: session.owner.clone(),
            owner: session.owner.clone(),
            session: session.name.clone(),
            sid,
            human: false,
            kind: "language".into(),
            name: "".into(),
            tty: false,
            token: None,
            last_out: None,
            ended: None,
        };
        let answer = self.read_for(&caller, &call);
        if let Some(run) = self.runs.of(sid, call.run) {
            run.up_calls = run.up_calls.saturating_sub(1);
        }
        self.tell_worker(sid, ToWorker::Told(told(call.call, answer)));
    }

    fn read_for(&mut self, caller: &Attachment, call: &UpCall) -> Result<String, RpcError> {
        if call.method == UpMethod::Plan {
            return self.plan_list(caller, None);
        }
        let wanted: Wanted<'_> = serde_json::from_slice(call.params.as_slice())
            .map_err(|error| RpcError::invalid("params", shoal_wire::error::Reason::Type, error.to_string()))?;
        let method = Method::from_name(&wanted.method).ok_or_else(|| RpcError::method_not_found(&wanted.method))?;
        match method {
            Method::TaskList => self.task_list(caller, wanted.params),
            Method::TaskGet => self.task_get(caller, wanted.params),
            Method::PlanList => self.plan_list(caller, wanted.params),
            Method::ApprovalList => self.approval_list(caller, wanted.params),
            Method::PtyList => self.pty_list(caller, wanted.params),
            Method::EventsRead => self.ring_page(caller, wanted.params),
            other => Err(RpcError::method_not_found(other.name())),
        }
    }
}
