//! Locks: which file a tool was found to be, and the hash of its bytes.

use std::io;

use shoal_value::{PathValue, Str};
use toml::{Table, Value};

use super::{file_error, text_of, trouble};
use crate::host::{At, FileErrorKind, WriteMode};
use crate::machine::Machine;
use crate::unwind::Eval;

/// A locked tool.
#[derive(Clone, Debug)]
pub(crate) struct Locked {
    pub(crate) name: Str,
    pub(crate) version: Str,
    pub(crate) provider: Str,
    pub(crate) path: PathValue,
    /// Hash of the file, as text.
    pub(crate) blake3: Str,
    /// When it was chosen.
    pub(crate) resolved_at: Str,
}

impl Locked {
    /// The first eight characters of the hash.
    pub(crate) fn hash8(&self) -> &str {
        self.blake3.get(..8).unwrap_or(&self.blake3)
    }
}

/// The entries of a lock; none if there is no such file.
pub(crate) fn read(machine: &Machine, path: &PathValue) -> Eval<Vec<Locked>> {
    let Some(text) = text_of(machine, path)? else { return Ok(Vec::new()) };
    let wrong = |what: &str| trouble(format!("parsing lock {}: {what}", path.display()));
    let table: Table = text.parse().map_err(|error: toml::de::Error| wrong(error.message()))?;
    let tools = table.get("tool").and_then(Value::as_table).into_iter().flatten();
    let entries = tools.map(|(name, entry)| {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).map(Str::from);
        Some(Locked {
            name: name.as_str().into(),
            version: text("version")?,
            provider: text("provider")?,
            path: PathValue::from(&*text("path")?),
            blake3: text("blake3")?,
            resolved_at: text("resolved_at").unwrap_or_default(),
        })
    });
    entries.collect::<Option<Vec<_>>>().ok_or_else(|| wrong("an entry lacks version, provider, path or blake3").into())
}

/// Writes a lock.
pub(crate) fn write(machine: &Machine, path: &PathValue, entries: &[Locked]) -> Eval<()> {
    let text = |text: &str| Value::String(text.to_owned());
    let mut tools = Table::new();
    for entry in entries {
        let members = [
            ("name", text(&entry.name)),
            ("version", text(&entry.version)),
            ("provider", text(&entry.provider)),
            ("path", text(&entry.path.display())),
            ("blake3", text(&entry.blake3)),
            ("resolved_at", text(&entry.resolved_at)),
        ];
        let members = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        tools.insert(entry.name.to_string(), Value::Table(members));
    }
    let table = Table::from_iter([("tool".to_owned(), Value::Table(tools))]);
    let bytes = table.to_string();
    let at = At { dir: &machine.place.cwd, path: path.as_bytes() };
    let files = machine.session.host.files();
    files
        .write(at, WriteMode::Truncate, bytes.as_bytes(), &machine.run.cancel)
        .map_err(|error| file_error(machine, &error, path))
}

/// Whether the file still has the bytes that were locked.
pub(crate) fn intact(machine: &Machine, entry: &Locked) -> Eval<bool> {
    Ok(hash(machine, &entry.path)?.is_some_and(|hash| *hash == *entry.blake3))
}

/// The hash of a file; `None` if it cannot be read.
pub(crate) fn hash(machine: &Machine, path: &PathValue) -> Eval<Option<String>> {
    let at = At { dir: &machine.place.cwd, path: path.as_bytes() };
    let mut reader = match machine.session.host.files().open(at, &machine.run.cancel) {
        Ok(reader) => reader,
        Err(error) if error.kind == FileErrorKind::Cancelled => return Err(file_error(machine, &error, path)),
        Err(_) => return Ok(None),
    };
    let mut hasher = blake3::Hasher::new();
    Ok(io::copy(&mut reader, &mut hasher).ok().map(|_| hasher.finalize().to_hex().to_string()))
}
