//! Short references and the URIs they stand for.

use std::fmt;

use crate::uri::{SCHEME, Uri};

/// A reference to something a kernel keeps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ref {
    /// `out:N`, a transcript value of the session.
    Out(u64),
    /// `val:blake3:HEX64`, a stored blob by its digest (lowercase hex).
    Val(String),
    /// `task:N`.
    Task(u64),
    /// `plan:HEX32`; opaque to clients.
    Plan(String),
    /// `pty:N`.
    Pty(u64),
    /// `last`, the newest `out` of the connection.
    Last,
}

impl Ref {
    /// Reads a short reference, or the URI of one without a query. Readers accept a URI that repeats the prefix.
    pub fn parse(text: &str) -> Option<Ref> {
        if text == "last" {
            return Some(Ref::Last);
        }
        match text.strip_prefix(SCHEME) {
            Some(rest) if !rest.contains('?') => {
                let uri = Uri::parse(text).ok()?;
                let [name] = uri.segments.as_slice() else { return None };
                Ref::of(&uri.root, name)
            }
            Some(_) => None,
            None => {
                let (kind, name) = text.split_once(':')?;
                Ref::of(kind, name)
            }
        }
    }

    /// The reference of `kind` (`out`, `val`, `task`, `plan`, `approval`, `pty`) named `name`, with or without its prefix.
    pub fn of(kind: &str, name: &str) -> Option<Ref> {
        let bare = name.strip_prefix(kind).and_then(|rest| rest.strip_prefix(':')).unwrap_or(name);
        match kind {
            "out" => number(bare).map(Ref::Out),
            "task" => number(bare).map(Ref::Task),
            "pty" => number(bare).map(Ref::Pty),
            "val" => {
                let hash = bare.strip_prefix("blake3:").unwrap_or(bare);
                is_hex(hash, 64).then(|| Ref::Val(hash.to_owned()))
            }
            "plan" | "approval" => {
                let id = bare.strip_prefix("plan:").unwrap_or(bare);
                is_hex(id, 32).then(|| Ref::Plan(id.to_owned()))
            }
            _ => None,
        }
    }

    /// The URI that names the same thing; `last` has none.
    pub fn uri(&self) -> Option<String> {
        let (kind, name) = match self {
            Ref::Out(n) => ("out", n.to_string()),
            Ref::Task(n) => ("task", n.to_string()),
            Ref::Pty(n) => ("pty", n.to_string()),
            Ref::Val(hash) => ("val", format!("blake3:{hash}")),
            Ref::Plan(id) => ("plan", id.clone()),
            Ref::Last => return None,
        };
        Some(format!("{SCHEME}{kind}/{name}"))
    }

    /// The URI with a path into the value, as refs to elided parts carry it.
    pub fn uri_with_path(&self, path: Option<&str>) -> Option<String> {
        let uri = self.uri()?;
        Some(match path {
            Some(path) => format!("{uri}?path={}", Uri::escape(path)),
            None => uri,
        })
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ref::Out(n) => write!(f, "out:{n}"),
            Ref::Task(n) => write!(f, "task:{n}"),
            Ref::Pty(n) => write!(f, "pty:{n}"),
            Ref::Val(hash) => write!(f, "val:blake3:{hash}"),
            Ref::Plan(id) => write!(f, "plan:{id}"),
            Ref::Last => f.write_str("last"),
        }
    }
}

/// A decimal number without sign or leading zero, at least 1: ids count from there.
fn number(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    if plain { text.parse().ok() } else { None }
}

/// Whether `text` is exactly `digits` lowercase hex digits.
pub fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn uris_and_repeated_prefixes() {
        let plan = "9b1f6c0e4d7a4c33a1e05b7d2f8890ce";
        assert_eq!(Ref::parse("shoal://out/8"), Some(Ref::Out(8)));
        assert_eq!(Ref::parse("shoal:///out//8/"), Some(Ref::Out(8)));
        assert_eq!(Ref::parse("shoal://pty/pty:3"), Some(Ref::Pty(3)));
        assert_eq!(Ref::parse(&format!("shoal://plan/plan:{plan}")), Some(Ref::Plan(plan.into())));
        assert_eq!(Ref::parse(&format!("shoal://approval/plan:{plan}")), Some(Ref::Plan(plan.into())));
        assert_eq!(Ref::parse(&format!("shoal://val/{}", "a".repeat(64))), Some(Ref::Val("a".repeat(64))));
        for bad in
            ["out:0", "out:01", "out:-1", "out:", "val:blake3:aa", "shoal://out/1?path=x", "x:1", "out", "plan:XY"]
        {
            assert_eq!(Ref::parse(bad), None, "{bad}");
        }
        assert_eq!(Ref::Out(8).uri_with_path(Some("a b")).as_deref(), Some("shoal://out/8?path=a%20b"));
    }

    proptest! {
        #[test]
        fn refs_and_uris_name_each_other(n in 1u64.., hash in "[0-9a-f]{64}", id in "[0-9a-f]{32}") {
            for reference in [Ref::Out(n), Ref::Task(n), Ref::Pty(n), Ref::Val(hash), Ref::Plan(id)] {
                prop_assert_eq!(Ref::parse(&reference.to_string()), Some(reference.clone()));
                prop_assert_eq!(Ref::parse(&reference.uri().unwrap()), Some(reference));
            }
        }
    }
}
