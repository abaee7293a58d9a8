//! Suggestions for names that do not exist.

use shoal_value::Value;

use crate::registry::{Types, standard};

/// The candidate nearest to `name`: at most two edits away for names of five or more letters, else one, and fewer edits
/// than the name has letters.
pub(crate) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    let letters = name.chars().count();
    let reach = if letters >= 5 { 2 } else { 1 };
    candidates
        .filter(|candidate| *candidate != name)
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(edits, _)| *edits <= reach && *edits < letters)
        .min()
        .map(|(_, candidate)| candidate.to_owned())
}

/// The hint for a method no type has.
pub(crate) fn method(recv: &Value, name: &str) -> Option<String> {
    let own: Vec<&str> = standard().method_names(Types::of(recv)).collect();
    let has = |name: &str| own.contains(&name);
    let mean = |name: &str| Some(format!("did you mean .{name}()?"));
    match name {
        "length" | "size" if has("len") => return mean("len"),
        "push" if has("map") => return Some("lists are immutable: write `list + [item]`".to_owned()),
        "substring" | "substr" if has("slice") => {
            return Some("write `.take(n)` and `.slice(a, b)`".to_owned());
        }
        _ => {}
    }
    if let Some(plain) = name.strip_prefix("to_").filter(|plain| has(plain)) {
        return mean(plain);
    }
    if let Some(near) = nearest(name, own.iter().copied()) {
        return mean(&near);
    }
    let (head, _) = name.split_once('_')?;
    has(head).then(|| format!("did you mean .{head}()?"))
}

/// Edits between two texts: insertions, deletions, replacements and swaps of neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > 2 {
        return usize::MAX;
    }
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + same);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_edits() {
        assert_eq!(distance("sort", "sort"), 0);
        assert_eq!(distance("srot", "sort"), 1);
        assert_eq!(distance("tirm", "trim"), 1);
        assert_eq!(distance("kitten", "sitten"), 1);
    }

    #[test]
    fn short_names_have_a_short_reach() {
        assert_eq!(nearest("sl", ["ls"].into_iter()), Some("ls".to_owned()));
        assert_eq!(nearest("x", ["y"].into_iter()), None);
        assert_eq!(nearest("maps", ["mkdir"].into_iter()), None);
    }
}
