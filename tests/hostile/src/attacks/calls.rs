//! On the other layers themselves: mounts, namespaces, privileges, and calls that lead around filters.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};

use shoal_sys::attack::{self as sys, Surface};

use crate::{Attack, Targets, alone, attack};

pub(super) const ATTACKS: &[Attack] = &[
    attack("A31-attributes", |_| reach(Surface::MountAttribute)),
    attack("A31-capabilities", |_| capabilities()),
    attack("A31-chroot", |_| sys::change_root()),
    attack("A31-context", |_| reach(Surface::MountContext)),
    attack("A31-handle", |_| reach(Surface::Handle)),
    attack("A31-mount", |_| sys::mount_over(c"/tmp")),
    attack("A31-tree", |_| reach(Surface::MountTree)),
    attack("A31-unmount", |t| sys::unmount(&CString::new(t.state.as_os_str().as_bytes())?)),
    attack("A49-ring", |_| sys::ring()),
    attack("A50-keyring", |_| sys::keyring()),
    attack("A50-request", |_| reached(sys::request_key(c"user", c"shoal"))),
    alone("A51-foreign-entry", |_| sys::foreign_entry()),
    attack("A51-second-table", |_| sys::second_table()),
    attack("A52-bpf", |_| reach(Surface::Bpf)),
    attack("A52-clone", |_| sys::clone_user()),
    attack("A52-fanotify", |_| reach(Surface::Fanotify)),
    attack("A52-faults", |_| sys::fault_handler()),
    attack("A52-perf", |_| reach(Surface::Perf)),
    attack("A52-quota", |_| reach(Surface::Quota)),
    alone("A52-unshare", |_| sys::unshare_user()),
    attack("A52-room", |_| room()),
    attack("A53-set-user-id", set_user_id),
];

/// The call got past every filter: it looked at its arguments, which are none.
fn reach(what: Surface) -> io::Result<()> {
    reached(sys::reach(what))
}

fn reached(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSYS)) => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Holds any capability, in whatever namespace.
fn capabilities() -> io::Result<()> {
    match shoal_sys::caps::effective()? {
        0 => Err(io::Error::from_raw_os_error(libc::EPERM)),
        _ => Ok(()),
    }
}

/// A user namespace more would fit.
fn room() -> io::Result<()> {
    let text = std::fs::read_to_string("/proc/sys/user/max_user_namespaces")?;
    if text.trim() == "0" { Err(io::Error::from_raw_os_error(libc::ENOSPC)) } else { Ok(()) }
}

/// Runs a program that would be root. Who it is, is seen from here: even one that has ended has its user until it is waited for.
fn set_user_id(targets: &Targets) -> io::Result<()> {
    let mut command = Command::new(&targets.setuid);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
    // Its real user is still this one, who may end it.
    child.kill()?;
    child.wait()?;
    let effective =
        |text: &str| Some(text.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().nth(1)? == "0");
    match effective(&status?) {
        Some(true) => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::EPERM)),
    }
}
