//! What a plan is bound to besides its effects: the programs its commands start, the scripts they are given, and the
//! session names its source reaches.

use shoal_value::{PathValue, Str, Value};

use super::Effect;
use super::derive::Deriver;
use super::known::Known;
use crate::code::Code;
use crate::command::{AliasValue, Found, find_program};
use crate::native::NativeFunction;
use crate::scope::{Binding, BindingKind};
use crate::vm::Lambda;

/// Programs whose argument is a program: what they run is in the file, not in them.
const INTERPRETERS: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "ash",
    "ksh",
    "mksh",
    "zsh",
    "fish",
    "python",
    "node",
    "deno",
    "bun",
    "ruby",
    "perl",
    "lua",
    "php",
    "Rscript",
    "osascript",
    "tclsh",
    "pwsh",
    "awk",
    "gawk",
    "mawk",
    "make",
    "gmake",
];

/// A derivation with everything a plan is bound to.
pub struct Claimed {
    /// Effects in order of first appearance.
    pub effects: Vec<Effect>,
    /// Programs its commands resolve to, in order of first appearance.
    pub programs: Vec<Started>,
    /// Existing or missing files that are the program of an interpreter or of this language, absolute.
    pub scripts: Vec<PathValue>,
    /// Session names it reaches, sorted by name.
    pub names: Vec<Reached>,
}

/// A program that a source may start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// The head as written.
    pub head: Str,
    /// Where it is found now.
    pub path: Option<PathValue>,
}

/// A session name that a source reaches, directly or through functions.
pub struct Reached {
    /// The name.
    pub name: Str,
    /// `let`, `var`, `fn`, `alias` or `use`.
    pub kind: &'static str,
    /// Its value.
    pub value: Value,
    /// For a function or alias its text, and the values it closes over.
    pub source: Option<(Str, Vec<Value>)>,
}

impl Reached {
    pub(super) fn new(name: Str, binding: Binding) -> Self {
        let kind = match binding.kind {
            BindingKind::Let => "let",
            BindingKind::Var => "var",
            BindingKind::Fn => "fn",
            BindingKind::Alias => "alias",
            BindingKind::Use => "use",
        };
        let source = source_of(&binding.value);
        Self { name, kind, value: binding.value, source }
    }
}

/// The text a closure or alias was made from, and what it closes over.
fn source_of(value: &Value) -> Option<(Str, Vec<Value>)> {
    let lambda: &Lambda = match value {
        Value::Closure(callable) => match shoal_value::handle::concrete::<NativeFunction>(&**callable) {
            Some(native) => return Some((native.row.name.into(), Vec::new())),
            None => shoal_value::handle::concrete(&**callable)?,
        },
        Value::Command(alias) => &shoal_value::handle::concrete::<AliasValue>(&**alias)?.lambda,
        _ => return None,
    };
    let captured = lambda.captures.iter().map(|cell| cell.lock().clone().unwrap_or(Value::Null));
    Some((text_of(&lambda.code).into(), captured.collect()))
}

fn text_of(code: &Code) -> &str {
    let at = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
    code.unit.source.get(at(code.place.start)..at(code.place.end)).unwrap_or_default()
}

impl Deriver<'_> {
    /// A command starts a program with these words. A redirected input of an interpreter is its program too.
    pub(super) fn starts(&mut self, head: &str, args: &[Known], input: Option<&str>) {
        if !self.binds {
            return;
        }
        let named = if head.contains('/') || head.starts_with('~') { self.path(Some(head)) } else { head.into() };
        let path = match find_program(self.machine, &named) {
            Ok(Found::Program(path)) => Some(path),
            Ok(Found::Refused(_) | Found::Nothing) | Err(_) => None,
        };
        let started = Started { head: head.into(), path };
        if !self.programs.contains(&started) {
            self.programs.push(started);
        }
        let mut words = std::iter::once(Some(head.to_owned())).chain(args.iter().map(Known::text));
        // `nice sh s.sh`: the interpreter may stand behind another program.
        if words.by_ref().any(|word| word.is_some_and(|word| is_interpreter(&word))) {
            let rest: Vec<String> = words.flatten().collect();
            for word in rest.iter().map(String::as_str).chain(input) {
                let path = self.path(Some(word));
                if self.is_file(&path) {
                    self.leans_on(&path);
                    break;
                }
            }
        }
    }

    /// The program of an interpreter's block.
    pub(super) fn starts_language(&mut self, tool: &str) {
        if !self.binds {
            return;
        }
        let heads: &[&str] = if tool == "python" { &["python", "python3"] } else { &[tool] };
        let found = |head: &&&str| matches!(find_program(self.machine, head), Ok(Found::Program(_)));
        let head = heads.iter().find(found).copied().unwrap_or(tool);
        self.starts(head, &[], None);
    }

    /// What happens depends on what is in this file.
    pub(super) fn leans_on(&mut self, path: &str) {
        let path = PathValue::from(path);
        if self.binds && !self.scripts.contains(&path) {
            self.scripts.push(path);
        }
    }

    fn is_file(&self, path: &str) -> bool {
        let at = crate::host::At { dir: &self.machine.place.cwd, path: path.as_bytes() };
        let meta = self.machine.session.host.files().meta(at, true);
        meta.is_ok_and(|meta| meta.kind == crate::host::FileKind::File)
    }
}

/// Whether a word names an interpreter: its last part, without a version (`/usr/bin/python3.12`).
fn is_interpreter(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::is_interpreter;

    #[test]
    fn interpreters_are_known_by_their_last_part_without_version() {
        for word in ["sh", "/bin/sh", "python3.12", "/usr/bin/perl", "lua5.4"] {
            assert!(is_interpreter(word), "{word}");
        }
        for word in ["", "./s.sh", "git", "/", "shellcheck"] {
            assert!(!is_interpreter(word), "{word}");
        }
    }
}
