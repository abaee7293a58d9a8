//! The content store: bytes by the BLAKE3 hash of their plain form. Small ones are in the database, larger ones are
//! compressed files, written beside their place and renamed.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{OptionalExtension as _, params};

use crate::chain::{self, Digest};
use crate::error::JournalError;
use crate::fs;
use crate::store::Store;

/// Blobs up to this are stored in the database, in the transaction of their row: no file, no sync of their own.
pub const INLINE_MAX: usize = 16 * 1024;
/// Most plain bytes one read gives back.
const READ_MAX: u64 = 64 * 1024 * 1024;
/// zstd level of small and complete blobs; captures use 1.
const LEVEL: i32 = 3;

/// A stored blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// Plain length.
    pub len: u64,
    /// The bytes asked for.
    pub bytes: Vec<u8>,
}

/// A blob that was written beside the store and taken into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adopted {
    /// BLAKE3 of its plain bytes.
    pub hash: Digest,
    /// Plain length.
    pub len: u64,
    /// Length of its file.
    pub stored: u64,
}

pub(crate) fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

fn file_of(dir: &Path, hash: &Digest) -> PathBuf {
    let hex = chain::hex(hash);
    dir.join("cas").join(&hex[..2]).join(&hex[2..4]).join(format!("{hex}.zst"))
}

impl Store {
    /// Stores bytes and returns their hash. Storing the same bytes again stores nothing.
    pub fn put_blob(&mut self, bytes: &[u8]) -> Result<Digest, JournalError> {
        let hash = *blake3::hash(bytes).as_bytes();
        if self.has_blob(&hash)? {
            return Ok(hash);
        }
        if bytes.len() <= INLINE_MAX {
            self.insert_blob(&hash, bytes.len() as u64, Some(bytes))?;
        } else {
            let mut writer = Writer::new(&self.dir, LEVEL)?;
            writer.write(bytes)?;
            self.adopt_blob(writer)?;
        }
        Ok(hash)
    }

    /// Takes a finished writer's file as a blob.
    pub fn adopt_blob(&mut self, writer: Writer) -> Result<Adopted, JournalError> {
        let done = writer.finish()?;
        let path = file_of(&self.dir, &done.hash);
        if let Some(parent) = path.parent() {
            make_dirs(&self.dir, parent)?;
        }
        std::fs::rename(&done.temp, &path)?;
        self.unsynced.push(path);
        if !self.has_blob(&done.hash)? {
            self.insert_blob(&done.hash, done.stored, None)?;
        }
        Ok(Adopted { hash: done.hash, len: done.len, stored: done.stored })
    }

    /// Whether bytes of this hash are stored.
    pub fn has_blob(&self, hash: &Digest) -> Result<bool, JournalError> {
        let found = self.db.prepare_cached("SELECT 1 FROM blob WHERE hash = ?1")?.query_row(params![hash], |_| Ok(()));
        Ok(found.optional()?.is_some())
    }

    fn insert_blob(&self, hash: &Digest, stored: u64, data: Option<&[u8]>) -> Result<(), JournalError> {
        let stored = i64::try_from(stored).unwrap_or(i64::MAX);
        self.db
            .prepare_cached(
                "INSERT INTO blob (hash, stored_len, created_ns, last_access_ns, data) VALUES (?1, ?2, ?3, ?3, ?4)",
            )?
            .execute(params![hash, stored, now_ns(), data])?;
        Ok(())
    }

    /// Reads a range of a blob's plain bytes, at most 64 MiB. The whole blob is hashed again: damage is an error.
    pub fn blob(&self, hash: &Digest, offset: u64, length: u64) -> Result<Blob, JournalError> {
        let data: Option<Option<Vec<u8>>> = self
            .db
            .prepare_cached("SELECT data FROM blob WHERE hash = ?1")?
            .query_row(params![hash], |r| r.get(0))
            .optional()?;
        let length = length.min(READ_MAX);
        let blob = match data {
            None => return Err(JournalError::Unknown("blob")),
            Some(Some(bytes)) => {
                if blake3::hash(&bytes).as_bytes() != hash {
                    return Err(JournalError::Damaged(chain::hex(hash)));
                }
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let end = start.saturating_add(usize::try_from(length).unwrap_or(usize::MAX)).min(bytes.len());
                Blob { len: bytes.len() as u64, bytes: bytes.get(start..end).unwrap_or_default().to_vec() }
            }
            Some(None) => read_file(&file_of(&self.dir, hash), hash, offset, length)?,
        };
        Ok(blob)
    }

    /// Notes that a blob was read, for collection.
    pub fn touch_blob(&mut self, hash: &Digest) -> Result<(), JournalError> {
        self.db
            .prepare_cached("UPDATE blob SET last_access_ns = ?2 WHERE hash = ?1")?
            .execute(params![hash, now_ns()])?;
        Ok(())
    }

    /// Forgets a blob. Its file goes after the commit, see [`Store::remove_forgotten`].
    pub(crate) fn delete_blob(&mut self, hash: &Digest) -> Result<(), JournalError> {
        self.db.prepare_cached("DELETE FROM blob WHERE hash = ?1")?.execute(params![hash])?;
        self.forgotten.push(*hash);
        Ok(())
    }

    /// Removes the files of blobs that are forgotten for good: those that were not stored again meanwhile, and whose
    /// transaction was not rolled back. A file that stays is no blob any more and does no harm.
    pub(crate) fn remove_forgotten(&mut self) {
        for hash in std::mem::take(&mut self.forgotten) {
            if self.has_blob(&hash).unwrap_or(true) {
                continue;
            }
            if let Err(e) = std::fs::remove_file(file_of(&self.dir, &hash))
                && e.kind() != std::io::ErrorKind::NotFound
            {
                eprintln!("shoal-broker: collected blob stays: {e}");
            }
        }
        if std::mem::take(&mut self.orphans_due)
            && let Err(e) = self.sweep_orphans()
        {
            eprintln!("shoal-broker: files that no blob names stay: {e}");
        }
    }
}

fn read_file(path: &Path, hash: &Digest, offset: u64, length: u64) -> Result<Blob, JournalError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(JournalError::Unknown("blob")),
        Err(e) => return Err(e.into()),
    };
    let damaged = || JournalError::Damaged(chain::hex(hash));
    let mut decoder = zstd::stream::read::Decoder::new(file).map_err(|_| damaged())?;
    let mut hasher = blake3::Hasher::new();
    let mut bytes = Vec::new();
    let mut len = 0u64;
    let mut chunk = vec![0; 128 * 1024];
    let end = offset.saturating_add(length);
    loop {
        let got = decoder.read(&mut chunk).map_err(|_| damaged())?;
        let Some(part) = chunk.get(..got).filter(|p| !p.is_empty()) else { break };
        hasher.update(part);
        let start = len;
        len = len.saturating_add(got as u64);
        if len > offset && start < end {
            let from = usize::try_from(offset.saturating_sub(start)).unwrap_or(0);
            let to = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX).min(got);
            bytes.extend_from_slice(part.get(from..to).unwrap_or_default());
        }
    }
    if hasher.finalize().as_bytes() != hash {
        return Err(damaged());
    }
    Ok(Blob { len, bytes })
}

/// Makes `cas/xx/yy` private, level by level.
fn make_dirs(root: &Path, dir: &Path) -> Result<(), JournalError> {
    use std::os::unix::fs::DirBuilderExt as _;
    if dir == root || dir.is_dir() {
        return Ok(());
    }
    if let Some(parent) = dir.parent() {
        make_dirs(root, parent)?;
    }
    match std::fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => Err(e.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Syncs blob files and the directories that name them; those that could not be synced stay in the list.
pub(crate) fn sync_files(files: &mut Vec<PathBuf>) -> Result<(), JournalError> {
    while let Some(path) = files.last() {
        fs::sync_file(path)?;
        if let Some(parent) = path.parent() {
            File::open(parent)?.sync_all()?;
        }
        files.pop();
    }
    Ok(())
}

/// A blob being written: hashed and compressed as it comes, in memory bounded by the compressor. Usable on any thread.
/// Dropped before [`Store::adopt_blob`], it leaves nothing behind.
pub struct Writer {
    temp: TempFile,
    encoder: Option<zstd::stream::write::Encoder<'static, File>>,
    hasher: blake3::Hasher,
    len: u64,
}

/// A private file beside the blobs, under a name of its own.
fn temp_file(dir: &Path) -> Result<(PathBuf, File), JournalError> {
    let temps = dir.join("cas").join("tmp");
    make_dirs(dir, &temps)?;
    let mut name = [0u8; 16];
    File::open("/dev/urandom")?.read_exact(&mut name)?;
    let path = temps.join(name.iter().map(|b| format!("{b:02x}")).collect::<String>());
    let file = fs::create_private(&path)?;
    Ok((path, file))
}

/// A private file beside the blobs that is gone when it is closed.
pub(crate) fn nameless(dir: &Path) -> Result<File, JournalError> {
    let (path, file) = temp_file(dir)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

/// Removes its file unless it was taken.
#[derive(Debug)]
struct TempFile(PathBuf);

impl Drop for TempFile {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty()
            && let Err(e) = std::fs::remove_file(&self.0)
            && e.kind() != std::io::ErrorKind::NotFound
        {
            eprintln!("shoal-broker: cannot remove {}: {e}", self.0.display());
        }
    }
}

/// A finished file.
struct Done {
    temp: PathBuf,
    hash: Digest,
    len: u64,
    stored: u64,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("temp", &self.temp.0).field("len", &self.len).finish_non_exhaustive()
    }
}

impl Writer {
    /// Starts a blob in the state directory's content store.
    pub fn new(dir: &Path, level: i32) -> Result<Self, JournalError> {
        let (path, file) = temp_file(dir)?;
        let encoder = zstd::stream::write::Encoder::new(file, level)?;
        Ok(Self { temp: TempFile(path), encoder: Some(encoder), hasher: blake3::Hasher::new(), len: 0 })
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), JournalError> {
        let Some(encoder) = &mut self.encoder else { return Err(JournalError::Invalid("blob is finished".to_owned())) };
        encoder.write_all(bytes)?;
        self.hasher.update(bytes);
        self.len = self.len.saturating_add(bytes.len() as u64);
        Ok(())
    }

    /// Hash of the plain bytes so far.
    #[cfg(test)]
    pub(crate) fn hash(&self) -> Digest {
        *self.hasher.finalize().as_bytes()
    }

    /// Plain bytes so far.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Nothing was written yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn finish(mut self) -> Result<Done, JournalError> {
        let Some(encoder) = self.encoder.take() else {
            return Err(JournalError::Invalid("blob is finished".to_owned()));
        };
        let mut file = encoder.finish()?;
        let stored = file.seek(SeekFrom::End(0))?;
        let temp = std::mem::take(&mut self.temp.0);
        Ok(Done { temp, hash: *self.hasher.finalize().as_bytes(), len: self.len, stored })
    }
}
