//! What a hostile program tries, for the tests of the jail: calls that no role of the product makes.
//!
//! Built with the feature `attack` alone, which only those tests ask for. None of them does harm when it succeeds: they
//! ask, read one byte, or set what is set already.

use std::ffi::{CStr, c_long};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

/// Makes a system call whose arguments are numbers.
///
/// # Safety
///
/// No argument may be taken for a pointer by this call, or it must be one that the call may use so.
unsafe fn call(number: c_long, arguments: [usize; 6]) -> io::Result<usize> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the caller vouches for the arguments.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    usize::try_from(result).map_err(|_negative| io::Error::last_os_error())
}

fn id(pid: i32) -> usize {
    usize::try_from(pid).unwrap_or(0)
}

/// Reads one byte of another process.
pub fn read_memory(pid: i32, address: usize) -> io::Result<u8> {
    let mut byte = 0_u8;
    let local = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let remote = libc::iovec { iov_base: std::ptr::without_provenance_mut(address), iov_len: 1 };
    // SAFETY: the local part is one live byte; the remote one is an address of the other process, which the kernel
    // checks there.
    let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    if read == 1 { Ok(byte) } else { Err(io::Error::last_os_error()) }
}

/// Becomes the tracer of another process, without stopping it; ends with the caller.
pub fn seize(pid: i32) -> io::Result<()> {
    const PTRACE_SEIZE: usize = 0x4206;
    // SAFETY: seizing takes no memory of ours.
    unsafe { call(libc::SYS_ptrace, [PTRACE_SEIZE, id(pid), 0, 0, 0, 0]) }.map(drop)
}

/// Asks whether another process shares our descriptors.
pub fn compare(pid: i32) -> io::Result<()> {
    const KCMP_FILES: usize = 2;
    let own = id(crate::process::pid());
    // SAFETY: numbers alone.
    unsafe { call(libc::SYS_kcmp, [own, id(pid), KCMP_FILES, 0, 0, 0]) }.map(drop)
}

/// Takes a descriptor out of another process, and closes it.
pub fn take_descriptor(pid: i32, number: i32) -> io::Result<()> {
    // SAFETY: numbers alone; the result is a descriptor of ours.
    let handle = unsafe { call(libc::SYS_pidfd_open, [id(pid), 0, 0, 0, 0, 0]) }?;
    // SAFETY: numbers alone.
    let taken = unsafe { call(libc::SYS_pidfd_getfd, [handle, id(number), 0, 0, 0, 0]) };
    for fd in [Some(handle), taken.as_ref().ok().copied()].into_iter().flatten() {
        // SAFETY: both were made here and nobody else has their numbers.
        unsafe { call(libc::SYS_close, [fd, 0, 0, 0, 0, 0]) }?;
    }
    taken.map(drop)
}

/// Sends a signal to one thread.
pub fn signal_thread(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: numbers alone.
    unsafe { call(libc::SYS_tgkill, [id(pid), id(pid), id(signal), 0, 0, 0]) }.map(drop)
}

/// Sends a signal to everybody who can be reached.
pub fn signal_everybody(signal: i32) -> io::Result<()> {
    // SAFETY: numbers alone.
    unsafe { call(libc::SYS_kill, [usize::MAX, id(signal), 0, 0, 0, 0]) }.map(drop)
}

/// Sends a signal with a value.
pub fn queue_signal(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: zeroed memory is a valid siginfo_t.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    info.si_signo = signal;
    info.si_code = -1; // SI_QUEUE
    // SAFETY: the information is live and read by the call.
    unsafe { call(libc::SYS_rt_sigqueueinfo, [id(pid), id(signal), (&raw const info).expose_provenance(), 0, 0, 0]) }
        .map(drop)
}

/// Names another process as the one that gets SIGIO when `fd` is ready.
pub fn own_signals(fd: impl AsFd, pid: i32) -> io::Result<()> {
    let fd = id(fd.as_fd().as_raw_fd());
    let (owner, flags) = (id(libc::F_SETOWN), id(libc::F_SETFL));
    // SAFETY: a borrowed descriptor and numbers.
    unsafe { call(libc::SYS_fcntl, [fd, owner, id(pid), 0, 0, 0]) }?;
    // SAFETY: the same.
    unsafe { call(libc::SYS_fcntl, [fd, flags, id(libc::O_ASYNC | libc::O_NONBLOCK), 0, 0, 0]) }.map(drop)
}

/// Sets the input and output priority of another process to the default.
pub fn io_priority(pid: i32) -> io::Result<()> {
    const PROCESS: usize = 1;
    // SAFETY: numbers alone.
    unsafe { call(libc::SYS_ioprio_set, [PROCESS, id(pid), 0, 0, 0, 0]) }.map(drop)
}

/// Sets the scheduler of another process to the default.
pub fn scheduler(pid: i32) -> io::Result<()> {
    let parameter = 0_i32;
    // SAFETY: the parameter is live and read by the call.
    unsafe { call(libc::SYS_sched_setscheduler, [id(pid), 0, (&raw const parameter).expose_provenance(), 0, 0, 0]) }
        .map(drop)
}

/// Makes a ring whose requests pass no filter.
pub fn ring() -> io::Result<()> {
    let mut parameters = [0_u8; 120];
    // SAFETY: the parameters are live and of the size the call writes.
    let made = unsafe { call(libc::SYS_io_uring_setup, [1, parameters.as_mut_ptr().expose_provenance(), 0, 0, 0, 0]) }?;
    // SAFETY: it was made here.
    unsafe { call(libc::SYS_close, [made, 0, 0, 0, 0, 0]) }.map(drop)
}

/// Asks for the user's keyring.
pub fn keyring() -> io::Result<()> {
    const GET_KEYRING_ID: usize = 0;
    const USER: usize = usize::MAX - 3; // -4
    // SAFETY: numbers alone.
    unsafe { call(libc::SYS_keyctl, [GET_KEYRING_ID, USER, 1, 0, 0, 0]) }.map(drop)
}

/// Asks the kernel to look for a key.
pub fn request_key(kind: &CStr, name: &CStr) -> io::Result<()> {
    let (kind, name) = (kind.as_ptr().expose_provenance(), name.as_ptr().expose_provenance());
    // SAFETY: both texts are live and end with a NUL.
    unsafe { call(libc::SYS_request_key, [kind, name, 0, 0, 0, 0]) }.map(drop)
}

/// Calls of the kernel's administration, each with arguments that do nothing when they are taken: what matters is
/// whether the call is there. `EPERM` for a filter, another error from the call itself.
pub fn reach(what: Surface) -> io::Result<()> {
    let number = match what {
        Surface::Bpf => libc::SYS_bpf,
        Surface::Perf => libc::SYS_perf_event_open,
        Surface::Fanotify => libc::SYS_fanotify_init,
        Surface::Handle => libc::SYS_open_by_handle_at,
        Surface::MountContext => libc::SYS_fsopen,
        Surface::MountTree => libc::SYS_open_tree,
        Surface::MountAttribute => 467,
        Surface::Quota => libc::SYS_quotactl,
    };
    // Of groups that report file ids, which are for every user.
    let first = if what == Surface::Fanotify { 0x200 } else { 0 };
    // SAFETY: every pointer argument is NULL and every size 0, which each of these calls checks first.
    unsafe { call(number, [first, 0, 0, 0, 0, 0]) }.map(drop)
}

/// See [`reach`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// `bpf`
    Bpf,
    /// `perf_event_open`
    Perf,
    /// `fanotify_init`
    Fanotify,
    /// `open_by_handle_at`
    Handle,
    /// `fsopen`
    MountContext,
    /// `open_tree`
    MountTree,
    /// `open_tree_attr`, which has no name in older tables
    MountAttribute,
    /// `quotactl`
    Quota,
}

/// Handles page faults of this process in user space, kernel faults too.
pub fn fault_handler() -> io::Result<()> {
    const USER_MODE_ONLY: usize = 1;
    // SAFETY: a number; the result is a descriptor of ours.
    let made = unsafe { call(libc::SYS_userfaultfd, [USER_MODE_ONLY, 0, 0, 0, 0, 0]) }?;
    // SAFETY: it was made here.
    unsafe { call(libc::SYS_close, [made, 0, 0, 0, 0, 0]) }.map(drop)
}

/// Puts this process into a new user namespace.
pub fn unshare_user() -> io::Result<()> {
    // SAFETY: numbers alone.
    unsafe { call(libc::SYS_unshare, [id(libc::CLONE_NEWUSER), 0, 0, 0, 0, 0]) }.map(drop)
}

/// Makes a child in a new user namespace, which ends at once.
pub fn clone_user() -> io::Result<()> {
    let flags = id(libc::CLONE_NEWUSER | libc::SIGCHLD);
    // SAFETY: no CLONE_VM and no new stack: the child goes on with a copy of this one.
    let child = unsafe { call(libc::SYS_clone, [flags, 0, 0, 0, 0, 0]) }?;
    if child == 0 {
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(0) }
    }
    crate::process::reap_pid(i32::try_from(child).unwrap_or(-1)).map(drop)
}

/// Types one byte into a terminal; `high` sets bits of the request that the kernel ignores.
pub fn type_into(terminal: impl AsFd, high: bool) -> io::Result<()> {
    const TIOCSTI: usize = 0x5412;
    let request = if high { 1 << 32 | TIOCSTI } else { TIOCSTI };
    let byte = b'x';
    let fd = id(terminal.as_fd().as_raw_fd());
    // SAFETY: the byte is live and read by the call.
    unsafe { call(libc::SYS_ioctl, [fd, request, (&raw const byte).expose_provenance(), 0, 0, 0]) }.map(drop)
}

/// Enters the kernel by the entry of 32-bit programs and asks for the pid. Ends the process where that is killed.
#[cfg(target_arch = "x86_64")]
pub fn foreign_entry() -> io::Result<()> {
    const GETPID_32: i64 = 20;
    let result: i64;
    // SAFETY: getpid takes no argument and touches no memory; the 32-bit entry keeps every register but rax, and may
    // clear r8 to r11.
    unsafe {
        std::arch::asm!("int 0x80", inlateout("rax") GETPID_32 => result,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _);
    }
    if result > 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(i32::try_from(-result).unwrap_or(libc::EINVAL))) }
}

/// There is no other entry here.
#[cfg(not(target_arch = "x86_64"))]
pub fn foreign_entry() -> io::Result<()> {
    Err(io::Error::from_raw_os_error(libc::ENOSYS))
}

/// Asks for the pid by the number that the second table of x86-64 has for it.
pub fn second_table() -> io::Result<()> {
    // SAFETY: numbers alone.
    unsafe { call(0x4000_0000 + libc::SYS_getpid, [0; 6]) }.map(drop)
}

/// Finds a System V segment by its key, or makes it.
pub fn segment(key: i32, make: bool) -> io::Result<i32> {
    let flags = if make { libc::IPC_CREAT | 0o600 } else { 0 };
    let size = if make { 4096 } else { 0 };
    // SAFETY: numbers alone.
    let found = unsafe { call(libc::SYS_shmget, [id(key), size, id(flags), 0, 0, 0]) }?;
    Ok(i32::try_from(found).unwrap_or(-1))
}

/// Removes a System V segment.
pub fn remove_segment(segment: i32) -> io::Result<()> {
    // SAFETY: removing takes no memory.
    unsafe { call(libc::SYS_shmctl, [id(segment), id(libc::IPC_RMID), 0, 0, 0, 0]) }.map(drop)
}

/// Opens a POSIX message queue by its name without the slash, or makes it; it is closed at once.
pub fn queue(name: &CStr, make: bool) -> io::Result<()> {
    let flags = if make { libc::O_CREAT | libc::O_RDWR } else { libc::O_RDONLY };
    let name = name.as_ptr().expose_provenance();
    // SAFETY: the name is live and ends with a NUL; no attributes are given.
    let opened = unsafe { call(libc::SYS_mq_open, [name, id(flags), 0o600, 0, 0, 0]) }?;
    // SAFETY: it was opened here.
    unsafe { call(libc::SYS_close, [opened, 0, 0, 0, 0, 0]) }.map(drop)
}

/// Removes a POSIX message queue.
pub fn remove_queue(name: &CStr) -> io::Result<()> {
    // SAFETY: the name is live and ends with a NUL.
    unsafe { call(libc::SYS_mq_unlink, [name.as_ptr().expose_provenance(), 0, 0, 0, 0, 0]) }.map(drop)
}

/// Makes a socket of any family, and closes it.
pub fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<()> {
    // SAFETY: numbers alone.
    let made = unsafe { call(libc::SYS_socket, [id(family), id(kind), id(protocol), 0, 0, 0]) }?;
    // SAFETY: it was made here.
    unsafe { call(libc::SYS_close, [made, 0, 0, 0, 0, 0]) }.map(drop)
}

/// Keeps every capability this process has over an exec: the opposite of what a session's first process does.
pub fn keep_capabilities() -> io::Result<()> {
    let mut held = rustix::thread::capabilities(None)?;
    held.inheritable = held.permitted;
    rustix::thread::set_capabilities(None, held)?;
    for capability in 0..64 {
        // SAFETY: numbers; a capability that is not held or not known is refused.
        let raised = unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, capability, 0, 0) };
        if raised != 0 {
            break;
        }
    }
    Ok(())
}

/// Mounts an empty file system in memory over a directory and takes it away again.
pub fn mount_over(dir: &CStr) -> io::Result<()> {
    rustix::mount::mount(c"none", dir, c"tmpfs", rustix::mount::MountFlags::empty(), None)?;
    Ok(rustix::mount::unmount(dir, rustix::mount::UnmountFlags::DETACH)?)
}

/// Takes away what is mounted over a directory.
pub fn unmount(dir: &CStr) -> io::Result<()> {
    Ok(rustix::mount::unmount(dir, rustix::mount::UnmountFlags::DETACH)?)
}

/// Makes the root directory the root directory.
pub fn change_root() -> io::Result<()> {
    Ok(rustix::process::chroot("/")?)
}

/// Sends bytes with as many descriptors as the kernel takes in one message.
pub fn send(fd: impl AsFd, parts: &[IoSlice<'_>], fds: &[BorrowedFd<'_>], wait: bool) -> io::Result<()> {
    const MOST: usize = 253;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut flags = SendFlags::NOSIGNAL;
    flags.set(SendFlags::DONTWAIT, !wait);
    Ok(rustix::net::sendmsg(&fd, parts, &mut control, flags).map(drop)?)
}

/// Sets a limit of another process to what it is.
pub fn set_limit_of(pid: i32, resource: u32) -> io::Result<()> {
    let mut old = [0_u64; 2];
    let at = old.as_mut_ptr().expose_provenance();
    let resource = usize::try_from(resource).unwrap_or(0);
    // SAFETY: the limits are live and two numbers long.
    unsafe { call(libc::SYS_prlimit64, [id(pid), resource, 0, at, 0, 0]) }?;
    // SAFETY: the same memory, read this time: what is set is what was set.
    unsafe { call(libc::SYS_prlimit64, [id(pid), resource, at, 0, 0, 0]) }.map(drop)
}
