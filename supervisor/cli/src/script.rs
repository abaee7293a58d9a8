//! Scripts: `shoal FILE ARGS`, `shoal -c SOURCE ARGS`, and `shoal -` for a source on standard input. They need no kernel.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

/// The words that make the launcher run a script, if the command line (the program's own name first) is one.
///
/// A first word is a file if it has a slash or ends in `.shl`; any other is a command of `shoal`.
pub(crate) fn of(words: &[OsString]) -> Option<Vec<OsString>> {
    let (first, rest) = words.get(1..)?.split_first()?;
    let mut script = vec![OsString::from("--local")];
    match first.to_str() {
        Some("-c") if rest.is_empty() => return None,
        Some("-c" | "-") => {}
        _ if is_file(first) => script.push("--script".into()),
        _ => return None,
    }
    script.push(first.clone());
    script.extend_from_slice(rest);
    Some(script)
}

fn is_file(word: &OsStr) -> bool {
    let word = word.as_bytes();
    !word.starts_with(b"-") && (word.contains(&b'/') || word.ends_with(b".shl"))
}

#[cfg(test)]
mod tests {
    use super::of;

    fn words(line: &str) -> Option<String> {
        let words: Vec<_> = line.split(' ').map(Into::into).collect();
        Some(of(&words)?.join(std::ffi::OsStr::new(" ")).into_string().expect("text"))
    }

    #[test]
    fn scripts_are_told_from_commands() {
        for (line, script) in [
            ("shoal build.shl a b", Some("--local --script build.shl a b")),
            ("shoal ./build --json", Some("--local --script ./build --json")),
            ("shoal -c 1+1 a", Some("--local -c 1+1 a")),
            ("shoal -", Some("--local -")),
            ("shoal -c", None),
            ("shoal", None),
            ("shoal status", None),
            ("shoal --socket=/run/x status", None),
            ("shoal exec a/b", None),
        ] {
            assert_eq!(words(line).as_deref(), script, "{line}");
        }
    }
}
