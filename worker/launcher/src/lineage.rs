//! Which processes belong to which command, however they forked.
//!
//! Three signs are used, the first that answers wins: the mark (a resource limit nobody uses, set in the child before it
//! executes its program, inherited by everything below it and not restorable), the session whose leader a command is, and the parent. So a daemon that
//! left its session and its parent is still found. Only descendants of the launcher are looked at.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Number of a started program within this launcher; it is the mark of everything below it.
pub(crate) type Serial = u64;

/// Marks start here: 2^60 microseconds of real-time CPU, a limit of thirty thousand years that no program meets.
const MARK_BASE: u64 = 1 << 60;

/// The value of the marking limit for a program.
pub(crate) fn mark(serial: Serial) -> u64 {
    MARK_BASE + serial
}

/// A process below the launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    /// Its pid.
    pub(crate) pid: i32,
    /// Its parent.
    pub(crate) parent: i32,
    /// Its session.
    pub(crate) session: i32,
    /// It ended and was not reaped yet.
    pub(crate) zombie: bool,
    /// The serial its mark names.
    pub(crate) serial: Option<Serial>,
}

/// The processes below the launcher at one moment.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    processes: HashMap<i32, Process>,
    root: i32,
}

impl Tree {
    /// Keeps of `all` what descends from `root`.
    pub(crate) fn below(root: i32, all: Vec<Process>) -> Self {
        let all: HashMap<i32, Process> = all.into_iter().map(|p| (p.pid, p)).collect();
        let inside = |pid: i32| {
            let mut at = pid;
            // The table is a snapshot of a moving system: the bound stops at a loop made by a reused pid.
            for _ in 0..all.len() {
                match all.get(&at) {
                    Some(p) if p.parent == root => return true,
                    Some(p) => at = p.parent,
                    None => return false,
                }
            }
            false
        };
        let processes = all.values().filter(|p| inside(p.pid)).map(|p| (p.pid, *p)).collect();
        Self { processes, root }
    }

    /// Live processes by the program they belong to. `leaders` are the pids of the programs the launcher started.
    pub(crate) fn owners(&self, leaders: &HashMap<i32, Serial>) -> BTreeMap<Serial, BTreeSet<i32>> {
        let mut owners: BTreeMap<Serial, BTreeSet<i32>> = BTreeMap::new();
        for process in self.processes.values().filter(|p| !p.zombie) {
            if let Some(serial) = self.owner(process, leaders) {
                owners.entry(serial).or_default().insert(process.pid);
            }
        }
        owners
    }

    /// Pids of the launcher's own live children.
    pub(crate) fn children(&self) -> impl Iterator<Item = i32> {
        self.processes.values().filter(|p| p.parent == self.root && !p.zombie).map(|p| p.pid)
    }

    /// Processes, zombies left out.
    pub(crate) fn len(&self) -> usize {
        self.processes.values().filter(|p| !p.zombie).count()
    }

    fn owner(&self, process: &Process, leaders: &HashMap<i32, Serial>) -> Option<Serial> {
        let mut at = *process;
        for _ in 0..=self.processes.len() {
            let sign =
                at.serial.or_else(|| leaders.get(&at.pid).copied()).or_else(|| leaders.get(&at.session).copied());
            if sign.is_some() || at.parent == self.root {
                return sign;
            }
            at = *self.processes.get(&at.parent)?;
        }
        None
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{holds_pipe, read_below, unknown_children};

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{holds_pipe, read_below, unknown_children};

#[cfg(target_os = "linux")]
#[expect(
    clippy::disallowed_methods,
    reason = "the launcher owns the process table, which Linux shows as files in /proc"
)]
mod linux {
    use std::fs;

    use shoal_sys::procfs;

    use super::{MARK_BASE, Process, Serial, Tree};

    /// The processes below `root`. One that ends meanwhile is left out.
    pub(crate) fn read_below(root: i32) -> Tree {
        let all = procfs::processes().unwrap_or_default();
        let all = all.into_iter().map(|p| Process {
            pid: p.pid,
            parent: p.ppid,
            session: p.session,
            zombie: matches!(p.state, 'Z' | 'X' | 'x'),
            serial: None,
        });
        let mut tree = Tree::below(root, all.collect());
        for process in tree.processes.values_mut().filter(|p| !p.zombie) {
            let limits = fs::read_to_string(format!("/proc/{}/limits", process.pid)).ok();
            process.serial = limits.as_deref().and_then(parse_mark);
        }
        tree
    }

    /// Whether the launcher has children that are not `known`: only then can anything new be left of a command that
    /// ended, because what lost its parent becomes our child. `None`: this kernel does not tell.
    pub(crate) fn unknown_children(known: impl Fn(i32) -> bool) -> Option<bool> {
        let text = fs::read_to_string("/proc/thread-self/children").ok()?;
        let mut pids = text.split_ascii_whitespace().filter_map(|word| word.parse::<i32>().ok());
        Some(pids.any(|pid| !known(pid)))
    }

    /// Whether a process has one of these pipes open; a process that does not let us look counts as a holder.
    pub(crate) fn holds_pipe(pid: i32, inodes: &[u64]) -> bool {
        let Ok(dir) = fs::read_dir(format!("/proc/{pid}/fd")) else {
            return fs::metadata(format!("/proc/{pid}")).is_ok();
        };
        dir.flatten().any(|entry| {
            let target = fs::read_link(entry.path()).unwrap_or_default();
            let inode = target.to_str().and_then(|t| t.strip_prefix("pipe:[")?.strip_suffix(']')?.parse().ok());
            inode.is_some_and(|inode| inodes.contains(&inode))
        })
    }

    /// `Max realtime timeout   SOFT   HARD   us`.
    pub(super) fn parse_mark(limits: &str) -> Option<Serial> {
        let line = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"))?;
        let hard: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
        hard.checked_sub(MARK_BASE)
    }
}

/// Without a process file system only the group a command leads is known, and it is signalled as a group.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::Tree;

    pub(crate) fn read_below(root: i32) -> Tree {
        Tree::below(root, Vec::new())
    }

    pub(crate) fn unknown_children(_known: impl Fn(i32) -> bool) -> Option<bool> {
        Some(false)
    }

    pub(crate) fn holds_pipe(_pid: i32, _inodes: &[u64]) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32, session: i32, serial: Option<Serial>) -> Process {
        Process { pid, parent, session, zombie: false, serial }
    }

    #[test]
    fn a_daemon_that_left_everything_is_found_by_its_mark() {
        let all = vec![
            process(10, 1, 10, None),
            process(11, 10, 10, None),
            process(12, 11, 12, None),
            process(20, 1, 20, Some(2)),
            process(30, 1, 10, None),
            process(99, 5, 99, Some(2)),
        ];
        let tree = Tree::below(1, all);
        let owners = tree.owners(&HashMap::from([(10, 1)]));
        assert_eq!(owners[&1], BTreeSet::from([10, 11, 12, 30]), "group, child, orphan of the session");
        assert_eq!(owners[&2], BTreeSet::from([20]), "only below the launcher");
        assert_eq!(tree.len(), 5);
    }

    #[test]
    fn a_loop_in_the_snapshot_ends() {
        let tree = Tree::below(1, vec![process(2, 3, 2, None), process(3, 2, 3, None)]);
        assert_eq!(tree.len(), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn reads_the_mark_in_the_kernel_s_text() {
        let limits = format!("Limit  Soft  Hard  Units\nMax realtime timeout  {0}  {0}  us\n", mark(9));
        assert_eq!(linux::parse_mark(&limits), Some(9));
        assert_eq!(linux::parse_mark("Max realtime timeout  unlimited  unlimited  us\n"), None);
    }
}
