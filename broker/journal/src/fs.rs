//! The state directory as a place on disk: whose it is, what it lies on, the reserve, syncing.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use crate::error::JournalError;

/// Kept free so that running work can close its rows on a full disk.
pub(crate) const RESERVE_LEN: u64 = 64 * 1024 * 1024;

/// Refuses a directory that is not ours, not private, or lies where locks do not work.
pub(crate) fn check_state_dir(dir: &Path) -> Result<(), JournalError> {
    let unusable = |what: &str| JournalError::Unusable(format!("state directory {}: {what}", dir.display()));
    let meta = std::fs::symlink_metadata(dir).map_err(|e| unusable(&e.to_string()))?;
    if !meta.is_dir() {
        return Err(unusable("not a directory"));
    }
    if meta.uid() != nix::unistd::Uid::effective().as_raw() {
        return Err(unusable("owned by another user; choose another with --state-dir"));
    }
    if meta.mode() & 0o077 != 0 {
        return Err(unusable(&format!("mode {:o} lets others in; chmod 700 it", meta.mode() & 0o777)));
    }
    let place = shoal_sys::file_system::of(dir).map_err(|e| unusable(&e.to_string()))?;
    if place.is_network {
        let name = place.name;
        return Err(unusable(&format!(
            "lies on {name}, whose locks cannot be relied on; choose a local one with --state-dir"
        )));
    }
    Ok(())
}

/// Mode 0600.
pub(crate) fn make_private(path: &Path) -> Result<(), JournalError> {
    Ok(std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?)
}

/// A new private file that did not exist.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Flushes a file's data to the disk; a file that is not there has none.
pub(crate) fn sync_file(path: &Path) -> Result<(), JournalError> {
    match File::open(path) {
        Ok(file) => Ok(file.sync_data()?),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Free bytes below which an unavailable journal stays so: a row, its pages and its blob fit into this many times over.
const ROOM: u64 = 256 * 1024;

/// Whether the file system has room for work to go on.
pub(crate) fn has_room(dir: &Path) -> Result<bool, JournalError> {
    let stat =
        nix::sys::statvfs::statvfs(dir).map_err(|e| JournalError::Unavailable(format!("{}: {e}", dir.display())))?;
    // The fields' widths differ by system.
    #[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
    let free = (stat.blocks_available() as u64).saturating_mul(stat.fragment_size() as u64);
    Ok(free >= ROOM)
}

/// Makes the reserve if it is not there in full.
pub(crate) fn make_reserve(dir: &Path) -> Result<(), JournalError> {
    let path = dir.join("reserve");
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
    let full = file.metadata()?.blocks().saturating_mul(512) >= RESERVE_LEN;
    if full {
        return Ok(());
    }
    if let Err(e) = allocate(&file) {
        file.set_len(0)?;
        return Err(e.into());
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn allocate(file: &File) -> io::Result<()> {
    let len = i64::try_from(RESERVE_LEN).map_err(io::Error::other)?;
    Ok(nix::fcntl::posix_fallocate(file, 0, len)?)
}

#[cfg(not(target_os = "linux"))]
fn allocate(mut file: &File) -> io::Result<()> {
    use std::io::Write as _;
    let chunk = vec![0; 1024 * 1024];
    for _ in 0..RESERVE_LEN / (1024 * 1024) {
        file.write_all(&chunk)?;
    }
    Ok(())
}

/// Gives the reserve back to the file system.
pub(crate) fn release_reserve(dir: &Path) -> Result<(), JournalError> {
    let path = dir.join("reserve");
    match OpenOptions::new().write(true).open(&path) {
        Ok(file) => Ok(file.set_len(0)?),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_shared_and_missing_directories() {
        let dir = tempfile::tempdir().expect("temp dir");
        let set = |mode| std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).expect("chmod");
        set(0o700);
        check_state_dir(dir.path()).expect("a private one");
        set(0o755);
        let error = check_state_dir(dir.path()).expect_err("shared");
        assert!(error.to_string().contains("chmod 700"), "{error}");
        let error = check_state_dir(&dir.path().join("none")).expect_err("missing");
        assert!(error.to_string().contains("No such file"), "{error}");
    }

    #[test]
    fn reserve_is_really_allocated_and_given_back() {
        let dir = tempfile::tempdir().expect("temp dir");
        let blocks = || std::fs::metadata(dir.path().join("reserve")).expect("there").blocks() * 512;
        make_reserve(dir.path()).expect("made");
        assert!(blocks() >= RESERVE_LEN);
        release_reserve(dir.path()).expect("released");
        assert_eq!(blocks(), 0);
    }
}
