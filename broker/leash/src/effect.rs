//! What a program may do to the world, as derived from its source or met at a port.

use serde::{Deserialize, Serialize};

/// One effect. Paths are absolute and lexically normalised; `"*"` stands for unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Effect {
    /// Reads files or directories.
    FsRead {
        /// Which.
        paths: Vec<String>,
    },
    /// Makes or changes files or directories.
    FsWrite {
        /// Which.
        paths: Vec<String>,
    },
    /// Removes files or directories.
    FsDelete {
        /// Which.
        paths: Vec<String>,
    },
    /// Starts a program.
    ProcSpawn {
        /// BLAKE3 of the executable in hex; empty when it is not known yet.
        #[serde(default)]
        bin_hash: String,
        /// The program as named.
        argv0: String,
    },
    /// Connects to a host.
    NetConnect {
        /// Host name or address, `*` when unknown.
        host: String,
        /// Port, 0 when unknown.
        port: u16,
    },
    /// Listens on a port.
    NetListen {
        /// Port.
        port: u16,
    },
    /// Reads environment variables.
    EnvRead {
        /// Names; `*` is all.
        names: Vec<String>,
    },
    /// Sets environment variables.
    EnvWrite {
        /// Names; `*` is all.
        names: Vec<String>,
    },
    /// Uses secrets.
    SecretUse {
        /// Names; `*` is all.
        names: Vec<String>,
    },
    /// Changes the session: directory, watches.
    SessionWrite,
    /// Reads the journal.
    JournalRead,
    /// Reads the clock.
    Time,
    /// Something nobody can tell in advance.
    Opaque,
}

/// Kind of an effect, as spelt on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `fs_read`
    FsRead,
    /// `fs_write`
    FsWrite,
    /// `fs_delete`
    FsDelete,
    /// `proc_spawn`
    ProcSpawn,
    /// `net_connect`
    NetConnect,
    /// `net_listen`
    NetListen,
    /// `env_read`
    EnvRead,
    /// `env_write`
    EnvWrite,
    /// `secret_use`
    SecretUse,
    /// `session_write`
    SessionWrite,
    /// `journal_read`
    JournalRead,
    /// `time`
    Time,
    /// `opaque`
    Opaque,
}

/// Every kind with its wire spelling.
const SPELLINGS: [(Kind, &str); 13] = [
    (Kind::FsRead, "fs_read"),
    (Kind::FsWrite, "fs_write"),
    (Kind::FsDelete, "fs_delete"),
    (Kind::ProcSpawn, "proc_spawn"),
    (Kind::NetConnect, "net_connect"),
    (Kind::NetListen, "net_listen"),
    (Kind::EnvRead, "env_read"),
    (Kind::EnvWrite, "env_write"),
    (Kind::SecretUse, "secret_use"),
    (Kind::SessionWrite, "session_write"),
    (Kind::JournalRead, "journal_read"),
    (Kind::Time, "time"),
    (Kind::Opaque, "opaque"),
];

impl Kind {
    /// The kind of a spelling; `fs.write` counts as `fs_write`.
    pub fn parse(text: &str) -> Option<Self> {
        let wire = text.replacen('.', "_", 1);
        SPELLINGS.iter().find(|(_, name)| *name == wire).map(|(kind, _)| *kind)
    }

    /// Wire spelling.
    pub fn name(self) -> &'static str {
        SPELLINGS.iter().find(|(kind, _)| *kind == self).map_or("opaque", |(_, name)| name)
    }
}

impl Effect {
    /// The effect's kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::FsRead { .. } => Kind::FsRead,
            Self::FsWrite { .. } => Kind::FsWrite,
            Self::FsDelete { .. } => Kind::FsDelete,
            Self::ProcSpawn { .. } => Kind::ProcSpawn,
            Self::NetConnect { .. } => Kind::NetConnect,
            Self::NetListen { .. } => Kind::NetListen,
            Self::EnvRead { .. } => Kind::EnvRead,
            Self::EnvWrite { .. } => Kind::EnvWrite,
            Self::SecretUse { .. } => Kind::SecretUse,
            Self::SessionWrite => Kind::SessionWrite,
            Self::JournalRead => Kind::JournalRead,
            Self::Time => Kind::Time,
            Self::Opaque => Kind::Opaque,
        }
    }

    /// The effect in words, as plans and approvals show it.
    pub fn text(&self) -> String {
        match self {
            Self::FsRead { paths } => format!("read {}", paths.join(", ")),
            Self::FsWrite { paths } => format!("write {}", paths.join(", ")),
            Self::FsDelete { paths } => format!("delete {}", paths.join(", ")),
            Self::ProcSpawn { argv0, .. } => format!("spawn {argv0}"),
            Self::NetConnect { host, port } => format!("connect {host}:{port}"),
            Self::NetListen { port } => format!("listen {port}"),
            Self::EnvRead { names } => format!("read env {}", names.join(", ")),
            Self::EnvWrite { names } => format!("write env {}", names.join(", ")),
            Self::SecretUse { names } => format!("use secret {}", names.join(", ")),
            Self::SessionWrite => "change session".to_owned(),
            Self::JournalRead => "read journal".to_owned(),
            Self::Time => "clock".to_owned(),
            Self::Opaque => "opaque (effects unknown)".to_owned(),
        }
    }

    /// Nothing undoes it.
    pub fn is_irreversible(&self) -> bool {
        matches!(self, Self::Opaque | Self::NetConnect { .. } | Self::NetListen { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_shape_is_the_wire_shape() {
        let effect = Effect::NetConnect { host: "*".into(), port: 0 };
        let json = serde_json::to_string(&effect).expect("encodes");
        assert_eq!(json, r#"{"kind":"net_connect","host":"*","port":0}"#);
        assert_eq!(serde_json::from_str::<Effect>(&json).expect("decodes"), effect);
        assert_eq!(serde_json::to_string(&Effect::Opaque).expect("encodes"), r#"{"kind":"opaque"}"#);
    }

    #[test]
    fn both_spellings_name_a_kind() {
        assert_eq!(Kind::parse("fs.write"), Some(Kind::FsWrite));
        assert_eq!(Kind::parse("fs_write"), Some(Kind::FsWrite));
        assert_eq!(Kind::parse("fs.write.x"), None);
        for (kind, name) in SPELLINGS {
            assert_eq!(Kind::parse(name), Some(kind));
            assert_eq!(kind.name(), name);
        }
    }
}
