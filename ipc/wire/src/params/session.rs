//! `session.attach` and the methods that address a session by name.

use std::collections::BTreeMap;

use serde_json::Value;

use super::exec::Note;
use super::{Int, Member, SessionName, Text, params, words};
use crate::error::RpcError;

/// A principal: 1 to 128 bytes without control characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal(pub String);

impl Member for Principal {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        let name = String::read(param, text)?;
        if (1..=128).contains(&name.len()) && !name.chars().any(char::is_control) {
            return Ok(Principal(name));
        }
        Err(RpcError::out_of_range(param, "1 to 128 bytes without control characters"))
    }
}

/// What a client says of itself: an open object of which two members mean something.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientInfo {
    /// Free text; `mcp` is never the human.
    pub kind: String,
    /// Whether escapes in renders are wanted.
    pub tty: bool,
    /// Name of the client, shown as `client:<name>` in decisions made through it.
    pub name: Option<String>,
}

impl Member for ClientInfo {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        let Value::Object(members) = Value::read(param, text)? else {
            return Err(RpcError::mistyped(param, "an object"));
        };
        let string = |name: &str| match members.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(RpcError::mistyped(&format!("{param}.{name}"), "a string")),
        };
        let tty = match members.get("tty") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(tty)) => *tty,
            Some(_) => return Err(RpcError::mistyped(&format!("{param}.tty"), "true or false")),
        };
        let name = match members.get("name") {
            Some(Value::String(name)) => Some(name.clone()),
            _ => None,
        };
        Ok(ClientInfo { kind: string("kind")?.unwrap_or_default(), tty, name })
    }
}

/// A count or size from 1.
pub type Positive = Int<1, { i64::MAX }>;

params! {
    /// Limits a new session is given on top of its policy's.
    #[derive(Eq, Default)]
    Limits {
        /// Bytes of memory.
        opt memory: Positive,
        /// Processes.
        opt pids: Positive,
        /// CPU seconds of one process.
        opt cpu_seconds: Positive,
        /// Open files of one process.
        opt open_files: Positive,
        /// Bytes of output of one execution.
        opt output: Positive,
    }
}

params! {
    /// How a session is made when an attach creates it.
    #[derive(Eq, Default)]
    Create {
        /// Absolute path of its directory.
        opt cwd: String,
        /// Variables laid over the start environment.
        def env: BTreeMap<String, String> = BTreeMap::new(),
        /// Lower limits.
        def limits: Limits = Limits::default(),
    }
}

words! {
    /// What an attach enters.
    Enter {
        /// The session; it is made when there is none.
        Create = "create",
        /// The session if there is one.
        Existing = "existing",
        /// None: the connection acts as its principal and makes nothing.
        Nothing = "none",
    }
}

params! {
    /// `session.attach`.
    Attach {
        /// Session name; `default` when absent.
        opt session: SessionName,
        /// Owner when it is not the caller.
        opt owner: Principal,
        /// Whether a session is entered at all, and made for it.
        def enter: Enter = Enter::Create,
        /// Bearer.
        opt token: Text<0, 256>,
        /// The client's account of itself.
        def client: ClientInfo = ClientInfo::default(),
        /// Used only when the session is created.
        def create: Create = Create::default(),
    }
}

params! {
    /// `session.kill`.
    #[derive(Eq)]
    SessionKill {
        /// Session name.
        req session: SessionName,
        /// Its owner; the caller when absent.
        opt owner: Principal,
        /// Reason for the record.
        opt reason: Note,
    }
}

params! {
    /// `session.freeze` and `session.thaw`.
    #[derive(Eq)]
    SessionPick {
        /// Session name.
        req session: SessionName,
        /// Its owner; the caller when absent.
        opt owner: Principal,
    }
}
