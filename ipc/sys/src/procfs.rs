//! What the system says about the processes that can be seen: `/proc` on Linux, libproc on macOS.

use std::io;

#[cfg(target_os = "macos")]
#[path = "procfs/darwin.rs"]
mod platform;
#[cfg(target_os = "linux")]
#[path = "procfs/linux.rs"]
mod platform;

pub use platform::{inner_pid, own_threads, process, processes, tasks_of};

/// One process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its pid.
    pub pid: i32,
    /// Its parent's pid.
    pub ppid: i32,
    /// Its process group.
    pub group: i32,
    /// Its session.
    pub session: i32,
    /// Its name, at most 15 bytes, made printable.
    pub comm: String,
    /// Its state letter, for example `R`, `S`, `T` or `Z`.
    pub state: char,
    /// How many threads it has.
    pub threads: u32,
    /// Its resident memory in bytes.
    pub rss: u64,
    /// When it was started, in clock ticks since boot (microseconds since the epoch on macOS): with the pid it names one
    /// process.
    pub start: u64,
}

/// The process `root` and everything below it, parents before their children; empty when there is no such process.
///
/// Inside a jail orphans go to its pid 1, so below that one is the whole jail.
pub fn tree(root: i32) -> io::Result<Vec<Process>> {
    Ok(below(root, processes()?))
}

/// The part of `rest` that is `root` or below it, parents before their children.
pub fn below(root: i32, mut rest: Vec<Process>) -> Vec<Process> {
    let mut found = Vec::new();
    let (first, others): (Vec<_>, Vec<_>) = rest.drain(..).partition(|p| p.pid == root);
    found.extend(first);
    rest = others;
    let mut at = 0;
    while let Some(parent) = found.get(at).map(|p: &Process| p.pid) {
        let (children, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(|p| p.ppid == parent);
        found.extend(children);
        rest = others;
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_process_is_seen() {
        let own = process(crate::process::pid()).unwrap().unwrap();
        assert_eq!(own.pid, crate::process::pid());
        assert!(own.rss > 0 && own.threads >= 1);
        assert_eq!(own_threads().unwrap(), own.threads);
        assert_eq!(process(i32::MAX).unwrap(), None);
        assert_eq!(inner_pid(own.pid).unwrap(), Some(own.pid));
        assert_eq!(inner_pid(i32::MAX).unwrap(), None);
        assert!(own.start > 0);
    }

    #[test]
    fn the_tasks_of_a_user_are_those_of_all_its_processes() {
        let before = tasks_of(crate::process::uid()).unwrap();
        assert!(before >= u64::from(own_threads().unwrap()), "{before}");
        assert_eq!(tasks_of(u32::MAX).unwrap(), 0);
    }

    #[test]
    fn a_tree_is_everything_below_its_root() {
        let one = |pid, ppid| Process {
            pid,
            ppid,
            group: 0,
            session: 0,
            comm: String::new(),
            state: 'S',
            threads: 1,
            rss: 0,
            start: 0,
        };
        let all = vec![one(4, 3), one(2, 1), one(3, 2), one(9, 1), one(1, 0)];
        let pids: Vec<i32> = below(2, all).iter().map(|p| p.pid).collect();
        assert_eq!(pids, [2, 3, 4]);
        assert!(tree(i32::MAX).unwrap().is_empty());
    }
}
