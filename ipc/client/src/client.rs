//! An attachment that survives the loss of its connection.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;
use shoal_wire::{Code, Method, RpcError};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout_at};

use crate::attach::{Attach, Attached};
use crate::autostart;
use crate::config::Config;
use crate::connection::Connection;
use crate::error::{CallError, ConnectError};

/// First pause between attempts while a kernel is being replaced; it doubles up to [`LAST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// A client that connects and attaches when it is first needed, and again after its connection is lost.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    config: Config,
    state: Mutex<State>,
}

struct State {
    attach: Attach,
    open: Option<Open>,
}

/// A connection that is attached.
#[derive(Clone)]
struct Open {
    connection: Connection,
    attached: Arc<Attached>,
}

impl Client {
    /// A client that is not connected yet.
    pub fn new(config: Config, attach: Attach) -> Client {
        Client { inner: Arc::new(Inner { config, state: Mutex::new(State { attach, open: None }) }) }
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// Changes what the next attach says; the present attachment stays.
    pub async fn with_attach(&self, change: impl FnOnce(&mut Attach)) {
        change(&mut self.inner.state.lock().await.attach);
    }

    /// The attached connection, made now if there is none, and whether this call made it.
    pub async fn attached(&self) -> Result<(Connection, Arc<Attached>, bool), ConnectError> {
        self.attached_by(&self.inner.config).await
    }

    /// [`Client::attached`] for what nobody asked for just now: it starts no kernel, so that one that was stopped stays
    /// stopped.
    pub async fn attached_if_running(&self) -> Result<(Connection, Arc<Attached>, bool), ConnectError> {
        self.attached_by(&Config { autostart: false, ..self.inner.config.clone() }).await
    }

    async fn attached_by(&self, config: &Config) -> Result<(Connection, Arc<Attached>, bool), ConnectError> {
        let mut state = self.inner.state.lock().await;
        if let Some(open) = state.open.as_ref().filter(|open| !open.connection.is_lost()) {
            return Ok((open.connection.clone(), Arc::clone(&open.attached), false));
        }
        let (connection, attached) = connect(config, Some(&state.attach)).await?;
        let attached = Arc::new(attached.ok_or_else(|| deadline(config))?);
        state.open = Some(Open { connection: connection.clone(), attached: Arc::clone(&attached) });
        Ok((connection, attached, true))
    }

    /// The attached connection if there is one.
    pub async fn present(&self) -> Option<Connection> {
        let state = self.inner.state.lock().await;
        state.open.as_ref().filter(|open| !open.connection.is_lost()).map(|open| open.connection.clone())
    }

    /// Calls a method in the session.
    pub async fn call(&self, method: Method, params: &impl Serialize) -> Result<Box<RawValue>, CallError> {
        let (connection, _, _) = self.attached().await?;
        connection.call(method, params).await
    }
}

impl Connection {
    /// Finds a kernel, or starts one, and connects without attaching. Tries again while a kernel is being replaced,
    /// until the configuration's deadline.
    pub async fn find(config: &Config) -> Result<Connection, ConnectError> {
        connect(config, None).await.map(|(connection, _)| connection)
    }
}

fn deadline(config: &Config) -> ConnectError {
    ConnectError::Deadline { path: config.socket.clone() }
}

async fn connect(config: &Config, attach: Option<&Attach>) -> Result<(Connection, Option<Attached>), ConnectError> {
    let until = Instant::now() + config.deadline;
    let mut pause = FIRST_PAUSE;
    loop {
        let again = match timeout_at(until, attempt(config, attach)).await {
            Err(_) => return Err(deadline(config)),
            Ok(Ok(connected)) => return Ok(connected),
            Ok(Err(Attempt::Failed(error))) => return Err(error),
            Ok(Err(Attempt::Again(wait))) => wait,
        };
        if Instant::now() + pause >= until {
            return Err(deadline(config));
        }
        sleep(again.unwrap_or(pause).min(LAST_PAUSE)).await;
        pause = (pause * 2).min(LAST_PAUSE);
    }
}

enum Attempt {
    Failed(ConnectError),
    /// The kernel is being replaced; it may have said for how long.
    Again(Option<Duration>),
}

async fn attempt(config: &Config, attach: Option<&Attach>) -> Result<(Connection, Option<Attached>), Attempt> {
    let connection = reach(config).await.map_err(|error| match error {
        // A full backlog is answered this way on a socket that does not block.
        ConnectError::Socket { error, .. } if error.kind() == ErrorKind::WouldBlock => Attempt::Again(None),
        // A kernel somebody else is starting has its lock already and its socket not yet.
        ConnectError::Socket { error, .. } if nobody_listens(&error) => Attempt::Again(None),
        error => Attempt::Failed(error),
    })?;
    let Some(attach) = attach else { return Ok((connection, None)) };
    match connection.attach(attach).await {
        Ok(attached) => Ok((connection, Some(attached))),
        Err(CallError::Kernel(error)) if error.is(Code::Restarting) => Err(Attempt::Again(retry_after(&error))),
        Err(CallError::Kernel(error)) => Err(Attempt::Failed(ConnectError::Refused(error))),
        Err(CallError::Connect(error)) => Err(Attempt::Failed(error)),
        Err(CallError::Decode(detail)) => {
            Err(Attempt::Failed(ConnectError::Refused(RpcError::internal(format!("unreadable answer: {detail}")))))
        }
        Err(CallError::TooLarge { bytes }) => {
            let detail = format!("the attach request has {bytes} bytes");
            Err(Attempt::Failed(ConnectError::Refused(RpcError::internal(detail))))
        }
        Err(CallError::Lost) => Err(Attempt::Again(None)),
    }
}

fn retry_after(error: &RpcError) -> Option<Duration> {
    error.data.as_ref()?.get("retry_after_ms")?.as_u64().map(Duration::from_millis)
}

/// Connects to the configured socket, to the one the lock file names, or to a kernel started for it.
async fn reach(config: &Config) -> Result<Connection, ConnectError> {
    let first = match Connection::open(&config.socket).await {
        Err(ConnectError::Socket { error, .. }) if nobody_listens(&error) => open_named(config).await,
        other => return other,
    };
    match first {
        Some(connection) => Ok(connection),
        None if config.autostart => {
            let path = autostart::start(config).await?;
            Connection::open(&path).await
        }
        None => Err(ConnectError::NoKernel { path: config.socket.clone() }),
    }
}

pub(crate) fn nobody_listens(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

/// A kernel that runs on our state directory under another socket.
pub(crate) async fn open_named(config: &Config) -> Option<Connection> {
    let path = autostart::socket_in_lock(config.state_dir.as_deref()?)?;
    if path == config.socket {
        return None;
    }
    Connection::open(Path::new(&path)).await.ok()
}
