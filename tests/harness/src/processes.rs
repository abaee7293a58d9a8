//! Processes as the machine shows them.

use std::path::Path;

use crate::Place;

/// One process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Pid.
    pub pid: i32,
    /// Parent's pid.
    pub ppid: i32,
    /// Name.
    pub comm: String,
    /// State letter; `Z` is a zombie.
    pub state: char,
}

/// Every process that can be read now.
pub fn all() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|e| {
            let pid: i32 = e.file_name().to_str()?.parse().ok()?;
            read(pid)
        })
        .collect()
}

/// One process, when it is there.
pub fn read(pid: i32) -> Option<Process> {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    let (head, tail) = stat.rsplit_once(") ")?;
    let comm = head.split_once('(')?.1.to_owned();
    let mut fields = tail.split(' ');
    let state = fields.next()?.chars().next()?;
    let ppid = fields.next()?.parse().ok()?;
    Some(Process { pid, ppid, comm, state })
}

/// Resident memory of a process that is no file's, in KiB; 0 for one that is gone.
pub fn anonymous_kib(pid: i32) -> u64 {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|kib| kib.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// A process and everything below it, itself first.
pub fn tree(root: i32) -> Vec<Process> {
    let all = all();
    let mut found: Vec<Process> = all.iter().filter(|p| p.pid == root).cloned().collect();
    let mut at = 0;
    while let Some(parent) = found.get(at).map(|p| p.pid) {
        found.extend(all.iter().filter(|p| p.ppid == parent).cloned());
        at += 1;
    }
    found
}

/// Kernels whose socket is in the place: those that a client of the place started.
///
/// The user does not tell them apart: an ordinary user's tests all run as that user.
pub fn kernels_of(place: &Place) -> Vec<Process> {
    let run = place.path("run").into_os_string().into_encoded_bytes();
    let is_in_place = |pid: i32| {
        let words = std::fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline"));
        words.is_ok_and(|words| words.windows(run.len()).any(|part| part == run))
    };
    all().into_iter().filter(|process| process.comm == "shoal-kernel" && is_in_place(process.pid)).collect()
}

/// Ends the kernels of a place that no test started itself, and waits for them.
pub fn end_kernels_of(place: &Place) {
    for kernel in kernels_of(place) {
        signal(kernel.pid, nix::sys::signal::Signal::SIGTERM);
        crate::until("the kernel ends", || !is_running(kernel.pid));
    }
}

/// Whether a process runs; a zombie does not, unless threads of it are left, which still hold what it held.
pub fn is_running(pid: i32) -> bool {
    let threads = || std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    read(pid).is_some_and(|p| p.state != 'Z' || threads() > 1)
}

/// Sends a signal to a host pid.
pub fn signal(pid: i32, signal: nix::sys::signal::Signal) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).expect("the process is there");
}
