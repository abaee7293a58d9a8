//! Installing system call filters. What is in them is the jail's.

use std::io;

/// Bytes of one instruction.
const INSTRUCTION: usize = 8;

/// Installs a compiled filter, given as the bytes of its instructions in this machine's order, for this thread and
/// everything it starts. Needs no-new-privileges; cannot be undone.
pub fn install(program: &[u8]) -> io::Result<()> {
    if program.is_empty() || !program.len().is_multiple_of(INSTRUCTION) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut instructions: Vec<libc::sock_filter> = program
        .chunks_exact(INSTRUCTION)
        .filter_map(|bytes| {
            let &[c0, c1, jt, jf, k0, k1, k2, k3] = bytes else { return None };
            let (code, k) = (u16::from_ne_bytes([c0, c1]), u32::from_ne_bytes([k0, k1, k2, k3]));
            Some(libc::sock_filter { code, jt, jf, k })
        })
        .collect();
    let len = u16::try_from(instructions.len()).map_err(|_long| io::Error::from_raw_os_error(libc::EINVAL))?;
    let filter = libc::sock_fprog { len, filter: instructions.as_mut_ptr() };
    // SAFETY: the program points to `len` live instructions, which the kernel copies and checks.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0_u32, &raw const filter) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether this kernel knows filters that answer with an error number.
pub fn is_available() -> bool {
    const SECCOMP_GET_ACTION_AVAIL: libc::c_uint = 2;
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the action is a live u32 that the call reads; nothing is installed.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0_u32, &raw const action) };
    result == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_takes_for_this_thread() {
        assert!(is_available());
        // ld nr; jeq getppid, 0, 1; ret ERRNO(7); ret ALLOW
        let getppid = u32::try_from(libc::SYS_getppid).unwrap();
        let program: Vec<u8> = [
            (0x20_u16, 0, 0, 0_u32),
            (0x15, 0, 1, getppid),
            (0x06, 0, 0, libc::SECCOMP_RET_ERRNO | 7),
            (0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
        ]
        .into_iter()
        .flat_map(|(code, jt, jf, k)| [&code.to_ne_bytes()[..], &[jt, jf], &k.to_ne_bytes()].concat())
        .collect();
        let thread = std::thread::spawn(move || {
            crate::prctl::set_no_new_privs().unwrap();
            install(&program).unwrap();
            // SAFETY: takes and gives no memory.
            unsafe { libc::syscall(libc::SYS_getppid) }
        });
        assert_eq!(thread.join().unwrap(), -1);
        assert!(install(&[]).is_err() && install(&[0; 7]).is_err() && install(&[0; 8]).is_err());
    }
}
