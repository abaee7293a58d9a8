//! Sockets that launchd made for this process.

use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

unsafe extern "C" {
    // From `launch.h`.
    fn launch_activate_socket(name: *const c_char, fds: *mut *mut c_int, count: *mut usize) -> c_int;
}

/// The sockets of the key `name` under `Sockets` in the job's property list, close-on-exec; none when this process is no
/// job of launchd or its list has no such key. A second call is refused by launchd (`EALREADY`).
pub fn sockets(name: &CStr) -> io::Result<Vec<OwnedFd>> {
    let mut numbers: *mut c_int = std::ptr::null_mut();
    let mut count = 0_usize;
    // SAFETY: the name is a live NUL-terminated string, and the call writes one pointer and one number to live places.
    let error = unsafe { launch_activate_socket(name.as_ptr(), &raw mut numbers, &raw mut count) };
    match error {
        0 => {}
        libc::ESRCH | libc::ENOENT => return Ok(Vec::new()),
        number => return Err(io::Error::from_raw_os_error(number)),
    }
    let mut sockets = Vec::with_capacity(count);
    for at in 0..count {
        // SAFETY: the call made an array of `count` numbers, and `at` is below.
        let place = unsafe { numbers.add(at) };
        // SAFETY: inside the array, as above.
        let number = unsafe { place.read() };
        // SAFETY: launchd gave the descriptor to this process, and this is the only call that takes it.
        sockets.push(unsafe { OwnedFd::from_raw_fd(number) });
    }
    // SAFETY: the array came from malloc and is not used after this.
    unsafe { libc::free(numbers.cast()) };
    for socket in &sockets {
        crate::fd::set_cloexec(socket, true)?;
    }
    Ok(sockets)
}
