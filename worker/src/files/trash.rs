//! The trash: where `rm` moves things to, and from where `undo` takes them back.
//!
//! It lies in the user's data directory. A session that may not write there, because its grants end at a project, has one
//! beside what it may write: `.shoal-trash` in the highest directory above the removed file that lets itself be written.
//! That directory tells git to pass it over.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use shoal_eval::cancel::CancelToken;
use shoal_eval::host::{At, FileError, FileErrorKind};
use shoal_value::PathValue;

use super::dir::resolve;
use super::remove::remove;
use super::transfer::copy_to;
use super::{fail, place};

/// Name of a trash beside what is removed.
const BESIDE: &str = ".shoal-trash";
/// What a repository around it is told: nothing in here is its business.
const IGNORE: &[u8] =
    b"# Made by `rm` in a session without a data directory; delete it when nothing is to be undone.\n*\n";

/// Moves into the trash under a name that is unique there.
pub(super) fn trash(at: At<'_>, root: &Path, cancel: &CancelToken) -> Result<PathValue, FileError> {
    let (dir, path) = place(at)?;
    rustix::fs::statat(dir, path, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| fail(e, at))?;
    let root = match make_private(root) {
        Ok(()) => root.to_owned(),
        Err(why) if matches!(why.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
            beside(&resolve(at)?).ok_or_else(|| no_trash(root, &why))?
        }
        Err(why) => return Err(no_trash(root, &why)),
    };
    let name = path.rsplit(|b| *b == b'/').find(|part| !part.is_empty()).unwrap_or(b"root");
    let kept = unique(&root, name);
    match rustix::fs::renameat(dir, path, CWD, &*kept) {
        Ok(()) => {}
        Err(Errno::XDEV) => {
            copy_to((dir, path), &kept, cancel).map_err(|e| e.at(at))?;
            remove(at, true, cancel)?;
        }
        Err(e) => return Err(fail(e, at)),
    }
    Ok(PathValue::from(kept))
}

fn no_trash(root: &Path, why: &std::io::Error) -> FileError {
    let root = root.display();
    let text = format!(
        "the trash {root} cannot be made ({why}), nor one above the file; grant fs.write there, or delete for good with \
         --permanent"
    );
    FileError::new(FileErrorKind::Io, text)
}

/// Whether an absolute path is that of something `rm` moved away.
pub(super) fn holds(path: &[u8]) -> bool {
    let parent = Path::new(OsStr::from_bytes(path)).parent();
    parent.is_some_and(|parent| parent.ends_with("shoal/trash") || parent.ends_with(BESIDE))
}

/// A directory for this user alone.
fn make_private(root: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(root)
}

/// The trash in the highest directory above a path that can have one on the same file system.
fn beside(path: &[u8]) -> Option<PathBuf> {
    let path = Path::new(OsStr::from_bytes(path));
    let device = std::fs::symlink_metadata(path).ok()?.dev();
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.reverse();
    above.retain(|dir| std::fs::metadata(dir).is_ok_and(|meta| meta.dev() == device));
    first_usable(&above, path)
}

fn first_usable(dirs: &[&Path], removed: &Path) -> Option<PathBuf> {
    dirs.iter().map(|dir| dir.join(BESIDE)).find(|trash| is_usable(trash, removed))
}

/// Makes a trash, or finds it made: a directory and no link somewhere else, not what is being removed itself, and ours to
/// write into.
fn is_usable(trash: &Path, removed: &Path) -> bool {
    if removed.starts_with(trash) || !matches!(make_one(trash), Ok(()) | Err(ErrorKind::AlreadyExists)) {
        return false;
    }
    std::fs::symlink_metadata(trash).is_ok_and(|meta| meta.is_dir()) && tell_git(&trash.join(".gitignore")).is_ok()
}

fn tell_git(ignore: &Path) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::open(ignore, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => rustix::io::write(file, IGNORE).map(drop),
        Err(Errno::EXIST) => Ok(()),
        Err(e) => Err(e),
    }
}

fn make_one(trash: &Path) -> Result<(), ErrorKind> {
    std::fs::DirBuilder::new().mode(0o700).create(trash).map_err(|e| e.kind())
}

/// `ROOT/NAME`, with a number in front when that is taken.
fn unique(root: &Path, name: &[u8]) -> Vec<u8> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut wanted = [root.as_os_str().as_bytes(), b"/", name].concat();
    while rustix::fs::statat(CWD, &*wanted, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("/{}-{n}-", std::process::id());
        wanted = [root.as_os_str().as_bytes(), prefix.as_bytes(), name].concat();
    }
    wanted
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "they make and read files of their own")]
mod tests {
    use super::*;

    #[test]
    fn the_first_directory_that_can_be_written_gets_it() {
        let root = tempfile::tempdir().expect("a directory");
        let (top, file) = (root.path(), root.path().join("a/f"));
        let dirs = [Path::new("/proc"), top, &top.join("a")];
        let found = first_usable(&dirs, &file).expect("the second");
        assert_eq!(found, top.join(BESIDE));
        assert!(std::fs::read_to_string(found.join(".gitignore")).expect("there").ends_with("\n*\n"));
        assert_eq!(first_usable(&dirs, &file), Some(found), "the same one again");
        assert_eq!(first_usable(&[Path::new("/proc")], &file), None);
    }

    #[test]
    fn a_link_in_its_place_and_itself_are_no_trash() {
        let root = tempfile::tempdir().expect("a directory");
        let (trash, elsewhere) = (root.path().join(BESIDE), root.path().join("elsewhere"));
        std::fs::create_dir(&elsewhere).expect("made");
        std::os::unix::fs::symlink(&elsewhere, &trash).expect("a link");
        assert!(!is_usable(&trash, &root.path().join("f")));
        assert_eq!(std::fs::read_dir(&elsewhere).expect("read").count(), 0);
        std::fs::remove_file(&trash).expect("removed");
        assert!(is_usable(&trash, &root.path().join("f")));
        assert!(!is_usable(&trash, &trash.join("f")), "what lies in a trash is not moved into it again");
    }
}
