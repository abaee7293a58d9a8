//! From the globs of a section to directories and files that exist: what the system can enforce.
//!
//! Lowering never grants more than the globs, but for a look at where the session starts. A trailing `/**` is a whole
//! tree; a `*` or `?` in a component is expanded to what exists now; `**` anywhere else has no tree of its own, and the
//! policy compiler refuses it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use shoal_proto::section::Section;
use shoal_proto::supervisor_broker::Lane;
use shoal_proto::supervisor_launcher::Access;

#[cfg(target_os = "linux")]
use crate::holes;

/// Existing paths one section may expand to.
const MAX_ROOTS: usize = 900;

/// What a session may do where: paths without symbolic links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Roots(pub(crate) BTreeMap<PathBuf, Access>);

impl Roots {
    /// The roots of a section and of the approved effects of a lane.
    pub(crate) fn new(section: &Section, lane: Option<&Lane>) -> Self {
        let mut roots = Self::default();
        let lists = [
            (&section.fs_read, Access::READ.and(Access::EXECUTE)),
            (&section.fs_write, Access::WRITE),
            (&section.fs_delete, Access::DELETE),
        ];
        for (list, access) in lists {
            for glob in list.as_slice() {
                for path in expand(glob.as_str()) {
                    roots.add(path, access);
                }
            }
        }
        if let Some(lane) = lane {
            for path in lane.read.as_slice() {
                roots.add_nearest(Path::new(path.as_str()), Access::READ.and(Access::EXECUTE));
            }
            for path in lane.write.as_slice() {
                let access = Access::READ.and(Access::WRITE).and(Access::DELETE);
                roots.add_nearest(Path::new(path.as_str()), access);
            }
        }
        roots
    }

    #[cfg(target_os = "linux")]
    /// The directory a session starts in can be seen in its private `/tmp`, also without a grant. Directories that programs
    /// keep their control sockets in cannot: a socket that is seen can be used.
    pub(crate) fn show_start(&mut self, cwd: &Path, hidden: &[PathBuf]) {
        let covered = self.0.keys().any(|root| cwd.starts_with(root)) || hidden.iter().any(|dir| cwd.starts_with(dir));
        if !covered && holes::may_come_along(cwd) {
            self.add(cwd.to_owned(), Access::READ.and(Access::EXECUTE));
        }
    }

    fn add(&mut self, path: PathBuf, access: Access) {
        if self.0.len() < MAX_ROOTS || self.0.contains_key(&path) {
            let slot = self.0.entry(path).or_default();
            *slot = slot.and(access);
        }
    }

    /// A path that does not exist yet is granted through the directory it would be made in.
    fn add_nearest(&mut self, path: &Path, access: Access) {
        let found = std::fs::canonicalize(path).or_else(|_| std::fs::canonicalize(path.parent().unwrap_or(path)));
        if let Ok(path) = found {
            self.add(path, access);
        }
    }

    #[cfg(target_os = "linux")]
    /// The whole file system is granted in one way at least, so the view is the host's, with holes.
    pub(crate) fn has_root(&self) -> bool {
        self.0.contains_key(Path::new("/"))
    }

    #[cfg(target_os = "linux")]
    /// Whether anything may be changed at or below a path, or above it.
    pub(crate) fn may_change(&self, path: &Path) -> bool {
        let changes = |access: &Access| access.has(Access::WRITE) || access.has(Access::DELETE);
        self.0.iter().any(|(root, access)| changes(access) && (path.starts_with(root) || root.starts_with(path)))
    }
}

/// The existing paths that a glob covers with everything below them.
fn expand(glob: &str) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("/")];
    let mut parts = glob.split('/').filter(|part| !part.is_empty()).peekable();
    while let Some(part) = parts.next() {
        if part == "**" {
            // Everything below: only as the last part is that a tree.
            return if parts.peek().is_none() { resolved(&found) } else { Vec::new() };
        }
        found = if part.contains(['*', '?']) {
            found.iter().flat_map(|dir| matches_in(dir, part)).take(MAX_ROOTS).collect()
        } else {
            found.into_iter().map(|dir| dir.join(part)).collect()
        };
    }
    resolved(&found)
}

fn matches_in(dir: &Path, pattern: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    let mut names: Vec<_> = names.filter(|name| name.to_str().is_some_and(|name| fits(pattern, name))).collect();
    names.sort();
    names.into_iter().map(|name| dir.join(name)).collect()
}

/// `*` and `?` within one component.
fn fits(pattern: &str, name: &str) -> bool {
    let mut rest = name;
    let mut pieces = pattern.split('*').peekable();
    let mut first = true;
    while let Some(piece) = pieces.next() {
        let at = if first {
            starts(rest, piece).map(|_| 0)
        } else if pieces.peek().is_none() {
            let len: usize = rest.chars().rev().take(piece.chars().count()).map(char::len_utf8).sum();
            rest.len()
                .checked_sub(len)
                .filter(|&at| rest.get(at..).is_some_and(|tail| starts(tail, piece) == Some(tail.len())))
        } else {
            rest.char_indices().map(|(at, _)| at).chain([rest.len()]).find(|&at| starts(&rest[at..], piece).is_some())
        };
        let Some(at) = at else { return false };
        let Some(len) = rest.get(at..).and_then(|tail| starts(tail, piece)) else { return false };
        rest = rest.get(at + len..).unwrap_or_default();
        first = false;
    }
    rest.is_empty() || pattern.ends_with('*')
}

/// How many bytes of `text` the piece takes at its start; `?` takes one character.
fn starts(text: &str, piece: &str) -> Option<usize> {
    let mut chars = text.char_indices();
    for wanted in piece.chars() {
        let (_, got) = chars.next()?;
        if wanted != '?' && wanted != got {
            return None;
        }
    }
    Some(chars.next().map_or(text.len(), |(at, _)| at))
}

fn resolved(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().filter_map(|path| std::fs::canonicalize(path).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_match_like_shell_words() {
        for (pattern, name, fit) in [
            ("*", "x", true),
            ("*.rs", "a.rs", true),
            ("*.rs", ".rs", true),
            ("*.rs", "a.rs.bak", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxcyyb", false),
            ("a?c", "abc", true),
            ("a?c", "aéc", true),
            ("a?c", "ac", false),
            ("abc", "abcd", false),
            ("*é", "caffé", true),
        ] {
            assert_eq!(fits(pattern, name), fit, "{pattern} {name}");
        }
    }

    #[test]
    fn globs_become_trees_that_exist() {
        let dir = std::env::temp_dir().join(format!("shoal-lower-{}", std::process::id()));
        for name in ["a1/x", "a2/x", "b/x"] {
            std::fs::create_dir_all(dir.join(name)).unwrap();
        }
        let dir = std::fs::canonicalize(&dir).unwrap();
        std::os::unix::fs::symlink(dir.join("b"), dir.join("link")).unwrap();
        let glob = |tail: &str| expand(&format!("{}/{tail}", dir.display()));
        assert_eq!(glob("a*/x/**"), [dir.join("a1/x"), dir.join("a2/x")]);
        assert_eq!(glob("**"), std::slice::from_ref(&dir));
        assert_eq!(glob("link/**"), [dir.join("b")], "links are resolved");
        assert!(glob("nowhere/**").is_empty());
        assert!(glob("**/x").is_empty(), "no tree of its own");
        assert_eq!(expand("/**"), [PathBuf::from("/")]);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
