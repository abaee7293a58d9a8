//! On the kernel's files, and on those of the user's that other programs obey.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::{Attack, Targets, attack};

pub(super) const ATTACKS: &[Attack] = &[
    attack("A19-program", |t| append(&t.programs.join("shoal-policy"))),
    attack("A20-create", |t| append(&t.state.join("new"))),
    attack("A20-descriptor-of-parent", beside),
    attack("A20-link", by_link),
    attack("A20-list", |t| std::fs::read_dir(&t.state).and_then(first)),
    attack("A20-open", |t| read(&t.state.join("lock"))),
    attack("A20-path-only", |t| path_only(&t.state.join("lock"))),
    attack("A20-through-root", |t| read(&through_root(&t.state).join("lock"))),
    attack("A20-write", |t| append(&t.state.join("lock"))),
    attack("A21-attribute", attribute),
    attack("A21-mode", |t| Ok(rustix::fs::chmod(&t.state, Mode::RWXU)?)),
    attack("A21-stat", |t| std::fs::metadata(t.state.join("lock")).map(drop)),
    attack("A21-times", times),
    attack("A22-ancestor-1", |t| swap(&t.state)),
    attack("A22-ancestor-2", |t| swap(above(&t.state, 1))),
    attack("A22-ancestor-3", |t| swap(above(&t.state, 2))),
    attack("A22-ancestor-4", |t| swap(above(&t.state, 3))),
    attack("A23-lock", |t| lock(&t.state.join("lock"))),
    attack("A28-autostart", |t| append(&t.home.join(".config/autostart/x.desktop"))),
    attack("A28-autostart-new", |t| create(&t.home.join(".config/autostart/new.desktop"))),
    attack("A28-direnv", |t| append(&t.work.join(".envrc"))),
    attack("A28-editor", |t| append(&t.work.join(".vscode/tasks.json"))),
    attack("A28-editor-new", |t| create(&t.work.join(".vscode/launch.json"))),
    attack("A28-git", |t| append(&t.home.join(".gitconfig"))),
    attack("A28-shell", |t| append(&t.home.join(".bashrc"))),
    attack("A28-ssh", |t| append(&t.home.join(".ssh/authorized_keys"))),
    attack("A28-swap", |t| swap(&t.home.join(".ssh"))),
    attack("A29-attributes", |t| append(&t.work.join(".git/info/attributes"))),
    attack("A29-config", |t| append(&t.work.join(".git/config"))),
    attack("A29-hook", |t| append(&t.work.join(".git/hooks/pre-commit"))),
    attack("A29-swap", |t| swap(&t.work.join(".git"))),
    attack("A29-swap-root", |t| swap(&t.work)),
    attack("A30-directories", |_| directories()),
    attack("A33-link", link),
    attack("A33-move", moved),
    attack("A34-reopen", |t| reopen(&t.home.join(".bashrc"))),
];

fn append(path: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).open(path).map(drop)
}

/// A file that is not there yet, and away again.
fn create(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(path)?;
    std::fs::remove_file(path)
}

fn read(path: &Path) -> io::Result<()> {
    File::open(path)?.read(&mut [0; 1]).map(drop)
}

fn first(mut dir: std::fs::ReadDir) -> io::Result<()> {
    dir.next().ok_or_else(|| io::Error::other("empty"))?.map(drop)
}

fn path_only(path: &Path) -> io::Result<()> {
    Ok(openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map(drop)?)
}

fn above(path: &Path, levels: usize) -> &Path {
    path.ancestors().nth(levels).unwrap_or(path)
}

/// The same file by the name of the process's own root.
fn through_root(path: &Path) -> PathBuf {
    Path::new("/proc/self/root").join(path.strip_prefix("/").unwrap_or(path))
}

/// From a descriptor of the directory above, which is not the kernel's.
fn beside(targets: &Targets) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = openat(CWD, above(&targets.state, 1), flags, Mode::empty())?;
    let name = Path::new(targets.state.file_name().unwrap_or_default()).join("lock");
    let file = openat(&parent, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    File::from(file).read(&mut [0; 1]).map(drop)
}

/// By a symbolic link in a place of the session's own.
fn by_link(targets: &Targets) -> io::Result<()> {
    let name = targets.work.join(format!("link-{}", shoal_sys::process::pid()));
    std::os::unix::fs::symlink(&targets.state, &name)?;
    let result = read(&name.join("lock"));
    std::fs::remove_file(&name)?;
    result
}

fn attribute(targets: &Targets) -> io::Result<()> {
    Ok(rustix::fs::setxattr(&targets.state, c"user.shoal", b"x", rustix::fs::XattrFlags::empty())?)
}

fn times(targets: &Targets) -> io::Result<()> {
    let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
    let times = rustix::fs::Timestamps { last_access: now, last_modification: now };
    Ok(rustix::fs::utimensat(CWD, &targets.state, &times, rustix::fs::AtFlags::empty())?)
}

/// Moves a directory away, where another could be put in its place, and back.
fn swap(path: &Path) -> io::Result<()> {
    let mut away = path.as_os_str().to_owned();
    away.push(".away");
    std::fs::rename(path, &away)?;
    std::fs::rename(&away, path)
}

fn lock(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    // Held by the kernel when it is the kernel's file: to get as far as asking is the attack.
    shoal_sys::lock::try_exclusive(&file).map(drop)
}

fn link(targets: &Targets) -> io::Result<()> {
    let name = targets.work.join("stolen");
    std::fs::hard_link(targets.state.join("lock"), &name)?;
    std::fs::remove_file(name)
}

fn moved(targets: &Targets) -> io::Result<()> {
    let (from, to) = (targets.state.join("lock"), targets.work.join("stolen"));
    std::fs::rename(&from, &to)?;
    std::fs::rename(&to, &from)
}

/// Opens a file that may be read once more, by its descriptor, to write.
fn reopen(path: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let file = File::open(path)?;
    append(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))
}

/// A file or directory of somebody else's among the descriptors this process was started with.
fn directories() -> io::Result<()> {
    let mut found = None;
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let entry = entry?;
        let number: i32 = entry.file_name().to_string_lossy().parse().unwrap_or(0);
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        let harmless = ["/proc", "/dev", "/memfd:"].iter().any(|start| target.to_string_lossy().starts_with(start));
        if number > 2 && target.is_absolute() && !harmless {
            found = Some(target);
        }
    }
    found.map(drop).ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))
}
