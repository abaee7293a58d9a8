//! Control groups of sessions, where the host has delegated a part of its tree to this kernel alone: each session has a
//! group of its own, which bounds its memory and its processes as a whole, ends what is left of it, and goes with it.
//!
//! The tree is the delegate's own when no process but this one is in the group it was started in: so under a service
//! manager's `Delegate=yes`. Anywhere else sessions have no groups, and nothing waits for any.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use shoal_proto::section::Section;
use shoal_proto::supervisor_broker::{Limits, SessionId};

/// Controllers that are asked for.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];
/// The least memory a session is bounded to: launcher and worker have to fit beside its programs.
const LEAST_MEMORY: u64 = 64 << 20;
/// The trial of the memory bound: so much is allowed, and so much is used.
#[cfg(target_os = "linux")]
const TRIAL_BOUND: u64 = 16 << 20;
#[cfg(target_os = "linux")]
const TRIAL_USE: usize = 64 << 20;
/// The trial takes some milliseconds.
#[cfg(target_os = "linux")]
const TRIAL_TIME: std::time::Duration = std::time::Duration::from_secs(5);

/// What a session's group bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Bytes of memory.
    pub(crate) memory: Option<u64>,
    /// Processes and threads.
    pub(crate) pids: Option<u64>,
}

impl Bounds {
    /// The section's, lowered by the session's own.
    pub(crate) fn of(section: &Section, own: &Limits) -> Self {
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        Self {
            memory: least(section.limits.memory, own.memory),
            pids: least(section.limits.pids.map(u64::from), own.pids.map(u64::from)),
        }
    }
}

/// The delegated part of the tree.
#[derive(Debug)]
pub(crate) struct Groups {
    dir: PathBuf,
    controllers: Vec<&'static str>,
}

/// The group of one session. What is still in it when it is dropped is ended.
#[derive(Debug)]
pub(crate) struct Group {
    dir: PathBuf,
}

impl Groups {
    /// Takes the group this process was started in, if it is delegated: moves this process into a leaf below it, so that
    /// controllers can be handed on. `None` when there is none, or others live in it, or it is not ours to change.
    pub(crate) fn take() -> Option<Self> {
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        Self::below(&place(&own, &mounts)?)
    }

    fn below(dir: &Path) -> Option<Self> {
        let own = shoal_sys::process::pid();
        let members = members(dir).ok()?;
        if members != [own] {
            return None;
        }
        let leaf = dir.join("kernel");
        let moved = make_dir(&leaf).and_then(|()| std::fs::write(leaf.join("cgroup.procs"), own.to_string()));
        if moved.is_err() {
            // Made a moment ago, and empty; where it could not be made there is nothing to take away.
            std::fs::remove_dir(&leaf).ok();
            return None;
        }
        let offered = std::fs::read_to_string(dir.join("cgroup.controllers")).unwrap_or_default();
        let enabled = |name: &&'static str| {
            offered.split_whitespace().any(|one| one == *name)
                && std::fs::write(dir.join("cgroup.subtree_control"), format!("+{name}")).is_ok()
        };
        let groups = Self { dir: dir.to_owned(), controllers: CONTROLLERS.into_iter().filter(enabled).collect() };
        groups.sweep();
        Some(groups)
    }

    /// Takes away empty groups of sessions: what a kernel before this one left here when it was killed, and what was not
    /// empty yet when its session ended.
    pub(crate) fn sweep(&self) {
        for entry in std::fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with("session-") {
                // One that still has processes in it is somebody's.
                std::fs::remove_dir(entry.path()).ok();
            }
        }
    }

    fn has(&self, controller: &str) -> bool {
        self.controllers.contains(&controller)
    }

    /// Makes the group of a session. Its name is never used twice: a group that was ended once ends what joins it later.
    pub(crate) fn make(&self, id: SessionId, bounds: Bounds) -> io::Result<Group> {
        let dir = self.dir.join(format!("session-{}-{id}", shoal_sys::process::pid()));
        std::fs::create_dir(&dir)?;
        let group = Group { dir };
        self.bound(&group, bounds)?;
        Ok(group)
    }

    fn bound(&self, group: &Group, bounds: Bounds) -> io::Result<()> {
        if let Some(bytes) = bounds.memory.filter(|_| self.has("memory")) {
            std::fs::write(group.dir.join("memory.max"), bytes.max(LEAST_MEMORY).to_string())?;
            // What is swapped out is memory too. Hosts without swap have no such file.
            let swap = group.dir.join("memory.swap.max");
            if swap.exists() {
                std::fs::write(swap, "0")?;
            }
        }
        if let Some(count) = bounds.pids.filter(|_| self.has("pids")) {
            std::fs::write(group.dir.join("pids.max"), count.to_string())?;
        }
        Ok(())
    }

    /// Whether a group bounds memory, tried by a process that uses more than its group may. The caller has one thread.
    #[cfg(target_os = "linux")]
    pub(crate) fn bounds_memory(&self) -> bool {
        self.has("memory") && self.try_memory().unwrap_or(false)
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn bounds_memory(&self) -> bool {
        false
    }

    #[cfg(target_os = "linux")]
    fn try_memory(&self) -> io::Result<bool> {
        use std::os::fd::AsFd as _;

        use shoal_sys::poll::{Ready, wait};

        let group = self.make(0, Bounds::default())?;
        std::fs::write(group.dir.join("memory.max"), TRIAL_BOUND.to_string())?;
        let (go, gone) = shoal_sys::fd::pipe()?;
        let child = shoal_sys::fork::fork(shoal_sys::fork::Namespaces::default(), || {
            // Until it is in the group.
            if rustix::io::read(&go, &mut [0; 1]).is_err() {
                return 1;
            }
            let used = vec![1_u8; TRIAL_USE];
            u8::from(std::hint::black_box(&used).is_empty())
        })?;
        let joined = group.take_in(child.pid).and_then(|()| Ok(rustix::io::write(&gone, &[1])?));
        let ended = joined.is_ok() && wait(child.pidfd.as_fd(), Ready::READ, Some(TRIAL_TIME))?;
        if !ended {
            child.pidfd.signal(libc::SIGKILL)?;
            wait(child.pidfd.as_fd(), Ready::READ, Some(TRIAL_TIME))?;
        }
        let exit = child.pidfd.try_reap()?;
        Ok(ended && exit == Some(shoal_sys::process::Exit::Signal(9)))
    }
}

impl Group {
    /// Moves a process into the group, and with it everything it will start.
    pub(crate) fn take_in(&self, pid: i32) -> io::Result<()> {
        std::fs::write(self.dir.join("cgroup.procs"), pid.to_string())
    }

    /// The counters of what the memory bound has done, for the launcher; `None` without such a bound.
    pub(crate) fn memory_events(&self) -> Option<OwnedFd> {
        std::fs::File::open(self.dir.join("memory.events")).ok().map(OwnedFd::from)
    }

    /// Ends every process in it at once.
    pub(crate) fn kill(&self) -> io::Result<()> {
        std::fs::write(self.dir.join("cgroup.kill"), "1")
    }

    /// Whether any process is left in it.
    pub(crate) fn is_populated(&self) -> bool {
        members(&self.dir).is_ok_and(|pids| !pids.is_empty())
    }

    /// Takes it away; it must be empty.
    pub(crate) fn remove(&self) -> io::Result<()> {
        std::fs::remove_dir(&self.dir)
    }
}

impl Drop for Group {
    /// Where it was removed there is nothing left to do; what is not empty yet goes with the next sweep.
    fn drop(&mut self) {
        if self.dir.exists() {
            self.kill().ok();
            self.remove().ok();
        }
    }
}

fn make_dir(path: &Path) -> io::Result<()> {
    match std::fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

fn members(dir: &Path) -> io::Result<Vec<i32>> {
    let text = std::fs::read_to_string(dir.join("cgroup.procs"))?;
    Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
}

/// Where the group of `/proc/self/cgroup` lies in the file system, by the mounts of the unified hierarchy.
fn place(own: &str, mounts: &str) -> Option<PathBuf> {
    let path = Path::new(own.lines().find_map(|line| line.strip_prefix("0::"))?);
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        if after.split_whitespace().next() != Some("cgroup2") {
            return None;
        }
        let mut fields = before.split_whitespace().skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        Some(Path::new(point).join(path.strip_prefix(root).ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "31 25 0:27 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n\
                          32 25 0:28 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";

    #[test]
    fn a_group_is_found_by_its_mount() {
        let own = "4:memory:/x\n0::/user.slice/user@1000.service/shoal.service\n";
        let found = place(own, MOUNTS);
        assert_eq!(found, Some("/sys/fs/cgroup/unified/user.slice/user@1000.service/shoal.service".into()));
        assert_eq!(place("0::/a/b\n", "1 2 0:1 /a /mnt rw - cgroup2 none rw\n"), Some("/mnt/b".into()));
        for (own, mounts) in
            [("4:memory:/x\n", MOUNTS), ("0::/\n", ""), ("0::/a\n", "1 2 0:1 /b /mnt rw - cgroup2 none rw\n")]
        {
            assert_eq!(place(own, mounts), None);
        }
    }

    #[test]
    fn bounds_are_written_where_there_are_controllers() {
        let dir = std::env::temp_dir().join(format!("shoal-groups-{}", shoal_sys::process::pid()));
        std::fs::create_dir_all(&dir).unwrap();
        let bounds = Bounds { memory: Some(1 << 30), pids: Some(77) };
        let read = |group: &Group, name: &str| std::fs::read_to_string(group.dir.join(name)).ok();
        let with = |controllers: &[&'static str]| Groups { dir: dir.clone(), controllers: controllers.to_vec() };
        let group = with(&["memory", "pids"]).make(1, bounds).unwrap();
        assert_eq!(read(&group, "memory.max").as_deref(), Some("1073741824"));
        assert_eq!(read(&group, "pids.max").as_deref(), Some("77"));
        let small = Bounds { memory: Some(1), pids: None };
        let group = with(&["memory", "pids"]).make(2, small).unwrap();
        assert_eq!(read(&group, "memory.max"), Some(LEAST_MEMORY.to_string()));
        assert_eq!(read(&group, "pids.max"), None, "no limit asked for");
        let group = with(&[]).make(3, bounds).unwrap();
        assert_eq!((read(&group, "memory.max"), read(&group, "pids.max")), (None, None));
        assert!(!with(&[]).bounds_memory(), "not without the controller");
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_group_that_others_live_in_is_not_taken() {
        let dir = std::env::temp_dir().join(format!("shoal-not-ours-{}", shoal_sys::process::pid()));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("cgroup.procs"), format!("1\n{}\n", shoal_sys::process::pid())).unwrap();
        assert!(Groups::below(&dir).is_none());
        assert!(!dir.join("kernel").exists(), "and nothing was made in it");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
