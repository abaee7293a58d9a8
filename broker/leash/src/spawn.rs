//! The spawn gate's rule: which programs a section lets start.

use shoal_proto::section::Section;

/// Answer of the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpawnVerdict {
    /// The program may start.
    Allow,
    /// It may not.
    Deny {
        /// What is missing, in words.
        why: String,
    },
}

/// Judges one program: an entry is the full hash of the executable, the exact argv0, or its basename. An empty list
/// pins nothing. `hash` may be empty while it is not known; then only names count.
pub fn judge_spawn(section: &Section, argv0: &str, hash: &str) -> SpawnVerdict {
    let list = section.proc_spawn.as_slice();
    let base = argv0.rsplit('/').next().unwrap_or(argv0);
    let listed = |entry: &str| entry == argv0 || entry == base || (!hash.is_empty() && entry == hash);
    if list.is_empty() || list.iter().any(|entry| listed(entry)) {
        return SpawnVerdict::Allow;
    }
    SpawnVerdict::Deny { why: format!("proc_spawn does not list {argv0}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_proto::{List, Text};

    #[test]
    fn hash_argv0_or_basename() {
        let pins = ["git", "/opt/x", &"ab".repeat(32)].map(|e| Text::new(e).expect("fits"));
        let section = Section { proc_spawn: List::new(pins).expect("fits"), ..Section::default() };
        assert_eq!(judge_spawn(&section, "/usr/bin/git", ""), SpawnVerdict::Allow);
        assert_eq!(judge_spawn(&section, "/opt/x", ""), SpawnVerdict::Allow);
        assert_eq!(judge_spawn(&section, "other", &"ab".repeat(32)), SpawnVerdict::Allow);
        assert!(matches!(judge_spawn(&section, "other", ""), SpawnVerdict::Deny { .. }));
        assert_eq!(judge_spawn(&Section::default(), "anything", ""), SpawnVerdict::Allow);
    }
}
