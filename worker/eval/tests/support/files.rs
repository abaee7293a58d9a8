//! The file port of the test host, through the standard library.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use shoal_eval::cancel::CancelToken;
use shoal_eval::host::{At, Dir, Entry, FileError, FileErrorKind, FileKind, Files, Meta, WriteMode};
use shoal_value::PathValue;
use tempfile::TempDir;

/// A directory known by its path.
pub(crate) struct RealDir(pub(crate) PathValue);

impl Dir for RealDir {
    fn path(&self) -> &PathValue {
        &self.0
    }
}

/// Files as they are, with a trash of their own.
pub(crate) struct RealFiles {
    trash: TempDir,
    trashed: AtomicU64,
}

impl RealFiles {
    pub(crate) fn new(trash: TempDir) -> Self {
        Self { trash, trashed: AtomicU64::new(0) }
    }
}

fn real(at: At<'_>) -> PathBuf {
    let base = PathBuf::from(std::ffi::OsStr::from_bytes(at.dir.path().as_bytes()));
    base.join(std::ffi::OsStr::from_bytes(at.path))
}

fn failed(error: io::Error) -> FileError {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => FileErrorKind::NotFound,
        io::ErrorKind::AlreadyExists => FileErrorKind::Exists,
        io::ErrorKind::IsADirectory => FileErrorKind::IsDir,
        io::ErrorKind::NotADirectory => FileErrorKind::NotDir,
        io::ErrorKind::PermissionDenied => FileErrorKind::Permission,
        _ => FileErrorKind::Io,
    };
    FileError::new(kind, error.to_string())
}

fn kind(kind: fs::FileType) -> FileKind {
    match kind {
        k if k.is_file() => FileKind::File,
        k if k.is_dir() => FileKind::Dir,
        k if k.is_symlink() => FileKind::Symlink,
        _ => FileKind::Other,
    }
}

impl Files for RealFiles {
    fn open_dir(&self, at: At<'_>) -> Result<Arc<dyn Dir>, FileError> {
        let path = real(at).canonicalize().map_err(failed)?;
        if !path.is_dir() {
            return Err(FileError::new(FileErrorKind::NotDir, ""));
        }
        Ok(Arc::new(RealDir(PathValue::from(path.as_os_str().as_bytes()))))
    }

    fn meta(&self, at: At<'_>, follow: bool) -> Result<Meta, FileError> {
        let path = real(at);
        let meta = if follow { fs::metadata(path) } else { fs::symlink_metadata(path) }.map_err(failed)?;
        Ok(Meta {
            kind: kind(meta.file_type()),
            size: meta.len(),
            modified: meta.modified().ok().and_then(|at| jiff::Timestamp::try_from(at).ok()),
            executable: meta.mode() & 0o111 != 0,
            id: (meta.dev(), meta.ino()),
        })
    }

    fn list(&self, at: At<'_>, _cancel: &CancelToken) -> Result<Vec<Entry>, FileError> {
        let entries = fs::read_dir(real(at)).map_err(failed)?;
        entries
            .map(|entry| {
                let entry = entry.map_err(failed)?;
                let kind = kind(entry.file_type().map_err(failed)?);
                Ok(Entry { name: entry.file_name().as_bytes().to_vec(), kind })
            })
            .collect()
    }

    fn read_link(&self, at: At<'_>) -> Result<PathValue, FileError> {
        Ok(PathValue::from(fs::read_link(real(at)).map_err(failed)?.as_os_str().as_bytes()))
    }

    fn open(&self, at: At<'_>, _cancel: &CancelToken) -> Result<Box<dyn io::Read + Send>, FileError> {
        Ok(Box::new(fs::File::open(real(at)).map_err(failed)?))
    }

    fn read(&self, at: At<'_>, limit: u64, _cancel: &CancelToken) -> Result<Vec<u8>, FileError> {
        let contents = fs::read(real(at)).map_err(failed)?;
        if contents.len() as u64 > limit {
            return Err(FileError::new(FileErrorKind::TooLarge, format!("more than {limit} bytes")));
        }
        Ok(contents)
    }

    fn create(&self, at: At<'_>, mode: WriteMode) -> Result<Box<dyn io::Write + Send>, FileError> {
        let append = mode == WriteMode::Append;
        let file = fs::OpenOptions::new().create(true).write(true).append(append).truncate(!append).open(real(at));
        Ok(Box::new(file.map_err(failed)?))
    }

    fn write(&self, at: At<'_>, mode: WriteMode, bytes: &[u8], _cancel: &CancelToken) -> Result<(), FileError> {
        self.create(at, mode)?.write_all(bytes).map_err(failed)
    }

    fn make_dir(&self, at: At<'_>, parents: bool) -> Result<(), FileError> {
        if parents { fs::create_dir_all(real(at)) } else { fs::create_dir(real(at)) }.map_err(failed)
    }

    fn touch(&self, at: At<'_>) -> Result<(), FileError> {
        let file = fs::OpenOptions::new().create(true).append(true).open(real(at)).map_err(failed)?;
        file.set_modified(std::time::SystemTime::now()).map_err(failed)
    }

    fn copy(&self, from: At<'_>, to: At<'_>, _cancel: &CancelToken) -> Result<(), FileError> {
        fs::copy(real(from), real(to)).map(|_| ()).map_err(failed)
    }

    fn rename(&self, from: At<'_>, to: At<'_>, _cancel: &CancelToken) -> Result<(), FileError> {
        fs::rename(real(from), real(to)).map_err(failed)
    }

    fn link(&self, target: At<'_>, at: At<'_>, symbolic: bool) -> Result<(), FileError> {
        if symbolic {
            let text = std::ffi::OsStr::from_bytes(target.path);
            return std::os::unix::fs::symlink(text, real(at)).map_err(failed);
        }
        fs::hard_link(real(target), real(at)).map_err(failed)
    }

    fn remove(&self, at: At<'_>, recursive: bool, _cancel: &CancelToken) -> Result<(), FileError> {
        let path = real(at);
        let is_dir = fs::symlink_metadata(&path).map_err(failed)?.is_dir();
        match (is_dir, recursive) {
            (true, true) => fs::remove_dir_all(path),
            (true, false) => fs::remove_dir(path),
            (false, _) => fs::remove_file(path),
        }
        .map_err(failed)
    }

    fn trash(&self, at: At<'_>, _cancel: &CancelToken) -> Result<PathValue, FileError> {
        let number = self.trashed.fetch_add(1, Ordering::Relaxed);
        let place = self.trash.path().join(number.to_string());
        fs::rename(real(at), &place).map_err(failed)?;
        Ok(PathValue::from(place.as_os_str().as_bytes()))
    }
}
