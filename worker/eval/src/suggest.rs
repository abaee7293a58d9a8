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

/// Methods of other languages, and what has their work here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("length", "len"),
    ("size", "len"),
    ("isEmpty", "is_empty"),
    ("empty", "is_empty"),
    ("strip", "trim"),
    ("lstrip", "trim_start"),
    ("rstrip", "trim_end"),
    ("lowercase", "lower"),
    ("uppercase", "upper"),
    ("to_lowercase", "lower"),
    ("to_uppercase", "upper"),
    ("toLowerCase", "lower"),
    ("toUpperCase", "upper"),
    ("has", "contains"),
    ("has_key", "contains"),
    ("include", "contains"),
    ("includes", "contains"),
    ("entries", "items"),
    ("pairs", "items"),
    ("foreach", "each"),
    ("forEach", "each"),
    ("for_each", "each"),
    ("inject", "reduce"),
    ("average", "avg"),
    ("mean", "avg"),
    ("unique", "uniq"),
    ("dedup", "uniq"),
    ("distinct", "uniq"),
    ("position", "index_of"),
    ("nth", "get"),
];

/// What to write instead of a command of other shells or a statement of other languages.
pub(crate) fn command(head: &str) -> Option<&'static str> {
    Some(match head {
        "not" => "write !x",
        "and" => "write `a && b`",
        "or" => "write `a || b`",
        "set" => "write `let name = value`, or `env.NAME = \"value\"`",
        "unset" => "write `env.NAME = null`",
        "eval" => "write `source FILE`, or `sh { ... }`",
        "local" | "declare" | "typeset" | "readonly" | "const" => {
            "write `let name = value`, or `var name = value` for one that changes"
        }
        "switch" | "case" => "write `match v { \"a\" => x; _ => y }`",
        "import" | "require" | "include" => "write `use ./file`, or `source FILE`",
        "print" | "println" | "puts" => "write `echo (x)`; a program's last value is shown",
        "throw" => "write `raise(\"what went wrong\")`",
        "read" => "a file is read by `path(\"f\").read`, the output of a command by `(cmd).text`",
        "type" | "command" | "hash" => "write `which NAME`, and `^NAME` for the program of that name",
        "exec" => "write the command itself; `exit` ends the program",
        "trap" => "write `try { ... } catch e { ... }`",
        "shift" => "`args` is a list: `args.skip(1)`",
        "wait" => "write `t.await()` for a task `t`",
        "fg" | "bg" => "`jobs` lists the tasks; `t.await()` waits for one",
        name => return value(name).or_else(|| punctuation(name)),
    })
}

/// What to write instead of the name of a value in other languages.
pub(crate) fn value(name: &str) -> Option<&'static str> {
    Some(match name {
        "None" | "nil" | "NULL" | "undefined" => "write `null`",
        "True" | "TRUE" => "write `true`",
        "False" | "FALSE" => "write `false`",
        "argv" | "ARGV" => "the arguments of a script are the list `args`",
        _ => return None,
    })
}

fn punctuation(head: &str) -> Option<&'static str> {
    match head.as_bytes().last()? {
        b':' => Some("`{` opens a block here: a record stands in parentheses, `({a: 1})`"),
        b'=' => Some("an empty value is written `NAME=\"\"`"),
        _ => None,
    }
}

/// The hint for a method no type has.
pub(crate) fn method(recv: &Value, name: &str) -> Option<String> {
    let own: Vec<&str> = standard().method_names(Types::of(recv)).collect();
    let has = |name: &str| own.contains(&name);
    let mean = |name: &str| Some(format!("did you mean .{name}()?"));
    match name {
        "push" if has("map") => return Some("lists are immutable: write `list + [item]`".to_owned()),
        "substring" | "substr" if has("slice") => {
            return Some("write `.take(n)` and `.slice(a, b)`".to_owned());
        }
        "to_string" | "toString" if !matches!(recv, Value::Str(_)) => {
            return Some("\"{x}\" is the text of any value".to_owned());
        }
        "read" | "exists" | "is_file" | "is_dir" if matches!(recv, Value::Str(_)) => {
            return Some(format!("a str is no path: write `path(x).{name}`"));
        }
        _ => {}
    }
    let same = ELSEWHERE.iter().find(|(known, ours)| *known == name && has(ours));
    if let Some((_, ours)) = same {
        return mean(ours);
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
