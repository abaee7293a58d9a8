//! The user database.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The home directory of a user; `None` when the database has none.
pub fn home(uid: u32) -> Option<PathBuf> {
    let mut entry = std::mem::MaybeUninit::<libc::passwd>::zeroed();
    let mut found: *mut libc::passwd = std::ptr::null_mut();
    // Entries are short; a longer one than this is refused with ERANGE and counts as none.
    let mut buffer = vec![0; 16 * 1024];
    // SAFETY: all pointers are live, and the buffer has the length given; strings of the entry point into the buffer.
    let result =
        unsafe { libc::getpwuid_r(uid, entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &raw mut found) };
    if result != 0 || found.is_null() {
        return None;
    }
    // SAFETY: zeroed memory is a valid passwd, and the call filled it because `found` is not null.
    let entry = unsafe { entry.assume_init() };
    if entry.pw_dir.is_null() {
        return None;
    }
    // SAFETY: a NUL-terminated string inside `buffer`, which lives to the end of this function.
    let dir = unsafe { CStr::from_ptr(entry.pw_dir) };
    Some(PathBuf::from(OsStr::from_bytes(dir.to_bytes()))).filter(|dir| dir.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_has_a_home_and_nobody_has_not() {
        assert!(home(0).is_some_and(|dir| dir.is_absolute()));
        assert_eq!(home(4_000_000_000), None);
    }
}
