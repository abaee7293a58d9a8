//! The steps from a process in new namespaces to one in a jail, as data, and how each is taken.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use shoal_sys::mount;

use crate::failed::Failed;

/// One step; paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Cut the mounts off from the host's.
    Private,
    /// Keep a copy of what is mounted at a path, to be attached later; copies are numbered from 0.
    Keep(PathBuf),
    /// Attach a kept copy.
    Attach(usize, PathBuf),
    /// Mount a path on itself, so that its name stays.
    Pin(PathBuf),
    /// Cover a directory with an empty one that cannot be changed.
    Hide(PathBuf),
    /// Cover a file with one that has nothing in it.
    Cover(PathBuf),
    /// Show something somewhere else.
    Bind(PathBuf, PathBuf),
    /// Make a mount read-only, with everything below it or alone.
    ReadOnly(PathBuf, Depth),
    /// An empty directory in memory.
    Memory(PathBuf, &'static str),
    /// A directory, with those above it.
    Dir(PathBuf),
    /// A file to attach something to, with the directories above it.
    File(PathBuf),
    /// A file with a text in it.
    Text(PathBuf, String),
    /// A symbolic link, as target and name.
    Link(PathBuf, PathBuf),
    /// The processes of the jail.
    Proc(PathBuf),
    /// Terminals of the jail's own.
    Terminals(PathBuf),
    /// Message queues of the jail's own.
    Queues(PathBuf),
    /// Write a setting of the kernel.
    Setting(PathBuf, &'static str),
    /// Bring up the loopback device.
    Loopback,
    /// Make a directory the root.
    Root(PathBuf),
    /// The session's directory must be there.
    Present(PathBuf),
}

/// How far a step reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The mount itself.
    Alone,
    /// And everything mounted below it.
    Below,
}

impl Step {
    /// The step in words, to follow "cannot".
    pub fn words(&self) -> String {
        let named = |what: &str, path: &Path| format!("{what} {}", path.display());
        match self {
            Self::Private => "cut the mounts off from the host's".to_owned(),
            Self::Keep(path) => named("keep", path),
            Self::Attach(_, path) => named("attach", path),
            Self::Pin(path) => named("pin", path),
            Self::Hide(path) => named("hide", path),
            Self::Cover(path) => named("cover", path),
            Self::Bind(_, path) => named("bind", path),
            Self::ReadOnly(path, _) => named("make read-only", path),
            Self::Memory(path, _) => named("mount memory at", path),
            Self::Dir(path) => named("make the directory", path),
            Self::File(path) | Self::Text(path, _) => named("make the file", path),
            Self::Link(_, path) => named("make the link", path),
            Self::Proc(path) => named("mount processes at", path),
            Self::Terminals(path) => named("mount terminals at", path),
            Self::Queues(path) => named("mount message queues at", path),
            Self::Setting(path, _) => named("write", path),
            Self::Loopback => "bring up the loopback device".to_owned(),
            Self::Root(path) => named("enter the root", path),
            Self::Present(path) => named("enter the session's directory", path),
        }
    }

    fn take(&self, kept: &mut Vec<OwnedFd>) -> io::Result<()> {
        match self {
            Self::Private => mount::make_private(),
            Self::Keep(path) => mount::detached(path).map(|tree| kept.push(tree)),
            Self::Attach(number, path) => {
                let tree = kept.get(*number).ok_or(io::ErrorKind::NotFound)?;
                mount::attach(tree, path)
            }
            Self::Pin(path) => mount::pin(path),
            // One inode, nothing allowed to anyone, read-only: it belongs to the session's user, who could otherwise
            // change its mode and plant something in it.
            Self::Hide(path) => mount::tmpfs(path, "mode=0,nr_inodes=2,size=4k", true),
            Self::Cover(path) => mount::bind(Path::new("/dev/null"), path),
            Self::Bind(from, to) => mount::bind(from, to),
            Self::ReadOnly(path, depth) => mount::make_read_only(path, *depth == Depth::Below),
            Self::Memory(path, options) => mount::tmpfs(path, options, false),
            Self::Dir(path) => make_dir(path),
            Self::File(path) => make_file(path, ""),
            Self::Text(path, text) => make_file(path, text),
            Self::Link(target, path) => std::os::unix::fs::symlink(target, path),
            Self::Proc(path) => mount::proc(path),
            Self::Terminals(path) => mount::devpts(path),
            Self::Queues(path) => mount::mqueue(path),
            Self::Setting(path, text) => std::fs::write(path, text),
            Self::Loopback => mount::loopback_up(),
            Self::Root(path) => mount::enter_root(path),
            Self::Present(path) => std::env::set_current_dir(path),
        }
    }
}

/// Takes all steps in order; the first that fails is the last.
pub(crate) fn take_all(steps: &[Step]) -> Result<(), Failed> {
    let mut kept = Vec::new();
    for step in steps {
        step.take(&mut kept).map_err(|error| Failed {
            step: step.words(),
            error,
            no_such_dir: matches!(step, Step::Present(_)),
        })?;
    }
    Ok(())
}

fn make_dir(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o755).create(path)
}

fn make_file(path: &Path, text: &str) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        make_dir(dir)?;
    }
    std::fs::write(path, text)
}
