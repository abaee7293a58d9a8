//! The fixed words of the language.

/// Reserved words.
pub const KEYWORDS: &[&str] = &[
    "let", "var", "fn", "alias", "use", "export", "return", "break", "continue", "if", "else", "match", "for", "in",
    "while", "try", "catch", "with", "spawn", "true", "false", "null",
];

/// Names of programs whose source may stand in a block.
pub const INTERPRETERS: &[&str] = &[
    "sh",
    "bash",
    "zsh",
    "fish",
    "python",
    "python3",
    "node",
    "deno",
    "ruby",
    "perl",
    "php",
    "lua",
    "jq",
    "Rscript",
    "osascript",
];

/// Records of builtin functions and constants.
pub const NAMESPACES: &[&str] = &["json", "yaml", "toml", "csv", "math", "http", "os", "config", "secret"];

/// Builtin names that start an expression although nothing binds them.
pub const VALUE_NAMES: &[&str] = &["now", "today", "path", "glob", "regex"];

/// Builtin commands.
pub const COMMANDS: &[&str] = &[
    "echo", "ls", "stat", "cat", "head", "mkdir", "touch", "cp", "mv", "rm", "ln", "pwd", "cd", "env", "which",
    "sleep", "assert", "save", "source", "run", "exit", "quit", "jobs", "plan", "apply", "explain", "undo", "journal",
    "history", "pushd", "popd", "dirs", "j", "jump", "interact", "open", "reef",
];

/// Builtin functions.
pub const FUNCTIONS: &[&str] = &[
    "path",
    "glob",
    "regex",
    "range",
    "now",
    "today",
    "assert",
    "raise",
    "parallel",
    "retry",
    "run",
    "save",
    "open",
    "list_resources",
    "read_resource",
    "watch_start",
    "watch_stop",
    "watch_list",
    "call_tool",
    "channel",
    "every",
    "watch",
    "tail",
    "on",
];

/// Heads that keep the rest of the line as a parsed command.
pub(crate) const COMMAND_TAKERS: &[&str] = &["plan", "interact"];

/// Words of other shells that stand where Shoal has a brace.
pub(crate) const BLOCK_WORDS: &[&str] = &["then", "fi", "do", "done", "elif", "esac"];

pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

pub(crate) fn is_interpreter(word: &str) -> bool {
    INTERPRETERS.contains(&word)
}

pub(crate) fn is_namespace(word: &str) -> bool {
    NAMESPACES.contains(&word)
}

/// The candidate closest to `word`: at most two edits for words of five letters or more, else one.
pub(crate) fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let limit = if word.chars().count() >= 5 { 2 } else { 1 };
    candidates
        .into_iter()
        .map(|candidate| (edit_distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= limit && *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance in characters.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_allows_two_edits_only_in_long_words() {
        assert_eq!(nearest("strng", ["int", "str", "stream"]), Some("str"));
        assert_eq!(nearest("flot", ["float", "int"]), Some("float"));
        assert_eq!(nearest("fxxt", ["float", "int"]), None);
        assert_eq!(nearest("datetme", ["datetime", "time"]), Some("datetime"));
    }
}
