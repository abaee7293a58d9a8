//! The two views of the file system a session can have.
//!
//! *Deny*: the host's tree with holes. For sections that grant `/` in some way. *Allow*: a new tree in memory with what
//! is granted and what programs need to run. For all others. In both, temporary files, shared memory, terminals,
//! processes and message queues are the session's own.

use std::path::{Path, PathBuf};

use shoal_proto::supervisor_launcher::Access;

use crate::lower::Roots;
use crate::plan::Order;
use crate::protect::{self, within};
use crate::step::{Depth, Step};
use crate::{alias, holes};

/// What is in memory may not eat the host's.
const TMP: &str = "mode=1777,size=1g,nr_inodes=200k";
const SHM: &str = "mode=1777,size=512m";
const SMALL: &str = "mode=0755,size=1m,nr_inodes=1k";
/// The new root: directories and links only.
const ROOT: &str = "mode=0755,size=4m,nr_inodes=20k";

/// Directories that programs need to run.
const SYSTEM: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store", "/gnu/store"];
/// Devices without a state of their own.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];
/// Parts of `/proc` that change the host; a kernel run by root could write them.
const PROC_READ_ONLY: &[&str] = &["sys", "sysrq-trigger", "irq", "bus", "fs"];
/// Where the new root is made; whatever the host has there is not in it.
const NEW_ROOT: &str = "/tmp";

/// What is kept before it is covered, and where it comes back.
#[derive(Default)]
struct Kept {
    steps: Vec<Step>,
    back: Vec<(PathBuf, bool)>,
}

impl Kept {
    fn keep(&mut self, path: &Path) {
        self.steps.push(Step::Keep(path.to_owned()));
        self.back.push((path.to_owned(), path.is_dir()));
    }

    fn attach(&self, prefix: &Path) -> Vec<Step> {
        let one = |(number, (path, is_dir)): (usize, &(PathBuf, bool))| {
            let at = within(prefix, path);
            [if *is_dir { Step::Dir(at.clone()) } else { Step::File(at.clone()) }, Step::Attach(number, at)]
        };
        self.back.iter().enumerate().flat_map(one).collect()
    }
}

/// The host's tree with holes.
pub(crate) fn deny(order: &Order<'_>, roots: &Roots) -> Vec<Step> {
    let root = Path::new("/");
    let mut steps = vec![Step::Private];
    let hidden = hidden_dirs(order);
    let mut kept = Kept::default();
    for path in granted_below_tmp(order, roots) {
        kept.keep(&path);
    }
    for path in granted_sockets(order).filter(|path| hidden.iter().any(|dir| path.starts_with(dir))) {
        kept.keep(&path);
    }
    steps.append(&mut kept.steps);
    steps.extend(protected(order, roots, root));
    // A hole that has a granted socket in it gets it back, so it is writable until then.
    for dir in &hidden {
        let reopened = kept.back.iter().any(|(path, _)| path.starts_with(dir));
        steps.push(if reopened { Step::Memory(dir.clone(), SMALL) } else { Step::Hide(dir.clone()) });
    }
    let granted: Vec<PathBuf> = granted_sockets(order).collect();
    steps.extend(
        holes::files(order.kernel.home.as_deref(), &hidden)
            .into_iter()
            .filter(|file| !granted.contains(file))
            .map(Step::Cover),
    );
    steps.push(Step::Memory("/tmp".into(), TMP));
    if Path::new("/sys").is_dir() {
        steps.extend([Step::Pin("/sys".into()), Step::ReadOnly("/sys".into(), Depth::Below)]);
    }
    steps.extend(devices(order, root));
    steps.extend(kept.attach(root));
    steps.extend(protected_again(order, &kept));
    for dir in hidden.iter().filter(|dir| kept.back.iter().any(|(path, _)| path.starts_with(dir))) {
        steps.push(Step::ReadOnly(dir.clone(), Depth::Alone));
    }
    steps.extend(processes(root));
    steps.push(Step::Present("/".into()));
    steps
}

/// A new tree with what is granted.
pub(crate) fn allow(order: &Order<'_>, roots: &Roots) -> Vec<Step> {
    let root = Path::new(NEW_ROOT);
    let mut steps = vec![Step::Private];
    let mut kept = Kept::default();
    // A grant of all of /tmp is a grant of the session's own.
    for dir in outermost(roots).into_iter().filter(|dir| *dir != Path::new("/tmp")) {
        kept.keep(dir);
    }
    for path in granted_sockets(order) {
        kept.keep(&path);
    }
    let resolver = resolver();
    if let Some(file) = &resolver {
        kept.keep(file);
    }
    steps.append(&mut kept.steps);
    steps.push(Step::Memory(root.to_owned(), ROOT));
    for dir in SYSTEM {
        steps.extend(system_dir(Path::new(dir), root));
    }
    for dir in ["tmp", "proc", "dev", "run", "var/tmp"] {
        steps.push(Step::Dir(root.join(dir)));
    }
    steps.extend([Step::Memory(root.join("tmp"), TMP), Step::Memory(root.join("var/tmp"), TMP)]);
    if let Some(home) = order.kernel.home.as_deref() {
        steps.push(Step::Dir(within(root, home)));
    }
    steps.extend(kept.attach(root));
    for (dir, access) in &roots.0 {
        if !access.has(Access::WRITE) && !access.has(Access::DELETE) && !roots.may_change(dir) {
            steps.push(Step::ReadOnly(within(root, dir), Depth::Below));
        }
    }
    steps.extend(protected_if_there(order, roots, root));
    steps.extend(services_if_there(order, roots, root));
    steps.extend(devices(order, root));
    steps.extend(processes(root));
    steps.extend([Step::ReadOnly(root.to_owned(), Depth::Alone), Step::Root(root.to_owned())]);
    steps
}

/// The kernel's own places: state directory, socket, programs; and, in writable trees, what the human's programs obey.
fn protected(order: &Order<'_>, roots: &Roots, prefix: &Path) -> Vec<Step> {
    let kernel = order.kernel;
    let aliases = alias::others(&kernel.hidden);
    // On the host's own tree all of /tmp is covered, and what comes back is looked at then.
    let covered = |path: &PathBuf| prefix == Path::new("/") && path.starts_with("/tmp");
    let hidden: Vec<PathBuf> = kernel.hidden.iter().chain(&aliases).filter(|path| !covered(path)).cloned().collect();
    let mut fixed: Vec<PathBuf> = kernel.fixed.clone();
    if let Some(home) = kernel.home.as_deref().filter(|home| roots.may_change(home)) {
        fixed.extend(protect::in_home(home));
    }
    if order.section.git_safe {
        fixed.extend(protect::in_repository(order.cwd));
        fixed.extend(roots.0.keys().flat_map(|root| protect::in_repository(root)));
    }
    fixed.retain(|path| !covered(path) && !hidden.iter().any(|dir| path.starts_with(dir)));
    fixed.sort();
    fixed.dedup();
    let mut steps = protect::pins(hidden.iter().chain(&fixed), prefix);
    steps.extend(hide(&hidden, prefix));
    steps.extend(protect::read_only(&fixed, prefix));
    steps
}

fn hide(places: &[PathBuf], prefix: &Path) -> Vec<Step> {
    let one = |path: &PathBuf| {
        let at = within(prefix, path);
        if path.is_dir() { Step::Hide(at) } else { Step::Cover(at) }
    };
    places.iter().map(one).collect()
}

/// The kernel's own places inside what came back into the private `/tmp`.
fn protected_again(order: &Order<'_>, kept: &Kept) -> Vec<Step> {
    let root = Path::new("/");
    let came_back = |path: &&PathBuf| kept.back.iter().any(|(dir, _)| path.starts_with(dir));
    let hidden: Vec<PathBuf> = order.kernel.hidden.iter().filter(came_back).cloned().collect();
    let fixed: Vec<PathBuf> = order.kernel.fixed.iter().filter(came_back).cloned().collect();
    let mut steps = protect::pins(hidden.iter().chain(&fixed), root);
    steps.extend(hide(&hidden, root));
    steps.extend(protect::read_only(&fixed, root));
    steps
}

/// The same inside a new tree, for what a granted root brought into it.
fn protected_if_there(order: &Order<'_>, roots: &Roots, prefix: &Path) -> Vec<Step> {
    let inside = |step: &Step| {
        let (Step::Pin(path) | Step::Hide(path) | Step::Cover(path) | Step::ReadOnly(path, _)) = step else {
            return true;
        };
        let host = Path::new("/").join(path.strip_prefix(prefix).unwrap_or(path));
        roots.0.keys().any(|root| host.starts_with(root))
    };
    protected(order, roots, prefix).into_iter().filter(inside).collect()
}

/// Control sockets that a granted tree brought into a new one.
fn services_if_there(order: &Order<'_>, roots: &Roots, prefix: &Path) -> Vec<Step> {
    let granted: Vec<PathBuf> = granted_sockets(order).collect();
    let dirs = hidden_dirs(order);
    let inside = |path: &&PathBuf| roots.0.keys().any(|root| path.starts_with(root));
    let closed = |dir: &&PathBuf| !granted.iter().any(|socket| socket.starts_with(dir));
    let hidden = dirs.iter().filter(inside).filter(closed).map(|dir| Step::Hide(within(prefix, dir)));
    let files = holes::files(order.kernel.home.as_deref(), &dirs);
    let files: Vec<PathBuf> = files.into_iter().filter(|file| !granted.contains(file)).collect();
    hidden.chain(files.iter().filter(inside).map(|file| Step::Cover(within(prefix, file)))).collect()
}

fn hidden_dirs(order: &Order<'_>) -> Vec<PathBuf> {
    let kernel = order.kernel;
    let dirs = holes::dirs(kernel.home.as_deref(), kernel.runtime.as_deref());
    dirs.into_iter().filter(|dir| !dir.starts_with("/tmp") && !kernel.hidden.contains(dir)).collect()
}

fn granted_sockets(order: &Order<'_>) -> impl Iterator<Item = PathBuf> {
    let paths = order.section.unix_sockets.as_slice().iter();
    // The kernel's own socket is never granted.
    let own = order.kernel.hidden.clone();
    paths
        .filter_map(|path| std::fs::canonicalize(path.as_str()).ok())
        .filter(move |path| !own.iter().any(|hidden| path.starts_with(hidden)))
}

/// The session's directory and every granted tree below `/tmp`, which is covered by a private one.
fn granted_below_tmp(order: &Order<'_>, roots: &Roots) -> Vec<PathBuf> {
    let tmp = Path::new("/tmp");
    let below = |path: &&PathBuf| path.starts_with(tmp) && *path != tmp;
    let cwd = Some(order.cwd.to_owned()).filter(|cwd| holes::may_come_along(cwd));
    let hidden = |path: &PathBuf| order.kernel.hidden.iter().any(|hidden| path.starts_with(hidden));
    let mut all: Vec<PathBuf> = roots.0.keys().chain(&cwd).filter(below).cloned().collect();
    all.retain(|path| path.exists() && !hidden(path));
    all.sort();
    all.dedup();
    all.iter().filter(|path| !all.iter().any(|other| other != *path && path.starts_with(other))).cloned().collect()
}

/// Granted trees that are not below another one.
fn outermost(roots: &Roots) -> Vec<&Path> {
    let below = |path: &PathBuf| roots.0.keys().any(|other| other != path && path.starts_with(other));
    roots.0.keys().filter(|path| !below(path) && !is_system(path)).map(PathBuf::as_path).collect()
}

fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|dir| path.starts_with(dir))
}

/// A directory of the system, read-only; where the host has a link, the same link.
fn system_dir(dir: &Path, prefix: &Path) -> Vec<Step> {
    let at = within(prefix, dir);
    match std::fs::read_link(dir) {
        Ok(target) => vec![Step::Link(target, at)],
        Err(_) if dir.is_dir() => {
            vec![Step::Dir(at.clone()), Step::Bind(dir.to_owned(), at.clone()), Step::ReadOnly(at, Depth::Below)]
        }
        Err(_) => Vec::new(),
    }
}

/// The file that `/etc/resolv.conf` leads to, when it lies outside `/etc`: that one file, never its directory, which
/// holds the resolver's control sockets.
fn resolver() -> Option<PathBuf> {
    let file = std::fs::canonicalize("/etc/resolv.conf").ok()?;
    (!is_system(&file)).then_some(file)
}

/// Terminals, shared memory and queues of the session's own. A new tree, and a kernel run by root, gets only devices
/// without a state; else the host's stay, under the user's own rights.
fn devices(order: &Order<'_>, prefix: &Path) -> Vec<Step> {
    let dev = prefix.join("dev");
    let mut steps = Vec::new();
    let fresh = prefix != Path::new("/") || order.kernel.uid == 0;
    if fresh {
        let host = DEVICES.iter().map(|name| Path::new("/dev").join(name)).filter(|path| path.exists());
        let host: Vec<PathBuf> = host.collect();
        // On the host's own tree the devices are covered before they can be shown again, so they are shown elsewhere
        // first.
        let scratch = prefix.join("tmp/.dev");
        steps.extend([Step::Dir(scratch.clone()), Step::Memory(scratch.clone(), SMALL)]);
        for device in &host {
            let at = scratch.join(device.file_name().unwrap_or_default());
            steps.extend([Step::File(at.clone()), Step::Bind(device.clone(), at)]);
        }
        for (name, target) in [
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
            ("ptmx", "pts/ptmx"),
        ] {
            steps.push(Step::Link(target.into(), scratch.join(name)));
        }
        for name in ["pts", "shm", "mqueue"] {
            steps.push(Step::Dir(scratch.join(name)));
        }
        steps.push(Step::Bind(scratch, dev.clone()));
    }
    steps.push(Step::Terminals(dev.join("pts")));
    if !fresh && !std::fs::symlink_metadata("/dev/ptmx").is_ok_and(|meta| meta.is_symlink()) {
        steps.push(Step::Bind("/dev/pts/ptmx".into(), "/dev/ptmx".into()));
    }
    if fresh || Path::new("/dev/shm").is_dir() {
        steps.push(Step::Memory(dev.join("shm"), SHM));
    }
    if fresh || Path::new("/dev/mqueue").is_dir() {
        steps.push(Step::Queues(dev.join("mqueue")));
    }
    if fresh {
        steps.push(Step::ReadOnly(dev, Depth::Alone));
    }
    steps
}

/// Processes of the jail, and no more user namespaces in it.
fn processes(prefix: &Path) -> Vec<Step> {
    let proc = prefix.join("proc");
    let mut steps = vec![
        Step::Proc(proc.clone()),
        // Nested user namespaces hold capabilities over more of the kernel than a session should reach.
        Step::Setting(proc.join("sys/user/max_user_namespaces"), "0"),
    ];
    for name in PROC_READ_ONLY.iter().filter(|name| Path::new("/proc").join(name).exists()) {
        steps.extend([Step::Pin(proc.join(name)), Step::ReadOnly(proc.join(name), Depth::Below)]);
    }
    steps
}
