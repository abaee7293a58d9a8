//! Versions and constraints.

use std::cmp::Ordering;

/// Whether any version will do.
pub(super) fn is_any(constraint: &str) -> bool {
    matches!(constraint, "*" | "latest")
}

/// Whether a version satisfies a constraint: a numeric one as its first parts, another as its first letters. An unknown
/// version satisfies only a constraint that takes any.
pub(super) fn satisfies(version: Option<&str>, constraint: &str) -> bool {
    if is_any(constraint) {
        return true;
    }
    let Some(version) = version.map(plain) else { return false };
    let constraint = plain(constraint);
    let Some(rest) = version.strip_prefix(constraint) else { return false };
    let numeric = constraint.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    !numeric || rest.is_empty() || rest.starts_with(['.', '-', '+'])
}

/// Whether some version could satisfy both.
pub(super) fn agree(a: &str, b: &str) -> bool {
    is_any(a) || is_any(b) || satisfies(Some(a), b) || satisfies(Some(b), a)
}

/// The order of versions by their numbers; an unknown one is the lowest.
pub(super) fn order(a: Option<&str>, b: Option<&str>) -> Ordering {
    a.map(numbers).cmp(&b.map(numbers))
}

fn plain(version: &str) -> &str {
    match version.strip_prefix('v') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => rest,
        _ => version,
    }
}

fn numbers(version: &str) -> Vec<u64> {
    plain(version).split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraints_are_prefixes() {
        for (version, constraint, holds) in [
            ("18.2.0", "18", true),
            ("v18.2.0", "18.2", true),
            ("18", "v18", true),
            ("180.1", "18", false),
            ("18.20", "18.2", false),
            ("18-rc1", "18", true),
            ("lts-iron", "lts", true),
            ("1.0", "*", true),
            ("1.0", "latest", true),
            ("1.0", "^1", false),
        ] {
            assert_eq!(satisfies(Some(version), constraint), holds, "{version} {constraint}");
        }
        assert!(satisfies(None, "*") && !satisfies(None, "1"));
    }

    #[test]
    fn constraints_that_one_version_can_satisfy_agree() {
        assert!(agree("18", "18.2") && agree("*", "22") && agree("v3", "3.1"));
        assert!(!agree("18", "22") && !agree("18.1", "18.2"));
    }

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        assert_eq!(order(Some("1.10"), Some("1.9")), Ordering::Greater);
        assert_eq!(order(Some("v2"), Some("2")), Ordering::Equal);
        assert_eq!(order(None, Some("0.1")), Ordering::Less);
    }
}
