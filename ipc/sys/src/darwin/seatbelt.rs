//! The sandbox of macOS, applied to this process and inherited by its children for ever.

use std::ffi::{CStr, CString, c_char, c_int};
use std::io;

unsafe extern "C" {
    // Exported by libSystem and declared in no header; what every sandboxing program on macOS calls.
    fn sandbox_init_with_parameters(
        profile: *const c_char,
        flags: u64,
        parameters: *const *const c_char,
        error: *mut *mut c_char,
    ) -> c_int;
    fn sandbox_free_error(error: *mut c_char);
}

/// Applies a profile with its parameters, `NAME` and value in turn. Fails when the text is wrong, and always in a
/// process that is sandboxed already: sandboxes do not nest.
pub fn apply(profile: &CStr, parameters: &[(CString, CString)]) -> io::Result<()> {
    let mut words: Vec<*const c_char> =
        parameters.iter().flat_map(|(name, value)| [name.as_ptr(), value.as_ptr()]).collect();
    words.push(std::ptr::null());
    let mut error: *mut c_char = std::ptr::null_mut();
    // SAFETY: the profile and every word are live NUL-terminated strings, the list ends with a null pointer, and the
    // call writes at most one pointer to `error`.
    let result = unsafe { sandbox_init_with_parameters(profile.as_ptr(), 0, words.as_ptr(), &raw mut error) };
    if result == 0 {
        return Ok(());
    }
    if error.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: not null: the call made a NUL-terminated text.
    let text = unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned();
    // SAFETY: the text came from the call and is not used after this.
    unsafe { sandbox_free_error(error) };
    Err(io::Error::other(text))
}
