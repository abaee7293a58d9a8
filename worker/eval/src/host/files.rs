//! The file port: every call is relative to the evaluator's working directory.

use std::any::Any;
use std::io;
use std::sync::Arc;

use shoal_value::{ErrorValue, PathValue, code};

use crate::cancel::CancelToken;

/// An open directory that serves as a working directory. The host supplies the type, usually a descriptor and its path.
pub trait Dir: Any + Send + Sync {
    /// Absolute path under which it was opened.
    fn path(&self) -> &PathValue;
}

/// A place: `path` relative to `dir` unless it is absolute.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// The evaluator's working directory.
    pub dir: &'a Arc<dyn Dir>,
    /// Path as the program gave it.
    pub path: &'a [u8],
}

/// Kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Symlink,
    /// Anything else.
    Other,
}

impl FileKind {
    /// `file`, `dir`, `symlink` or `other`.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Dir => "dir",
            Self::Symlink => "symlink",
            Self::Other => "other",
        }
    }
}

/// Metadata of a file.
#[derive(Clone, Debug)]
pub struct Meta {
    /// What it is.
    pub kind: FileKind,
    /// Length in bytes.
    pub size: u64,
    /// Time of the last change, if the file system keeps one.
    pub modified: Option<jiff::Timestamp>,
    /// Whether some execute bit is set.
    pub executable: bool,
    /// Device and inode: equal for two names of one file.
    pub id: (u64, u64),
}

/// A name in a directory.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Name without a directory.
    pub name: Vec<u8>,
    /// What it is; a symbolic link is not followed.
    pub kind: FileKind,
}

/// What to do with an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// Replace its contents.
    Truncate,
    /// Add at its end.
    Append,
}

/// Files and directories. Whatever changes them records its inverse with the journal first (undo capture).
pub trait Files: Send + Sync {
    /// Opens a directory as a working directory. Fails with not found, not a directory.
    fn open_dir(&self, at: At<'_>) -> Result<Arc<dyn Dir>, FileError>;

    /// Metadata; `follow` looks through a symbolic link.
    fn meta(&self, at: At<'_>, follow: bool) -> Result<Meta, FileError>;

    /// Names in a directory without `.` and `..`, in any order.
    fn list(&self, at: At<'_>, cancel: &CancelToken) -> Result<Vec<Entry>, FileError>;

    /// Target of a symbolic link.
    fn read_link(&self, at: At<'_>) -> Result<PathValue, FileError>;

    /// Opens a file for reading from its start. The reader fails with `Interrupted` kinds retried inside, and ends when
    /// `cancel` is set.
    fn open(&self, at: At<'_>, cancel: &CancelToken) -> Result<Box<dyn io::Read + Send>, FileError>;

    /// The whole contents, at most `limit` bytes; a longer file is `Io` with a text that names the limit.
    fn read(&self, at: At<'_>, limit: u64, cancel: &CancelToken) -> Result<Vec<u8>, FileError>;

    /// Opens a file for writing, creating it if needed.
    fn create(&self, at: At<'_>, mode: WriteMode) -> Result<Box<dyn io::Write + Send>, FileError>;

    /// Writes `bytes` as one operation, creating the file if needed.
    fn write(&self, at: At<'_>, mode: WriteMode, bytes: &[u8], cancel: &CancelToken) -> Result<(), FileError>;

    /// Makes a directory; with `parents` also those above it, and an existing one is fine.
    fn make_dir(&self, at: At<'_>, parents: bool) -> Result<(), FileError>;

    /// Creates an empty file or sets the time of its last change to now.
    fn touch(&self, at: At<'_>) -> Result<(), FileError>;

    /// Copies the contents and mode of one file (not a directory), overwriting.
    fn copy(&self, from: At<'_>, to: At<'_>, cancel: &CancelToken) -> Result<(), FileError>;

    /// Renames, overwriting a file; across devices it copies and deletes.
    fn rename(&self, from: At<'_>, to: At<'_>, cancel: &CancelToken) -> Result<(), FileError>;

    /// Makes a link named `at` to `target`.
    fn link(&self, target: At<'_>, at: At<'_>, symbolic: bool) -> Result<(), FileError>;

    /// Deletes for good; a directory with contents only if `recursive`.
    fn remove(&self, at: At<'_>, recursive: bool, cancel: &CancelToken) -> Result<(), FileError>;

    /// Moves into the trash; gives the full path there.
    fn trash(&self, at: At<'_>, cancel: &CancelToken) -> Result<PathValue, FileError>;
}

/// Why a file operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileErrorKind {
    /// The file or a parent does not exist.
    NotFound,
    /// It exists and must not.
    Exists,
    /// A file was needed.
    IsDir,
    /// A directory was needed.
    NotDir,
    /// Refused by the file system or the jail.
    Permission,
    /// Refused by policy; the text names the effect.
    NotPermitted,
    /// The working directory itself has disappeared.
    CwdGone,
    /// The run was cancelled while waiting.
    Cancelled,
    /// Larger than the limit given.
    TooLarge,
    /// Everything else.
    Io,
}

/// A failed file operation.
#[derive(Clone, Debug)]
pub struct FileError {
    /// Why.
    pub kind: FileErrorKind,
    /// Text of the operating system or of the refusal; may be empty.
    pub text: String,
}

impl FileError {
    /// A failure of this kind with the text that goes with it.
    pub fn new(kind: FileErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// The error of the language; `path` is the path as the program gave it.
    pub fn about(&self, path: &[u8]) -> ErrorValue {
        let path = String::from_utf8_lossy(path);
        let (code, what) = match self.kind {
            FileErrorKind::NotFound => (code::NOT_FOUND, "no such file or directory"),
            FileErrorKind::Exists => (code::EXISTS, "already exists"),
            FileErrorKind::IsDir => (code::IS_DIR, "is a directory"),
            FileErrorKind::NotDir => (code::NOT_DIR, "is not a directory"),
            FileErrorKind::Permission => (code::PERMISSION, "permission denied"),
            FileErrorKind::NotPermitted => (code::NOT_PERMITTED, ""),
            FileErrorKind::Cancelled => (code::CANCELLED, "cancelled"),
            FileErrorKind::TooLarge => (code::TOO_LARGE, "too large"),
            FileErrorKind::Io => (code::IO_ERROR, ""),
            FileErrorKind::CwdGone => {
                return ErrorValue::new(code::CWD_GONE, "working directory is gone")
                    .with_hint("`cd` to an absolute path still works");
            }
        };
        let text = match (what, &*self.text) {
            ("", text) => text.to_owned(),
            (what, "") => what.to_owned(),
            (what, text) if self.kind == FileErrorKind::TooLarge => format!("{what}: {text}"),
            (what, _) => what.to_owned(),
        };
        ErrorValue::new(code, format!("{path}: {text}"))
    }
}
