//! What commands share: the configuration, a current-thread runtime, one connection.

use std::future::Future;
use std::io::IsTerminal as _;

use serde_json::Value;
use shoal_client::{Attach, Attached, Config, Connection, Flags, Vars};

use crate::args::Common;
use crate::fail::Fail;

/// A resolved command line.
pub(crate) struct Context {
    /// Where the kernel is.
    pub(crate) config: Config,
    /// One JSON document is wanted.
    pub(crate) json: bool,
    vars: Vars,
}

impl Context {
    /// Resolves flags over variables.
    pub(crate) fn new(common: Common) -> Result<Self, Fail> {
        let vars = Vars::of_process();
        let json = common.json;
        let flags = Flags {
            socket: common.socket,
            session: common.session,
            token: common.token,
            state_dir: common.state_dir,
            policy: None,
        };
        let config = Config::resolve(flags, &vars).map_err(|e| Fail::Usage(e.to_string()))?;
        Ok(Self { config, json, vars })
    }

    /// Runs a future to its end.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = Result<T, Fail>>) -> Result<T, Fail> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| Fail::Said(format!("cannot start: {e}")))?;
        runtime.block_on(work)
    }

    /// Connects, starting a kernel if need be, and attaches to the session.
    pub(crate) async fn attach(&self) -> Result<(Connection, Attached), Fail> {
        self.attach_by(&self.config, None).await
    }

    /// The same with a kernel that runs already.
    pub(crate) async fn attach_running(&self) -> Result<(Connection, Attached), Fail> {
        self.attach_running_of(None).await
    }

    /// The same with the session of that name of another owner.
    pub(crate) async fn attach_running_of(&self, owner: Option<String>) -> Result<(Connection, Attached), Fail> {
        self.attach_by(&Config { autostart: false, ..self.config.clone() }, owner).await
    }

    async fn attach_by(&self, config: &Config, owner: Option<String>) -> Result<(Connection, Attached), Fail> {
        let mut attach = Attach::new(&config.session, "cli").created_here(&self.vars, &[]);
        attach.owner = owner;
        attach.token.clone_from(&config.token);
        attach.client.insert("tty".to_owned(), std::io::stdout().is_terminal().into());
        let connection = Connection::find(config).await?;
        let attached = connection.attach(&attach).await?;
        Ok((connection, attached))
    }

    /// The same, never starting a kernel: for looking at one and ending it.
    pub(crate) fn running_only(mut self) -> Self {
        self.config.autostart = false;
        self
    }
}

/// Calls a method and decodes its result.
pub(crate) async fn call(connection: &Connection, method: &str, params: Value) -> Result<Value, Fail> {
    let text = connection.call_named(method, &params).await?;
    serde_json::from_str(text.get()).map_err(|e| Fail::Said(format!("the kernel's answer does not decode: {e}")))
}

/// A member as text: strings as they are, null as nothing, the rest as JSON.
pub(crate) fn text(value: &Value, member: &str) -> String {
    match value.get(member) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// The members of an array, none when it is no array.
pub(crate) fn items<'v>(value: &'v Value, member: &str) -> &'v [Value] {
    value.get(member).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
