//! The kernel, reached when it is first needed.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use shoal_client::{Attach, Attached, CallError, Client, Config, ConnectError, Connection, Flags, Vars};
use shoal_wire::{Code, Method, RpcError};

use crate::call::Failure;

/// Longest wait of a run without a `timeout_ms` and without a progress token: below the 60 s after which common
/// clients give a request up.
const WAIT_MS: u64 = 45_000;
/// Notes kept for the next result.
const NOTES: usize = 8;

/// Our one client of the kernel.
pub(crate) struct Kernel {
    flags: Flags,
    vars: Vars,
    client: Mutex<Option<Client>>,
    client_name: Mutex<Option<String>>,
    notes: Mutex<Vec<String>>,
    had_session: AtomicBool,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // What these guard is replaced whole, so a panic elsewhere leaves it usable.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Kernel {
    pub(crate) fn new(flags: Flags, vars: Vars) -> Kernel {
        Kernel {
            flags,
            vars,
            client: Mutex::default(),
            client_name: Mutex::default(),
            notes: Mutex::default(),
            had_session: AtomicBool::new(false),
        }
    }

    /// How long a run is waited for by default; `None` is without limit.
    pub(crate) fn default_wait(&self) -> Option<Duration> {
        let set = self.vars.text("SHOAL_MCP_WAIT_MS").and_then(|text| text.parse().ok());
        Some(Duration::from_millis(set.unwrap_or(WAIT_MS))).filter(|wait| !wait.is_zero())
    }

    /// Remembers who our client is; the next attach says it.
    pub(crate) fn name_client(&self, name: &str) {
        *locked(&self.client_name) = Some(name.chars().filter(|c| !c.is_control()).take(128).collect());
    }

    /// Something the next tool result is to say.
    pub(crate) fn note(&self, note: String) {
        let mut notes = locked(&self.notes);
        if notes.len() < NOTES && !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// What the next tool result is to say, if anything.
    pub(crate) fn take_notes(&self) -> Option<String> {
        let notes = std::mem::take(&mut *locked(&self.notes));
        (!notes.is_empty()).then(|| notes.join("; "))
    }

    fn client(&self) -> Result<Client, Failure> {
        let mut slot = locked(&self.client);
        if let Some(client) = slot.as_ref() {
            return Ok(client.clone());
        }
        let config = Config::resolve(self.flags.clone(), &self.vars).map_err(|error| no_kernel(&error.into()))?;
        let also = self.vars.text("SHOAL_MCP_PASS_ENV").unwrap_or_default();
        let also: Vec<String> =
            also.split(',').map(str::trim).filter(|name| !name.is_empty()).map(Into::into).collect();
        let mut attach = Attach::new(&config.session, "mcp").created_here(&self.vars, &also);
        attach.token.clone_from(&config.token);
        let client = Client::new(config, attach);
        *slot = Some(client.clone());
        Ok(client)
    }

    /// The attached connection, made now if there is none.
    pub(crate) async fn attached(&self) -> Result<(Connection, Arc<Attached>), Failure> {
        let client = self.named_client().await?;
        let (connection, attached, fresh) = client.attached().await.map_err(|error| no_kernel(&error))?;
        if fresh {
            self.on_attached(&attached);
        }
        Ok((connection, attached))
    }

    /// The same without starting a kernel: for what goes on by itself while no request waits. `None` without one.
    pub(crate) async fn attached_if_running(&self) -> Option<Connection> {
        let (connection, attached, fresh) = self.named_client().await.ok()?.attached_if_running().await.ok()?;
        if fresh {
            self.on_attached(&attached);
        }
        Some(connection)
    }

    async fn named_client(&self) -> Result<Client, Failure> {
        let client = self.client()?;
        let name = locked(&self.client_name).clone();
        if let Some(name) = name {
            client
                .with_attach(|attach| {
                    attach.client.insert("name".to_owned(), json!(name));
                })
                .await;
        }
        Ok(client)
    }

    fn on_attached(&self, attached: &Attached) {
        if self.had_session.swap(true, Ordering::Relaxed) && attached.created {
            self.note("the session is new: the bindings of the one before are gone".to_owned());
        }
    }

    /// Calls a method in the session.
    pub(crate) async fn call(&self, method: Method, params: &Value) -> Result<Value, Failure> {
        let (connection, _) = self.attached().await?;
        let answer = connection.call(method, params).await.map_err(failure).inspect_err(|error| {
            if matches!(error, Failure::Kernel(error) if error.is(Code::SessionEnded)) {
                // A new attachment makes the session anew; on a connection of its own, so that what is subscribed
                // sees the end of the old one and is subscribed again.
                *locked(&self.client) = None;
            }
        })?;
        serde_json::from_str(answer.get()).map_err(|error| Failure::Ours(RpcError::internal(error.to_string())))
    }
}

pub(crate) fn failure(error: CallError) -> Failure {
    match error {
        CallError::Kernel(error) if error.is(Code::Restarting) => lost(),
        CallError::Kernel(error) => Failure::Kernel(error),
        CallError::Connect(error) => no_kernel(&error),
        CallError::Lost => lost(),
        other => Failure::Ours(RpcError::internal(other.to_string())),
    }
}

pub(crate) fn lost() -> Failure {
    let error = RpcError::new(Code::Internal, "the kernel was lost during the call; it may or may not have happened");
    Failure::Ours(error.with(json!({ "reason": "kernel_lost", "retry": true })))
}

fn no_kernel(error: &ConnectError) -> Failure {
    // A host that closed standard error still gets its answer.
    writeln!(std::io::stderr(), "shoal-mcp: {error}").ok();
    match error {
        ConnectError::Refused(error) => Failure::Kernel(error.clone()),
        error => {
            let detail = error.to_string();
            let error = RpcError::new(Code::Internal, format!("no kernel: {detail}"));
            Failure::Ours(error.with(json!({ "reason": "no_kernel", "detail": detail })))
        }
    }
}
