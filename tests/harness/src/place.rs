//! A place for one kernel: its directories, and the ordinary user they belong to.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use nix::unistd::{Gid, Uid, chown, seteuid};
use tempfile::TempDir;

use crate::programs;

/// First of the ids that no system hands out by itself; a test process adds its own pid, so that tests running at once
/// are different users.
const FIRST_UID: u32 = 1_200_000;

/// One change of user at a time: the effective uid belongs to the whole process.
static ACTING: Mutex<()> = Mutex::new(());

/// Whether the test runs as root.
pub fn is_root() -> bool {
    Uid::effective().is_root()
}

/// Whether there is no other user: in a namespace of users, root is root by name only.
fn is_alone() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map");
    map.is_ok_and(|map| map.split_whitespace().nth(2) == Some("1"))
}

/// Does something as another user, when the test runs as root: a kernel talks to its own user only.
pub fn acting_as<T>(uid: u32, work: impl FnOnce() -> T) -> T {
    let me = Uid::effective();
    if !me.is_root() || uid == 0 {
        return work();
    }
    let _turn = ACTING.lock().unwrap_or_else(PoisonError::into_inner);
    seteuid(Uid::from_raw(uid)).expect("root may act as anybody");
    let result = work();
    seteuid(me).expect("and back");
    result
}

/// A directory for what must be visible inside a jail, which has a `/tmp` of its own: `SHOAL_TEST_DIR`, else `preferred`
/// (the build's own), else, when the build itself lies below `/tmp` or where an ordinary user cannot go, one of the system's
/// or the user's.
pub fn outside_tmp(preferred: &str) -> PathBuf {
    if let Some(named) = std::env::var_os("SHOAL_TEST_DIR") {
        return named.into();
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let system = Uid::effective().is_root().then(|| PathBuf::from("/var/lib"));
    let is_private = |path: &PathBuf| ["/tmp", "/var/tmp", "/dev/shm"].iter().any(|dir| path.starts_with(dir));
    let is_open = |path: &PathBuf| !Uid::effective().is_root() || programs::is_reachable(path);
    let mut places = [Some(preferred.into()), system, home].into_iter().flatten();
    let found = places.find(|path| !is_private(path) && is_open(path));
    found.expect("a directory outside /tmp; name one in SHOAL_TEST_DIR")
}

/// Directories and user of one kernel.
#[derive(Debug)]
pub struct Place {
    dir: TempDir,
    bin: PathBuf,
    uid: Uid,
    state: PathBuf,
}

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}

impl Place {
    /// A fresh place. As root it belongs to a fresh ordinary user, where there are any; else to whoever runs the test.
    pub fn new() -> Self {
        Self::of(Self::ordinary(), Path::new("/tmp"), "state")
    }

    /// A fresh place that is also there inside a jail, whose `/tmp` is its own; the state directory is where a user has
    /// it, deep in the home. `build` is a directory of the build's.
    pub fn visible(build: &str) -> Self {
        Self::of(Self::ordinary(), &outside_tmp(build), "home/.local/state/shoal")
    }

    fn ordinary() -> Uid {
        let me = Uid::effective();
        if me.is_root() && !is_alone() { Uid::from_raw(FIRST_UID + std::process::id()) } else { me }
    }

    /// A place that belongs to root, for what only differs there.
    pub fn of_root() -> Self {
        assert!(Uid::effective().is_root(), "this test needs root");
        Self::of(Uid::from_raw(0), Path::new("/tmp"), "state")
    }

    fn of(uid: Uid, base: &Path, state: &str) -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        // Short, because socket paths are.
        let dir = tempfile::Builder::new().prefix("sh").rand_bytes(8).tempdir_in(base).expect("a temp dir");
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("permissions");
        };
        set(dir.path(), 0o755);
        let bin = programs::reachable(dir.path());
        let state = dir.path().join(state);
        let above: Vec<&Path> = state.ancestors().take_while(|path| *path != dir.path()).collect();
        let fixed = ["run", "home", "work", "tmp"].map(|name| dir.path().join(name));
        for path in fixed.iter().map(PathBuf::as_path).chain(above.into_iter().rev()) {
            std::fs::create_dir_all(path).expect("a directory");
            set(path, 0o700);
            chown(path, Some(uid), Some(Gid::from_raw(uid.as_raw()))).expect("given to the user");
        }
        Self { dir, bin, uid, state }
    }

    /// Programs of its own, which belong to the user, with some of them replaced.
    pub fn with_programs(mut self, replaced: &[(&str, &Path)]) -> Self {
        self.bin = programs::copied(&self.dir.path().join("programs"), replaced);
        for entry in std::fs::read_dir(&self.bin).expect("programs").flatten() {
            self.give(&entry.path());
        }
        self.give(&self.bin);
        self
    }

    /// Gives a file to the user.
    pub fn give(&self, path: &Path) {
        chown(path, Some(self.uid), Some(Gid::from_raw(self.uid.as_raw()))).expect("given to the user");
    }

    /// The state directory.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Path of a name inside the place.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Working directory of sessions.
    pub fn work(&self) -> PathBuf {
        self.path("work")
    }

    /// Path of a program under test.
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// The user.
    pub fn uid(&self) -> u32 {
        self.uid.as_raw()
    }

    /// Section of a policy: the user may do everything.
    pub fn unbounded(&self) -> String {
        format!(
            r#"
[principal."uid:{}"]
opaque = "allow"
auto_apply = "in-grant"
session_write = true
journal_read = true
time = true
env_read = ["*"]
env_write = ["*"]
fs.read = ["/**"]
fs.write = ["/**"]
fs.delete = ["/**"]
"#,
            self.uid
        )
    }

    /// A command that runs as the user, in the place's work directory, with an environment of its own and null stdin.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.work())
            .env_clear()
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", self.bin.display()))
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("SHOAL_STATE_DIR", &self.state)
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        if Uid::effective().is_root() && !self.uid.is_root() {
            command.uid(self.uid.as_raw()).gid(self.uid.as_raw());
        }
        command
    }

    /// A command for one of the programs under test.
    pub fn shoal(&self, program: &str) -> Command {
        self.command(self.program(program))
    }

    /// Writes a file in the work directory, owned by the user.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work().join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).expect("parents");
        }
        std::fs::write(&path, bytes).expect("written");
        // A name may lead out of the work directory, never out of the place.
        for part in path.ancestors().take_while(|p| **p != self.work() && p.starts_with(self.dir.path())) {
            self.give(part);
        }
        path
    }
}
