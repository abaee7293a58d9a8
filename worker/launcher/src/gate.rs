//! The spawn gate: opens a program once, judges it, and hands on exactly what was judged.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use shoal_leash::{SpawnVerdict, judge_spawn};
use shoal_proto::section::Section;

/// A program that may start. Only [`open`] makes one.
#[derive(Debug)]
pub(crate) struct Passed {
    program: Program,
}

/// How a passed program is executed.
#[derive(Debug)]
pub(crate) enum Program {
    /// By the descriptor that was hashed: the list names hashes, so the file must not change in between.
    Opened(File),
    /// By its path: nothing pins the contents, and a script needs its own name as `$0`.
    Named,
}

impl Passed {
    /// How to execute it.
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }
}

/// Why a program does not start.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// It cannot be opened.
    Open(io::Error),
    /// The section does not let it start; the reason is for people.
    Denied(String),
}

/// Opens and judges a program. `argv0` is its name as the command has it.
pub(crate) fn open(section: &Section, path: &[u8], argv0: &[u8]) -> Result<Passed, Stopped> {
    let path = Path::new(OsStr::from_bytes(path));
    let argv0 = String::from_utf8_lossy(argv0);
    if section.proc_spawn.as_slice().is_empty() {
        return Ok(Passed { program: Program::Named });
    }
    if judge_spawn(section, &argv0, "") == SpawnVerdict::Allow {
        return Ok(Passed { program: Program::Named });
    }
    let mut file = open_program(path).map_err(Stopped::Open)?;
    let (hash, script) = hash(&mut file).map_err(Stopped::Open)?;
    match judge_spawn(section, &argv0, &hash) {
        SpawnVerdict::Deny { why } => Err(Stopped::Denied(why)),
        // Its interpreter would open it again by name, after the hash was taken.
        SpawnVerdict::Allow if script => {
            Err(Stopped::Denied(format!("{argv0} is a script pinned by its hash; a script is pinned by its name")))
        }
        SpawnVerdict::Allow => Ok(Passed { program: Program::Opened(file) }),
    }
}

/// Opens a regular file and nothing else: a pipe would hold up the launcher until somebody writes into it, and a device has no
/// end.
fn open_program(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::from_raw_os_error(libc::EACCES)) }
}

/// BLAKE3 in lower-case hexadecimal digits, and whether the file begins like a script.
fn hash(file: &mut File) -> io::Result<(String, bool)> {
    let mut hasher = blake3::Hasher::new();
    let mut head = Vec::new();
    file.by_ref().take(2).read_to_end(&mut head)?;
    hasher.update(&head);
    hasher.update_reader(file)?;
    Ok((hasher.finalize().to_hex().to_string(), head == b"#!"))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests write the programs they pin")]
mod tests {
    use super::*;
    use shoal_proto::{List, Text};

    fn section(entries: &[&str]) -> Section {
        let entries: Vec<_> = entries.iter().map(|e| Text::new(*e).expect("fits")).collect();
        Section { proc_spawn: List::new(entries).expect("fits"), ..Section::default() }
    }

    #[test]
    fn a_pinned_hash_executes_what_was_hashed() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("tool");
        std::fs::write(&path, b"\x7fELF not really").expect("written");
        let pin = blake3::hash(b"\x7fELF not really").to_hex().to_string();
        let passed = open(&section(&[&pin]), path.as_os_str().as_bytes(), b"tool").expect("pinned");
        assert!(matches!(passed.program(), Program::Opened(_)));
        std::fs::write(&path, b"\x7fELF swapped").expect("written");
        let stopped = open(&section(&[&pin]), path.as_os_str().as_bytes(), b"tool");
        assert!(matches!(stopped, Err(Stopped::Denied(_))));
    }

    #[test]
    fn a_script_needs_a_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("s.sh");
        std::fs::write(&path, b"#!/bin/sh\n").expect("written");
        let pin = blake3::hash(b"#!/bin/sh\n").to_hex().to_string();
        assert!(matches!(open(&section(&[&pin]), path.as_os_str().as_bytes(), b"s.sh"), Err(Stopped::Denied(_))));
        assert!(open(&section(&["s.sh"]), path.as_os_str().as_bytes(), b"s.sh").is_ok());
    }

    #[test]
    fn a_missing_program_says_so() {
        let stopped = open(&section(&["other"]), b"/no/such/program", b"program");
        assert!(matches!(stopped, Err(Stopped::Open(e)) if e.kind() == io::ErrorKind::NotFound));
    }
}
