//! What can be read under `shoal://`.

pub(crate) mod event_log;
pub(crate) mod list;
pub(crate) mod read;
mod route;
pub(crate) mod templates;

use serde_json::json;
use shoal_wire::{Code, RpcError};

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
