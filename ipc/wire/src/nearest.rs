//! The known name that a mistyped one was meant to be.

/// The name among `known` nearest to `given`: one that it begins or that begins it, else the one with the fewest edits
/// as long as that is less than half of the longer name.
pub fn nearest<'k>(given: &str, known: &[&'k str]) -> Option<&'k str> {
    let scored = known.iter().filter_map(|name| {
        let prefix = !given.is_empty() && (name.starts_with(given) || given.starts_with(name));
        let edits = distance(given, name);
        let close = edits.saturating_mul(2) < given.chars().count().max(name.chars().count());
        (prefix || close).then_some((edits, *name))
    });
    scored.min_by_key(|(edits, _)| *edits).map(|(_, name)| name)
}

fn distance(left: &str, right: &str) -> usize {
    // Names are short; a peer's long one is compared by its beginning.
    let left: Vec<char> = left.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=left.len()).collect();
    for (j, r) in right.chars().enumerate() {
        let mut diagonal = j;
        let mut before = j.saturating_add(1);
        let mut next = vec![before];
        for (l, above) in left.iter().zip(row.iter().skip(1)) {
            let cost = diagonal.saturating_add(usize::from(*l != r));
            let best = cost.min(above.saturating_add(1)).min(before.saturating_add(1));
            diagonal = *above;
            before = best;
            next.push(best);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_prefixes_and_typos_and_nothing_else() {
        let known = ["src", "timeout_ms", "deadline_ms", "key"];
        assert_eq!(nearest("timeout", &known), Some("timeout_ms"));
        assert_eq!(nearest("sorc", &known), Some("src"));
        assert_eq!(nearest("deadlin_ms", &known), Some("deadline_ms"));
        assert_eq!(nearest("x", &known), None);
        assert_eq!(nearest("", &known), None);
    }

    #[test]
    fn distance_is_levenshtein() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }
}
