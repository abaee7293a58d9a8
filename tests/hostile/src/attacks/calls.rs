//! On the other layers themselves: mounts, namespaces, privileges, and calls that lead around filters.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};

use rustix::process::{Pid, WaitId, WaitIdOptions};
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

/// Runs a program that would be root. Who it was is seen from here once it has ended, until it is waited for.
fn set_user_id(targets: &Targets) -> io::Result<()> {
    let mut command = Command::new(&targets.setuid);
    let command = command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    rustix::process::waitid(WaitId::Pid(Pid::from_child(&child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
    child.wait()?;
    let status = status?;
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    // Real, effective.
    match uids.split_ascii_whitespace().nth(1) {
        Some("0") => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::EPERM)),
    }
}
