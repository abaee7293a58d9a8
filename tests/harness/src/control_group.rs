//! A control group that a kernel is given as its own, as a service manager gives one to a unit with `Delegate=yes`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Place;
use crate::place::is_root;

static MADE: AtomicU32 = AtomicU32::new(0);

/// A group of the place's user. It is taken away when this is dropped.
#[derive(Debug)]
pub struct ControlGroup {
    dir: PathBuf,
}

impl ControlGroup {
    /// Makes one in the unified hierarchy; `None` for whoever may not, or where there is no such hierarchy.
    pub fn new(place: &Place) -> Option<Self> {
        if !is_root() {
            return None;
        }
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        let unified = mounts.lines().find_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            after.starts_with("cgroup2 ").then(|| before.split_whitespace().nth(4))?
        })?;
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let dir = Path::new(unified).join(format!("shoal-test-{}-{number}", std::process::id()));
        std::fs::create_dir(&dir).ok()?;
        let user = Some(place.uid());
        for name in ["", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"] {
            std::os::unix::fs::chown(dir.join(name), user, user).expect("root gives files away");
        }
        Some(Self { dir })
    }

    /// The group's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A command that joins the group as root and becomes `program` as the place's user.
    pub fn command(&self, place: &Place, program: &Path) -> Command {
        use std::os::unix::process::CommandExt as _;
        // The group, the user, and the program's own words.
        let script = "group=$0 user=$1; shift; echo $$ > \"$group/cgroup.procs\" && \
                      exec setpriv --reuid \"$user\" --regid \"$user\" --clear-groups \"$@\"";
        let mut command = place.command("/bin/sh");
        command.uid(0).gid(0).args(["-c", script]);
        command.arg(&self.dir).arg(place.uid().to_string()).arg(program);
        command
    }

    /// Directories of the sessions' groups.
    pub fn sessions(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.dir).expect("its directory").flatten().map(|entry| entry.path());
        entries
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("session-")))
            .collect()
    }

    /// The group a process is in, as a path below this one; `None` when it is elsewhere.
    pub fn of(&self, pid: i32) -> Option<PathBuf> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let name = self.dir.file_name().unwrap_or_default();
        let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
        Path::new(path).strip_prefix(name).ok().map(|below| self.dir.join(below))
    }
}

impl Drop for ControlGroup {
    /// The kernel's own leaf stays when it ends: whoever made the group takes it away. A session's never stays.
    fn drop(&mut self) {
        let left = self.sessions();
        for dir in left.iter().map(PathBuf::as_path).chain([self.dir.join("kernel").as_path(), &self.dir]) {
            if std::thread::panicking() {
                std::fs::remove_dir(dir).ok();
            } else {
                // Processes that are on their way out are still in it.
                crate::until("a group is empty", || std::fs::remove_dir(dir).is_ok() || !dir.exists());
            }
        }
        assert!(left.is_empty() || std::thread::panicking(), "left behind: {left:?}");
    }
}
