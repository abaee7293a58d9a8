//! What commands share: the configuration, a current-thread runtime, one connection.

use std::future::Future;
use std::io::IsTerminal as _;
use std::time::Duration;

use serde_json::Value;
use shoal_client::{Attach, Attached, CallError, Client, Config, ConnectError, Connection, Enter, Flags, Vars};
use shoal_wire::{Code, PROTOCOL, RpcError};

use crate::args::Common;
use crate::fail::Fail;

/// A resolved command line.
#[derive(Clone)]
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

    /// Connects, starting a kernel if need be, and attaches to the session, making it if there is none.
    pub(crate) async fn attach(&self) -> Result<(Connection, Attached), Fail> {
        self.attach_by(&self.config, self.attachment()).await
    }

    /// Attaches to a session that is there, of a kernel that runs.
    pub(crate) async fn enter(&self, owner: Option<String>) -> Result<(Connection, Attached), Fail> {
        self.look(Attach { owner, enter: Enter::Existing, ..self.attachment() }).await
    }

    /// Attaches to no session, at a kernel that runs: to look around and to administer. Nothing is made.
    pub(crate) async fn administer(&self) -> Result<(Connection, Attached), Fail> {
        self.look(self.outside()).await
    }

    async fn look(&self, attach: Attach) -> Result<(Connection, Attached), Fail> {
        self.attach_by(&Config { autostart: false, ..self.config.clone() }, attach).await
    }

    async fn attach_by(&self, config: &Config, attach: Attach) -> Result<(Connection, Attached), Fail> {
        // A kernel that is being replaced is waited for.
        match Client::new(config.clone(), attach).attached().await {
            Ok((connection, attached, _)) => Ok((connection, Attached::clone(&attached))),
            Err(error @ ConnectError::Refused(_)) => {
                let connection = Connection::find(config).await?;
                Err(with_versions(&connection, error.into()).await)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What an attach of this command says.
    pub(crate) fn attachment(&self) -> Attach {
        let mut attach = Attach::new(&self.config.session, "cli").created_here(&self.vars, &[]);
        attach.token.clone_from(&self.config.token);
        attach.client.insert("tty".to_owned(), std::io::stdout().is_terminal().into());
        attach
    }

    /// What an attach says that enters no session.
    pub(crate) fn outside(&self) -> Attach {
        Attach { enter: Enter::Nothing, ..self.attachment() }
    }

    /// The same, never starting a kernel.
    pub(crate) fn running_only(mut self) -> Self {
        self.config.autostart = false;
        self
    }

    /// The environment of this process.
    pub(crate) fn vars(&self) -> &Vars {
        &self.vars
    }

    /// Where policy files are; none without a home.
    pub(crate) fn config_dir(&self) -> Option<std::path::PathBuf> {
        self.config.config_dir.clone()
    }
}

/// How long a kernel may take to say its version once something failed already.
const VERSION: Duration = Duration::from_secs(2);

/// A failure that may come of two versions talking past each other names both, when they differ.
async fn with_versions(connection: &Connection, fail: Fail) -> Fail {
    let may_be = match &fail {
        Fail::Call(CallError::Decode(_)) | Fail::Said(_) => true,
        Fail::Call(error) => error.kernel().is_some_and(is_misunderstanding),
        Fail::Connect(ConnectError::Refused(error)) => is_misunderstanding(error),
        _ => false,
    };
    if !may_be {
        return fail;
    }
    let nothing = serde_json::json!({});
    let asked = connection.call_named("kernel.version", &nothing);
    let Ok(Ok(text)) = tokio::time::timeout(VERSION, asked).await else { return fail };
    match serde_json::from_str(text.get()).ok().and_then(|version| skew(&version)) {
        Some(skew) => Fail::Skewed { fail: Box::new(fail), skew },
        None => fail,
    }
}

/// Whether a kernel that knows other methods or members would answer so.
fn is_misunderstanding(error: &RpcError) -> bool {
    error.is(Code::MethodNotFound)
        || (error.is(Code::InvalidParams) && matches!(error.reason(), Some("unknown_member" | "missing")))
}

/// Both versions, when what `kernel.version` said is not this program's.
pub(crate) fn skew(version: &Value) -> Option<String> {
    let (theirs, ours) = (text(version, "build"), shoal_wire::BUILD);
    (theirs != ours).then(|| {
        let spoken = text(version, "protocol");
        let protocol =
            if spoken == PROTOCOL.to_string() { String::new() } else { format!(", which speaks protocol {spoken}") };
        format!("this command is {ours}, the kernel is {theirs}{protocol}")
    })
}

/// Calls a method and decodes its result.
pub(crate) async fn call(connection: &Connection, method: &str, params: Value) -> Result<Value, Fail> {
    let answer = connection.call_named(method, &params).await.map_err(Fail::from).and_then(|text| {
        serde_json::from_str(text.get()).map_err(|e| Fail::Said(format!("the kernel's answer does not decode: {e}")))
    });
    match answer {
        Ok(value) => Ok(value),
        Err(fail) => Err(with_versions(connection, fail).await),
    }
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
