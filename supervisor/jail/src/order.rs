//! What a jail is ordered with, the same on every system.

use std::io;
use std::path::{Path, PathBuf};

use shoal_proto::section::Section;
use shoal_proto::supervisor_broker::{Lane, Limits};
use shoal_sys::rlimit::{self, Limit};

/// Descriptors of one process; below the broker's own limit, so that no session exhausts what is in flight.
const OPEN_FILES: u64 = 4096;
/// Bytes of locked memory, of message queues, and signals in a queue.
const LOCKED: u64 = 8 * 1024 * 1024;
const QUEUES: u64 = 800 * 1024;
const SIGNALS: u64 = 4096;

/// Places of the kernel itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Protected {
    /// State directory and socket (or the directory that holds nothing else): not there for any session.
    pub hidden: Vec<PathBuf>,
    /// What is never writable: the roles' executables, the policy and the settings in force.
    pub fixed: Vec<PathBuf>,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// The user's runtime directory.
    pub runtime: Option<PathBuf>,
    /// The kernel's uid.
    pub uid: u32,
}

/// What is ordered.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// The compiled rules.
    pub section: &'a Section,
    /// Where the session starts, without symbolic links.
    pub cwd: &'a Path,
    /// Limits that lower the section's.
    pub limits: &'a Limits,
    /// Approved effects beyond the section.
    pub lane: Option<&'a Lane>,
    /// The kernel's own places.
    pub kernel: &'a Protected,
}

/// What holds for every process of the session. The limit of memory is not among them: the launcher gives it to each
/// program, because the worker reserves more address space for stacks than most limits allow.
pub(crate) fn limits(order: &Order<'_>) -> Vec<(Limit, u64)> {
    let section = &order.section.limits;
    let lower = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    let open_files = lower(section.open_files.map(u64::from), order.limits.open_files.map(u64::from));
    let mut limits = vec![
        (Limit::Core, 0),
        (Limit::OpenFiles, open_files.map_or(OPEN_FILES, |n| n.min(OPEN_FILES))),
        (Limit::LockedMemory, LOCKED),
        (Limit::MessageQueues, QUEUES),
        (Limit::PendingSignals, SIGNALS),
    ];
    let optional = [
        (Limit::Processes, lower(section.pids.map(u64::from), order.limits.pids.map(u64::from))),
        (Limit::Cpu, lower(section.cpu_seconds, order.limits.cpu_seconds)),
    ];
    limits.extend(optional.into_iter().filter_map(|(limit, value)| Some((limit, value?))));
    limits
}

/// Lowers the limits of this process to those of a session. Where users are not the session's own, the limit of processes
/// counts all that this user has, so that what is there already is added: else one who has many has no session.
pub(crate) fn lower_all(limits: &[(Limit, u64)], own_users: bool) -> io::Result<()> {
    for &(limit, value) in limits {
        let beside = if own_users || limit != Limit::Processes {
            0
        } else {
            shoal_sys::procfs::tasks_of(shoal_sys::process::uid())?
        };
        rlimit::lower(limit, value.saturating_add(beside))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_limit_of_processes_has_room_beside_what_the_user_has() {
        lower_all(&[(Limit::Processes, 3)], false).unwrap();
        let (soft, _hard) = rlimit::limits(Limit::Processes).unwrap();
        assert!(soft > 3, "{soft}");
        lower_all(&[(Limit::Processes, 3)], true).unwrap();
        assert_eq!(rlimit::limits(Limit::Processes).unwrap(), (3, 3));
    }
}
