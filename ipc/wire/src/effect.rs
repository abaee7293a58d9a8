//! Names of effects and their two spellings.

/// Every effect kind, as records spell it.
pub const KINDS: &[&str] = &[
    "fs_read",
    "fs_write",
    "fs_delete",
    "proc_spawn",
    "net_connect",
    "net_listen",
    "env_read",
    "env_write",
    "secret_use",
    "session_write",
    "journal_read",
    "time",
    "opaque",
];

/// The kind that `name` spells: `fs_write`, or `fs.write` as people write it.
pub fn kind(name: &str) -> Option<&'static str> {
    KINDS.iter().copied().find(|kind| *kind == name || spoken(kind) == name)
}

/// The human spelling: the first underscore becomes a dot.
pub fn spoken(kind: &str) -> String {
    kind.replacen('_', ".", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_name_the_kind() {
        assert_eq!(kind("fs.write"), Some("fs_write"));
        assert_eq!(kind("fs_write"), Some("fs_write"));
        assert_eq!(kind("opaque"), Some("opaque"));
        assert_eq!(kind("fs-write"), None);
        assert_eq!(spoken("journal_read"), "journal.read");
    }
}
