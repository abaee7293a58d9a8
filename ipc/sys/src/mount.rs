//! Mounts of this process's mount namespace.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags};

/// Cuts the namespace off from the one it was copied from: nothing that is mounted here from now on appears there.
pub fn make_private() -> io::Result<()> {
    Ok(rustix::mount::mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?)
}

/// Makes a mount of `path` on itself, with everything below: from then on the name cannot be renamed or removed.
pub fn pin(path: &Path) -> io::Result<()> {
    bind(path, path)
}

/// Shows `source`, with everything mounted below it, at `target`.
pub fn bind(source: &Path, target: &Path) -> io::Result<()> {
    Ok(rustix::mount::mount_bind_recursive(source, target)?)
}

/// A detached copy of the mount at `path` with everything below it; it stays usable when `path` is covered.
pub fn detached(path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    Ok(rustix::mount::open_tree(CWD, path, flags)?)
}

/// Shows a detached copy at `target`.
pub fn attach(tree: impl AsFd, target: &Path) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(rustix::mount::move_mount(tree, "", CWD, target, flags)?)
}

/// Mounts an empty file system in memory; `options` as for mount(8), for example `mode=0700,size=64m`.
pub fn tmpfs(target: &Path, options: &str, read_only: bool) -> io::Result<()> {
    let mut flags = MountFlags::NOSUID | MountFlags::NODEV;
    flags.set(MountFlags::RDONLY, read_only);
    mount("tmpfs", target, flags, options)
}

/// Mounts the processes of this pid namespace.
pub fn proc(target: &Path) -> io::Result<()> {
    mount("proc", target, MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, "")
}

/// Mounts a new instance of pseudo terminals; nobody else's have a name in it.
pub fn devpts(target: &Path) -> io::Result<()> {
    // No gid=5: the group is not mapped in a user namespace, and the mount would fail.
    mount("devpts", target, MountFlags::NOSUID | MountFlags::NOEXEC, "newinstance,ptmxmode=0666,mode=620")
}

/// Mounts the message queues of this IPC namespace.
pub fn mqueue(target: &Path) -> io::Result<()> {
    mount("mqueue", target, MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, "")
}

fn mount(kind: &str, target: &Path, flags: MountFlags, options: &str) -> io::Result<()> {
    let options = CString::new(options)?;
    Ok(rustix::mount::mount(kind, target, kind, flags, Some(options.as_c_str()))?)
}

/// Makes the mount at `path` read-only and free of set-uid programs, with everything below it if `recursive`.
///
/// Other flags stay as they are: a remount would be refused for mounts that came from another user namespace.
pub fn make_read_only(path: &Path, recursive: bool) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let flags = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is NUL-terminated and the attributes live; the size is theirs.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes `root` the root of this process and forgets the old one.
pub fn enter_root(root: &Path) -> io::Result<()> {
    rustix::process::chdir(root)?;
    rustix::process::pivot_root(".", ".")?;
    rustix::mount::unmount(".", UnmountFlags::DETACH)?;
    Ok(rustix::process::chdir("/")?)
}

/// Brings up the loopback device of a fresh network namespace.
pub fn loopback_up() -> io::Result<()> {
    let flags = rustix::net::SocketFlags::CLOEXEC;
    let socket =
        rustix::net::socket_with(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, flags, None)?;
    // SAFETY: zeroed memory is a valid ifreq (a name of NULs and integers).
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (slot, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *slot = byte.cast_signed();
    }
    request.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or(0);
    // SAFETY: SIOCSIFFLAGS reads the request, which is live.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
