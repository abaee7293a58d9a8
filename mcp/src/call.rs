//! One request in work, and how it can fail.

use std::sync::Arc;

use serde_json::{Map, Value};
use shoal_wire::RpcError;

use crate::eras::Era;
use crate::server::Server;

/// A request being answered.
pub(crate) struct Call {
    /// The process it is part of.
    pub(crate) server: Arc<Server>,
    /// Its era.
    pub(crate) era: Era,
    /// Its parameters.
    pub(crate) params: Map<String, Value>,
}

impl Call {
    /// The token under which the client wants to hear of progress.
    pub(crate) fn progress_token(&self) -> Option<&Value> {
        self.params.get("_meta")?.get("progressToken").filter(|token| token.is_string() || token.is_number())
    }

    /// A string among the parameters.
    pub(crate) fn text(&self, name: &str) -> Result<&str, RpcError> {
        match self.params.get(name) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(RpcError::mistyped(name, "a string")),
            None => Err(RpcError::missing(name)),
        }
    }
}

/// A request that did not succeed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Failure {
    /// Ours to say: an error of JSON-RPC with this code.
    Ours(RpcError),
    /// The kernel's: its code never becomes a JSON-RPC code of ours.
    Kernel(RpcError),
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Failure {
        Failure::Ours(error)
    }
}
