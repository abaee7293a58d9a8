//! What a client says when it attaches, and what it is told.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use shoal_place::{Vars, is_session_var};

/// Parameters of `session.attach`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Attach {
    /// Session name.
    pub session: String,
    /// Owner of the session when it is not the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// What it enters.
    #[serde(skip_serializing_if = "Enter::is_usual")]
    pub enter: Enter,
    /// Bearer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// `{"kind", "tty", "name", …}`.
    pub client: Map<String, Value>,
    /// How the session is made if this creates it.
    pub create: Create,
}

/// What an attach enters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Enter {
    /// The session; it is made when there is none.
    #[default]
    Create,
    /// The session if there is one.
    Existing,
    /// None: for looking around and administration. Nothing is made.
    #[serde(rename = "none")]
    Nothing,
}

impl Enter {
    /// What a kernel takes for granted.
    fn is_usual(&self) -> bool {
        *self == Enter::Create
    }
}

/// How a new session is made.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Create {
    /// Its directory; the kernel's start directory when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Variables laid over the kernel's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

impl Attach {
    /// Attaches `kind` (`cli`, `mcp`, …) to `session`.
    pub fn new(session: &str, kind: &str) -> Attach {
        let client = [("kind".to_owned(), kind.into()), ("tty".to_owned(), false.into())].into_iter().collect();
        Attach { session: session.to_owned(), client, ..Attach::default() }
    }

    /// The same with the directory and allow-listed variables of this process for a session it creates.
    #[must_use]
    pub fn created_here(mut self, vars: &Vars, also: &[String]) -> Attach {
        let here = std::env::current_dir().ok().and_then(|dir| dir.to_str().map(str::to_owned));
        self.create = Create { cwd: here, env: allowed_env(vars, also) };
        self
    }
}

/// The allow-listed variables among `vars` that are UTF-8.
pub fn allowed_env(vars: &Vars, also: &[String]) -> BTreeMap<String, String> {
    vars.texts()
        .filter(|(name, _)| is_session_var(name, also))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Result of `session.attach`, as far as clients act on it; `all` has every member.
#[derive(Clone, Debug)]
pub struct Attached {
    /// Session name; empty when no session was entered.
    pub session: String,
    /// Its owner, or who the connection acts as.
    pub owner: String,
    /// Who the connection acts as.
    pub principal: String,
    /// Whether this attach made the session.
    pub created: bool,
    /// Protocol number of the kernel.
    pub protocol: u64,
    /// The policy's `approve`: `"human"`, `"self"`, `"client"` or `true`.
    pub approve: Value,
    /// The whole result.
    pub all: Value,
}

impl Attached {
    pub(crate) fn decode(text: &str) -> Result<Attached, serde_json::Error> {
        #[derive(Deserialize)]
        struct Raw {
            session: Option<String>,
            owner: String,
            principal: String,
            created: bool,
            protocol: u64,
        }
        let all: Value = serde_json::from_str(text)?;
        let raw: Raw = serde_json::from_str(text)?;
        let approve = all.pointer("/caps/approve").cloned().unwrap_or(Value::Null);
        let Raw { session, owner, principal, created, protocol } = raw;
        let session = session.unwrap_or_default();
        Ok(Attached { session, owner, principal, created, protocol, approve, all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_allow_listed_variables_are_handed_on() {
        let vars = Vars::from_pairs(&[
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("SHOAL_TOKEN", "x"),
            ("AWS_KEY", "y"),
            ("MY_A", "z"),
        ]);
        let env = allowed_env(&vars, &["MY_*".to_owned()]);
        assert_eq!(env.keys().collect::<Vec<_>>(), ["LC_ALL", "MY_A", "PATH"]);
    }

    #[test]
    fn requests_carry_only_what_is_set() {
        let attach = serde_json::to_value(Attach::new("s", "cli")).unwrap();
        assert_eq!(attach, serde_json::json!({"session":"s","client":{"kind":"cli","tty":false},"create":{}}));
        let around = Attach { enter: Enter::Nothing, ..Attach::default() };
        assert_eq!(serde_json::to_value(around).unwrap()["enter"], "none");
    }
}
