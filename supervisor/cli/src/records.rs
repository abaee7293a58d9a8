//! Records and tokens, wherever they are kept at the moment: in a running kernel, else in the state directory.

use std::path::Path;

use serde_json::Value;
use shoal_client::{ConnectError, Connection};

use crate::context::{Context, call};
use crate::fail::Fail;
use crate::statedir::StateDir;

/// Who answers.
pub(crate) enum Records {
    /// A kernel, asked over its socket.
    Kernel(Connection),
    /// Nobody runs: the files themselves.
    StateDir(Box<StateDir>),
}

impl Records {
    /// Finds a running kernel and asks from outside of its sessions; starts none. Without one, opens the state directory under its lock.
    pub(crate) async fn find(context: &Context) -> Result<Self, Fail> {
        Self::of(context, StateDir::open).await
    }

    /// The same; a state directory that no kernel has used yet is made.
    pub(crate) async fn make(context: &Context) -> Result<Self, Fail> {
        Self::of(context, StateDir::make).await
    }

    async fn of(context: &Context, open: fn(&Path) -> Result<StateDir, Fail>) -> Result<Self, Fail> {
        match context.administer().await {
            Ok((connection, _)) => Ok(Self::Kernel(connection)),
            Err(Fail::Connect(ConnectError::NoKernel { path })) => {
                let dir = context.config.state_dir.as_ref();
                open(dir.ok_or(Fail::Connect(ConnectError::NoKernel { path }))?).map(Box::new).map(Self::StateDir)
            }
            Err(other) => Err(other),
        }
    }

    /// Asks a method of the protocol.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Result<Value, Fail> {
        match self {
            Self::Kernel(connection) => call(connection, method, params).await,
            Self::StateDir(dir) => dir.answer(method, &params),
        }
    }
}
