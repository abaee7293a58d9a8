//! Inverses of file changes: what is recorded when a file is changed, and how it is taken back.
//!
//! An inverse names the file by its absolute path, says what it was before and carries a fingerprint of what the change
//! made of it. It is carried out only while the fingerprint still holds; a file that is already as it was is left alone.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawMode};
use serde::{Deserialize, Serialize};
use shoal_eval::host::At;
use shoal_value::{ErrorValue, code};

use super::dir::resolve;
use super::{BASE, transfer};

/// Bytes of a file that are kept to restore it; they travel in one message, encoded. A longer one has no inverse.
const MAX_PRIOR: u64 = 8 * 1024 * 1024;

/// Takes inverses where they are kept.
pub(crate) trait Recorder: Send + Sync {
    /// Whether this thread belongs to an entry of the journal.
    fn is_open(&self) -> bool;

    /// Keeps one.
    fn record(&self, op: &str, inverse: &Inverse);
}

/// What a path was, or is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Known {
    /// Nothing.
    Absent,
    /// A file of these contents.
    File {
        /// BLAKE3 of the contents.
        hash: String,
        /// Length in bytes.
        size: u64,
    },
    /// A directory.
    Dir,
    /// A symbolic link, by its target.
    Link {
        /// Target, base64.
        target: String,
    },
    /// Something else, or a file that is too long to be compared.
    Other,
}

/// One change, to be taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Inverse {
    /// The path that was changed, base64.
    path: String,
    /// What it was.
    before: Known,
    /// Contents and mode of the file it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    prior: Option<(String, RawMode)>,
    /// What it became.
    after: Known,
    /// Where it was moved to, base64: taking it back moves it from there.
    #[serde(skip_serializing_if = "Option::is_none")]
    moved_to: Option<String>,
}

/// A path before a change.
pub(crate) struct Before {
    path: Vec<u8>,
    known: Known,
    prior: Option<(Vec<u8>, RawMode)>,
}

impl Before {
    /// Looks at a path that is going to be changed; nothing if it cannot be restored.
    pub(super) fn of(at: At<'_>) -> Option<Self> {
        let path = resolve(at).ok()?;
        let known = look(&path);
        let prior = match known {
            Known::File { .. } => Some(contents(&path)?),
            Known::Absent | Known::Dir | Known::Link { .. } => None,
            Known::Other => return None,
        };
        Some(Self { path, known, prior })
    }

    /// The inverse, once the change is made.
    pub(super) fn changed(self) -> Inverse {
        Inverse {
            after: look(&self.path),
            path: STANDARD.encode(&self.path),
            before: self.known,
            prior: self.prior.map(|(bytes, mode)| (STANDARD.encode(bytes), mode)),
            moved_to: None,
        }
    }

    /// The inverse of having been replaced by a file that is moved away again first.
    pub(super) fn replaced(self) -> Inverse {
        Inverse { after: Known::Absent, ..self.changed() }
    }

    /// The inverse of a move away from this path.
    pub(super) fn moved(self, to: &[u8]) -> Inverse {
        let Self { path, known, .. } = self;
        Inverse {
            path: STANDARD.encode(path),
            before: known,
            prior: None,
            after: look(to),
            moved_to: Some(STANDARD.encode(to)),
        }
    }
}

impl Inverse {
    /// Refuses what would touch anything outside `root`, or reach it by a symbolic link. A trash may lie anywhere: what is
    /// taken out of it was below the root before.
    pub(crate) fn stays_below(&self, root: &[u8]) -> Result<(), ErrorValue> {
        let root = super::dir::normal(root);
        let moved_to = self.moved_to.as_deref().map(decode).transpose()?.map(|to| super::dir::normal(&to));
        let from_trash = moved_to.as_deref().is_some_and(super::trash::holds);
        let path = super::dir::normal(&decode(&self.path)?);
        for path in std::iter::once(path).chain(moved_to.filter(|_| !from_trash)) {
            let shown = String::from_utf8_lossy(&path).into_owned();
            let below = path.strip_prefix(&*root).and_then(|rest| rest.strip_prefix(b"/"));
            let Some(below) = below else {
                let text = format!("{shown} lies outside {}; nothing was undone", String::from_utf8_lossy(&root));
                return Err(ErrorValue::new(code::PERMISSION, text));
            };
            let mut parent = root.clone();
            let parts: Vec<&[u8]> = below.split(|b| *b == b'/').collect();
            for part in parts.iter().take(parts.len().saturating_sub(1)) {
                parent.push(b'/');
                parent.extend_from_slice(part);
                if matches!(look(&parent), Known::Link { .. }) {
                    let text = format!("{} is a symbolic link; nothing was undone", String::from_utf8_lossy(&parent));
                    return Err(ErrorValue::new(code::PERMISSION, text));
                }
            }
        }
        Ok(())
    }

    /// Takes the change back. The text says what was done; nothing if it is as it was already.
    pub(crate) fn carry_out(&self) -> Result<Option<String>, ErrorValue> {
        let path = decode(&self.path)?;
        let shown = String::from_utf8_lossy(&path).into_owned();
        let failed = |e: std::io::Error| ErrorValue::new(code::IO_ERROR, format!("undo of {shown}: {e}"));
        let stale = || {
            ErrorValue::new(code::STALE_UNDO, format!("{shown} has changed since"))
                .with_hint("what is there now is newer than what would be undone: move it away first")
        };
        if let Some(to) = &self.moved_to {
            let to = decode(to)?;
            return match (look(&path), look(&to)) {
                (Known::Absent, there) if there == self.after => {
                    transfer::move_back(&to, &path).map_err(|e| failed(std::io::Error::other(e.text)))?;
                    Ok(Some(format!("moved back {shown}")))
                }
                (back, _) if back == self.before && back != Known::Absent => Ok(None),
                _ => Err(stale()),
            };
        }
        let now = look(&path);
        if now == self.before {
            return Ok(None);
        }
        if now != self.after {
            return Err(stale());
        }
        match (&self.before, &self.prior) {
            (Known::File { .. }, Some((bytes, mode))) => {
                let bytes = decode(bytes)?;
                restore(&path, &bytes, *mode).map_err(failed)?;
                Ok(Some(format!("restored {shown}")))
            }
            (Known::Absent, _) => {
                let flags = if now == Known::Dir { AtFlags::REMOVEDIR } else { AtFlags::empty() };
                rustix::fs::unlinkat(CWD, &*path, flags).map_err(|e| failed(e.into()))?;
                Ok(Some(format!("removed {shown}")))
            }
            _ => Err(stale()),
        }
    }
}

fn decode(text: &str) -> Result<Vec<u8>, ErrorValue> {
    STANDARD.decode(text).map_err(|e| ErrorValue::new(code::IO_ERROR, format!("a damaged inverse: {e}")))
}

/// What a path is now.
fn look(path: &[u8]) -> Known {
    let Ok(stat) = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) else { return Known::Absent };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Known::Dir,
        FileType::Symlink => match rustix::fs::readlinkat(CWD, path, Vec::new()) {
            Ok(target) => Known::Link { target: STANDARD.encode(target.as_bytes()) },
            Err(_) => Known::Other,
        },
        FileType::RegularFile => match contents(path) {
            Some((bytes, _)) => {
                Known::File { hash: blake3::hash(&bytes).to_hex().to_string(), size: bytes.len() as u64 }
            }
            None => Known::Other,
        },
        _ => Known::Other,
    }
}

/// Contents and mode of a file that is not too long.
fn contents(path: &[u8]) -> Option<(Vec<u8>, RawMode)> {
    use std::io::Read as _;
    let flags = BASE | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let fd = rustix::fs::openat(CWD, path, flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&fd).ok()?;
    let mut bytes = Vec::new();
    std::fs::File::from(fd).take(MAX_PRIOR + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MAX_PRIOR).then_some((bytes, stat.st_mode & 0o7777))
}

fn restore(path: &[u8], bytes: &[u8], mode: RawMode) -> std::io::Result<()> {
    use std::io::Write as _;
    let flags = BASE | OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
    let fd = rustix::fs::openat(CWD, path, flags, Mode::from_raw_mode(mode))?;
    let mut file = std::fs::File::from(fd);
    file.write_all(bytes)?;
    Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?)
}
