//! `/proc`.

use std::io;

use super::Process;

/// A process by number; `None` when there is none.
pub fn process(pid: i32) -> io::Result<Option<Process>> {
    match std::fs::read(format!("/proc/{pid}/stat")) {
        Ok(bytes) => Ok(parse(&bytes)),
        Err(e) if e.kind() == io::ErrorKind::NotFound || e.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Every process that can be seen. One that ends while this runs may be missing or there.
pub fn processes() -> io::Result<Vec<Process>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        all.extend(process(pid)?);
    }
    Ok(all)
}

/// The pid that a process has in the innermost pid namespace it is in; `None` when there is no such process.
pub fn inner_pid(pid: i32) -> io::Result<Option<i32>> {
    let pids = status(pid, "NSpid:")?;
    Ok(pids.and_then(|pids| pids.split_ascii_whitespace().last()?.parse().ok()))
}

/// What the limit of processes counts for a user: the threads of the processes that can be seen.
pub fn tasks_of(uid: u32) -> io::Result<u64> {
    let mut tasks = 0;
    for process in processes()? {
        // Real, effective, saved, file system: the first is counted.
        let uids = status(process.pid, "Uid:")?;
        let real = uids.and_then(|uids| uids.split_ascii_whitespace().next()?.parse::<u32>().ok());
        tasks += if real == Some(uid) { u64::from(process.threads) } else { 0 };
    }
    Ok(tasks)
}

/// The rest of a line of a process's `status`.
fn status(pid: i32, name: &str) -> io::Result<Option<String>> {
    match std::fs::read_to_string(format!("/proc/{pid}/status")) {
        Ok(text) => Ok(text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned)),
        Err(e) if e.kind() == io::ErrorKind::NotFound || e.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(e) => Err(e),
    }
}

/// How many threads this process has.
pub fn own_threads() -> io::Result<u32> {
    let own = process(crate::process::pid())?;
    own.map(|p| p.threads).ok_or_else(|| io::Error::other("/proc/self is missing"))
}

/// Reads a `stat` line. The name is in parentheses and may itself hold parentheses and spaces, so what follows is
/// counted from the last one.
fn parse(line: &[u8]) -> Option<Process> {
    let open = line.iter().position(|&b| b == b'(')?;
    let close = line.iter().rposition(|&b| b == b')')?;
    let pid = std::str::from_utf8(line.get(..open)?).ok()?.trim().parse().ok()?;
    let comm = String::from_utf8_lossy(line.get(open + 1..close)?);
    let rest: Vec<&str> = std::str::from_utf8(line.get(close + 1..)?).ok()?.split_ascii_whitespace().collect();
    // Fields are numbered from 1 in proc(5); the state is 3.
    let field = |number: usize| rest.get(number - 3).copied();
    let pages: u64 = field(24)?.parse().ok()?;
    Some(Process {
        pid,
        ppid: field(4)?.parse().ok()?,
        group: field(5)?.parse().ok()?,
        session: field(6)?.parse().ok()?,
        comm: comm.chars().map(|c| if c.is_control() { '?' } else { c }).collect(),
        state: field(3)?.chars().next()?,
        threads: field(20)?.parse().ok()?,
        rss: pages * page_size(),
        start: field(22)?.parse().ok()?,
    })
}

fn page_size() -> u64 {
    // Not through rustix: it would read /proc/self/auxv, which a process that hides its memory cannot.
    // SAFETY: takes a constant, no memory.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_does_not_shift_the_fields() {
        let tail = "S 7 8 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 0 0 2 0";
        let got = parse(format!("5 (a) R (b\n) {tail}").as_bytes()).unwrap();
        assert_eq!((got.pid, got.ppid, got.group, got.session, got.state), (5, 7, 8, 9, 'S'));
        assert_eq!((got.comm.as_str(), got.threads, got.rss), ("a) R (b?", 3, 2 * page_size()));
        assert_eq!(parse(b"5 (short) S 1"), None);
    }
}
