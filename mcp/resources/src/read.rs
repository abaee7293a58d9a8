//! A read, call by call: what to ask the kernel for, and the page that comes of it.

use serde_json::{Map, Value, json};
use shoal_wire::{Method, RpcError};

use crate::event_log;
use crate::page::Page;
use crate::route::{self, Route};

/// What a read needs next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// One more call; its result goes to [`Reading::answered`].
    Call(Method, Value),
    /// Nothing: this is it.
    Done(Page),
}

/// A read under way.
#[derive(Clone, Debug)]
pub struct Reading {
    uri: String,
    then: Then,
}

/// What the next result is.
#[derive(Clone, Debug)]
enum Then {
    /// The resource.
    Whole(Method),
    /// The record of a task whose result is the resource.
    TaskRecord(Map<String, Value>),
    /// A list with the one approval.
    Approval(Value),
    /// An event log; `forward` when it is read from a number on.
    Events { forward: bool },
    /// A watch with its notices.
    Watch(String),
}

impl Reading {
    /// Begins a read: the first call. Errors are plain: there is no such resource, or a parameter is malformed.
    pub fn begin(uri: &str) -> Result<(Reading, Method, Value), RpcError> {
        let (then, method, params) = match route::of(uri)? {
            Route::Call(method, params) => (Then::Whole(method), method, params),
            Route::TaskResult { task, select } => (Then::TaskRecord(select), Method::TaskGet, json!({ "task": task })),
            Route::Approval(params) => (Then::Approval(params.clone()), Method::ApprovalList, params),
            Route::Events { params, forward } => (Then::Events { forward }, Method::EventsRead, params),
            Route::Watch(params) => {
                let name = params["name"].as_str().unwrap_or_default().to_owned();
                (Then::Watch(name), Method::WatchGet, params)
            }
        };
        Ok((Reading { uri: uri.to_owned(), then }, method, params))
    }

    /// Takes the result of the call before.
    pub fn answered(&mut self, mut result: Value) -> Result<Step, RpcError> {
        let page = match &mut self.then {
            Then::Whole(method) => Page::of(*method, result, &self.uri),
            Then::TaskRecord(select) => match result["result_ref"].as_str() {
                None => Page::whole(result),
                Some(reference) => {
                    let mut params = std::mem::take(select);
                    params.insert("ref".to_owned(), json!(reference));
                    self.then = Then::Whole(Method::ValueGet);
                    return Ok(Step::Call(Method::ValueGet, Value::Object(params)));
                }
            },
            Then::Approval(params) => Page::whole(approval(result, params)?),
            Then::Events { forward } => {
                event_log::describe(&mut result);
                Page::events(result, *forward)
            }
            Then::Watch(name) => {
                event_log::describe_notices(&mut result, name);
                Page::events(result, false)
            }
        };
        Ok(Step::Done(page))
    }
}

fn approval(mut list: Value, params: &Value) -> Result<Value, RpcError> {
    match list["approvals"].as_array_mut().and_then(Vec::pop) {
        Some(approval) => Ok(approval),
        None => Err(RpcError::unknown_plan(params["plan_ref"].as_str().unwrap_or_default(), "unknown")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_of_a_task_takes_two_calls() {
        let (mut reading, method, params) = Reading::begin("shoal://task/7/out?path=.a").unwrap();
        assert_eq!((method, params), (Method::TaskGet, json!({"task": "task:7"})));
        let step = reading.clone().answered(json!({"id": "task:7", "result_ref": null})).unwrap();
        assert!(matches!(step, Step::Done(_)), "the record while there is none");
        let step = reading.answered(json!({"id": "task:7", "result_ref": "out:3"})).unwrap();
        assert_eq!(step, Step::Call(Method::ValueGet, json!({"path": ".a", "ref": "out:3"})));
        let value = json!({"ref": "out:3", "uri": "shoal://out/3", "value": {"$": "int", "v": 1}});
        let Step::Done(page) = reading.answered(value).unwrap() else { panic!("done") };
        assert_eq!(page.structured, json!({"$": "int", "v": 1}));
    }

    #[test]
    fn no_approval_is_an_unknown_plan() {
        let (mut reading, _, _) = Reading::begin("shoal://approval/9b1f6c0e4d7a4c33a1e05b7d2f8890ce").unwrap();
        assert_eq!(reading.answered(json!({"approvals": []})).unwrap_err().code, -32012);
    }
}
