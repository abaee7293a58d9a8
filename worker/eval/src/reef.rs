//! Which program the name of a tool means here: manifests say which version is wanted, a lock which file that is.
//!
//! A manifest is a file of the working directory or of one above it; a `with reef:` block stands before all of them. A name
//! that none of them mentions is looked up on PATH as ever, and so is a head with a slash. The host says whether manifests
//! count at all ([`crate::host::Host::reads_manifests`]).

pub(crate) mod edit;
pub(crate) mod lock;
pub(crate) mod manifest;
pub(crate) mod providers;
pub(crate) mod scopes;
mod version;

use shoal_value::{ErrorValue, PathValue, Str, code};

use crate::ctx::join_path;
use crate::host::{At, FileError, FileErrorKind};
use crate::machine::Machine;
use crate::unwind::{Eval, Stop, Unwind};
use scopes::{Demand, Scopes};

/// Manifests and locks are small; a longer file is none.
const LONGEST: u64 = 1 << 20;

/// The constraints of a `with reef:` block, and of those around it.
#[derive(Debug)]
pub(crate) struct Overlay {
    pub(crate) tools: Vec<(Str, Str)>,
    pub(crate) outer: Option<std::sync::Arc<Overlay>>,
}

/// The file that `head` means by manifest and lock; `None` if no manifest mentions it.
pub(crate) fn locate(machine: &Machine, head: &str) -> Eval<Option<PathValue>> {
    if !machine.session.host.reads_manifests() {
        return Ok(None);
    }
    let scopes = Scopes::here(machine)?;
    match scopes.demand(head)? {
        None => Ok(None),
        Some(demand) => locked(machine, &scopes, &demand).map(Some),
    }
}

/// The words that run a file of this extension, if a manifest names them.
pub(crate) fn runner(machine: &Machine, extension: &str) -> Eval<Option<Vec<Str>>> {
    if !machine.session.host.reads_manifests() {
        return Ok(None);
    }
    Ok(Scopes::here(machine)?.runner(extension))
}

fn locked(machine: &Machine, scopes: &Scopes, demand: &Demand) -> Eval<PathValue> {
    let name = &demand.name;
    let Some(entry) = scopes.locked(machine, demand)? else {
        let text = format!("`{name}` is wanted as {} and is not locked", demand.constraint);
        return Err(ErrorValue::new(code::REEF_UNLOCKED, text).with_hint("`reef lock` chooses and locks it").into());
    };
    if !lock::intact(machine, &entry)? {
        let text = format!("{}: not the bytes that were locked for `{name}`", entry.path.display());
        return Err(ErrorValue::new(code::REEF_DRIFT, text)
            .with_hint("`reef doctor` shows what changed, `reef lock --refresh` locks what is there now")
            .into());
    }
    Ok(entry.path)
}

/// The directory and those above it, innermost first.
pub(crate) fn ancestors(dir: &PathValue) -> Vec<PathValue> {
    let mut found = vec![dir.clone()];
    let mut rest = dir.as_bytes();
    while let Some(at) = rest.iter().rposition(|byte| *byte == b'/').filter(|_| rest.len() > 1) {
        rest = &rest[..at.max(1)];
        found.push(PathValue::from(rest));
    }
    found
}

/// `name` in `dir`.
pub(crate) fn child(dir: &PathValue, name: &str) -> PathValue {
    join_path(dir, &PathValue::from(name))
}

/// The text of a small file; `None` if it is not there or cannot be read here.
pub(crate) fn text_of(machine: &Machine, path: &PathValue) -> Eval<Option<String>> {
    let at = At { dir: &machine.place.cwd, path: path.as_bytes() };
    match machine.session.host.files().read(at, LONGEST, &machine.run.cancel) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if matches!(error.kind, FileErrorKind::Cancelled | FileErrorKind::CwdGone) => {
            Err(file_error(machine, &error, path))
        }
        Err(_) => Ok(None),
    }
}

/// The failure of a file operation.
pub(crate) fn file_error(machine: &Machine, error: &FileError, path: &PathValue) -> Unwind {
    match (error.kind, machine.run.cancel.reason()) {
        (FileErrorKind::Cancelled, Some(reason)) => Stop::Cancelled(reason).into(),
        _ => error.about(path.as_bytes()).into(),
    }
}

/// The error where the host reads no manifests.
pub(crate) fn off(what: &str) -> ErrorValue {
    let hint = "a script reads manifests where SHOAL_REEF=1 is set; `which NAME` tells which program a name means, and \
                `with env: {PATH: ...} { ... }` chooses another";
    ErrorValue::new(code::CUSTOM, format!("{what} is not available here")).with_hint(hint)
}

/// Trouble with a manifest, a lock or a provider.
pub(crate) fn trouble(text: impl Into<String>) -> ErrorValue {
    ErrorValue::new(code::REEF_PROVIDER, text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_end_at_the_root() {
        let shown = |path: &str| -> Vec<String> {
            ancestors(&PathValue::from(path)).iter().map(|dir| dir.display().into_owned()).collect()
        };
        assert_eq!(shown("/a/b"), ["/a/b", "/a", "/"]);
        assert_eq!(shown("/"), ["/"]);
    }
}
