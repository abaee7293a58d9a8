//! Reading methods on behalf of the language: a worker asks for its own session, never as the human.

use serde::Deserialize;
use serde_json::value::RawValue;
use shoal_proto::broker_worker::{UpCall, UpMethod};
use shoal_wire::{Method, RpcError};

use crate::broker::Broker;
use crate::clients::{Ask, Attachment};
use crate::sessions::Sid;

/// Methods that change nothing and wait for nothing.
const READING: [Method; 18] = [
    Method::SessionSnapshot,
    Method::SessionEnv,
    Method::SessionReef,
    Method::ValueGet,
    Method::BlobGet,
    Method::StreamPull,
    Method::JournalQuery,
    Method::TaskList,
    Method::TaskGet,
    Method::TaskOutput,
    Method::PlanList,
    Method::PlanGet,
    Method::ApprovalList,
    Method::PtyList,
    Method::PtyRead,
    Method::EventsRead,
    Method::WatchList,
    Method::WatchGet,
];

#[derive(Deserialize)]
struct Wanted<'a> {
    method: String,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

impl Broker {
    /// A resource of the kernel, or the plans, for the language.
    pub(crate) fn up_resource(&mut self, sid: Sid, mut call: UpCall) {
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
        let text = std::mem::take(&mut call.params);
        let asked = if call.method == UpMethod::Plan { plan(text.as_slice()) } else { wanted(text.as_slice()) };
        match asked {
            Ok((method, params)) => self.dispatch(Ask::of_worker(sid, call, method.name()), caller, method, params),
            Err(error) => self.told(sid, &call, Err(error)),
        }
    }
}

fn wanted(text: &[u8]) -> Result<(Method, Option<&RawValue>), RpcError> {
    let wanted: Wanted<'_> = serde_json::from_slice(text)
        .map_err(|error| RpcError::invalid("params", shoal_wire::error::Reason::Type, error.to_string()))?;
    let method = Method::from_name(&wanted.method).filter(|method| READING.contains(method));
    Ok((method.ok_or_else(|| RpcError::method_not_found(&wanted.method))?, wanted.params))
}

/// One plan when it is named, else the list.
fn plan(text: &[u8]) -> Result<(Method, Option<&RawValue>), RpcError> {
    #[derive(Deserialize)]
    struct Named {
        plan_ref: Option<serde::de::IgnoredAny>,
    }
    let mistyped =
        |error: serde_json::Error| RpcError::invalid("params", shoal_wire::error::Reason::Type, error.to_string());
    let params: &RawValue = serde_json::from_slice(text).map_err(mistyped)?;
    let named: Named = serde_json::from_slice(text).map_err(mistyped)?;
    Ok((if named.plan_ref.is_some() { Method::PlanGet } else { Method::PlanList }, Some(params)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reading_methods_are_for_the_language() {
        assert!(wanted(br#"{"method":"journal.query","params":{}}"#).is_ok());
        for method in
            ["exec", "plan.apply", "approval.decide", "events.publish", "watch.start", "kernel.shutdown", "no"]
        {
            let text = format!(r#"{{"method":"{method}"}}"#);
            assert_eq!(wanted(text.as_bytes()).map(|_| ()).map_err(|e| e.code), Err(-32601), "{method}");
        }
        assert_eq!(plan(b"{}").map(|(method, _)| method), Ok(Method::PlanList));
        assert_eq!(plan(br#"{"plan_ref":"plan:1"}"#).map(|(method, _)| method), Ok(Method::PlanGet));
    }
}
