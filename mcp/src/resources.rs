//! `resources/list`, `resources/templates/list` and `resources/read`.

use serde_json::{Map, Value, json};
use shoal_resources::list::{Live, entries};
use shoal_resources::read::{Reading, Step};
use shoal_resources::templates;
use shoal_wire::{Code, Method, RpcError};

use crate::call::{Call, Failure};
use crate::kernel::Kernel;

/// Answers `resources/list`. Without a kernel the roots alone are listed; a query that fails is left out.
pub(crate) async fn list(kernel: &Kernel) -> Map<String, Value> {
    let mut live = Live::default();
    if kernel.attached().await.is_ok() {
        let none = json!({});
        let (tasks, plans, ptys, watches) = tokio::join!(
            kernel.call(Method::TaskList, &none),
            kernel.call(Method::PlanList, &none),
            kernel.call(Method::PtyList, &none),
            kernel.call(Method::WatchList, &none),
        );
        live = Live { tasks: tasks.ok(), plans: plans.ok(), ptys: ptys.ok(), watches: watches.ok() };
    }
    Map::from_iter([("resources".to_owned(), Value::Array(entries(&live)))])
}

/// Result of `resources/templates/list`.
pub(crate) fn list_templates() -> Map<String, Value> {
    Map::from_iter([("resourceTemplates".to_owned(), Value::Array(templates::entries()))])
}

/// Answers `resources/read`.
pub(crate) async fn read(call: &Call) -> Result<Map<String, Value>, Failure> {
    let uri = call.text("uri")?;
    let (mut reading, mut method, mut params) = Reading::begin(uri)?;
    loop {
        let result = call.server.kernel.call(method, &params).await?;
        match reading.answered(result).map_err(Failure::Kernel)? {
            Step::Call(next, with) => (method, params) = (next, with),
            Step::Done(page) => return Ok(page.finish(uri)),
        }
    }
}

/// A kernel error as a JSON-RPC error: its code stays data, since MCP gives those numbers meanings of its own.
pub(crate) fn kernel_error(error: &RpcError) -> RpcError {
    let object = json!(error);
    RpcError::new(Code::InvalidParams, format!("kernel error: {object}")).with(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_errors_keep_their_object() {
        let error = kernel_error(&RpcError::unknown_ref("out:999", "unknown", None));
        assert_eq!(error.code, -32602);
        assert!(error.message.starts_with("kernel error: {\"code\":-32004,"), "{}", error.message);
        assert_eq!(error.data.unwrap()["data"]["ref"], "out:999");
    }
}
