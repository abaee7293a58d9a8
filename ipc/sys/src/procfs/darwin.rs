//! libproc: what `ps` reads on macOS.

use std::io;

use super::Process;

/// Flavours of `proc_pidinfo`, from `sys/proc_info.h`.
const BSD_INFO: libc::c_int = 3;
const TASK_INFO: libc::c_int = 4;
/// Status numbers, from `sys/proc.h`.
const STATES: [(u32, char); 5] = [(1, 'I'), (2, 'R'), (3, 'S'), (4, 'T'), (5, 'Z')];

/// A process by number; `None` when there is none, or when it belongs to somebody else and may not be looked at.
pub fn process(pid: i32) -> io::Result<Option<Process>> {
    // SAFETY: zeroed memory is a valid proc_bsdinfo (integers only).
    let mut bsd: libc::proc_bsdinfo = unsafe { std::mem::zeroed() };
    // 1: a process that has ended and was not reaped is found, too.
    if !info(pid, BSD_INFO, 1, &mut bsd)? {
        return Ok(None);
    }
    // SAFETY: zeroed memory is a valid proc_taskinfo (integers only).
    let mut task: libc::proc_taskinfo = unsafe { std::mem::zeroed() };
    let has_task = info(pid, TASK_INFO, 0, &mut task)?;
    let comm = bsd.pbi_comm.iter().map(|&c| c.cast_unsigned()).take_while(|&c| c != 0).collect::<Vec<u8>>();
    let state = STATES.iter().find(|(number, _)| *number == bsd.pbi_status).map_or('?', |(_, letter)| *letter);
    // SAFETY: takes a number; a process that is gone answers -1.
    let session = unsafe { libc::getsid(pid) };
    Ok(Some(Process {
        pid,
        ppid: i32::try_from(bsd.pbi_ppid).unwrap_or(0),
        group: i32::try_from(bsd.pbi_pgid).unwrap_or(0),
        session,
        comm: String::from_utf8_lossy(&comm).chars().map(|c| if c.is_control() { '?' } else { c }).collect(),
        state,
        threads: if has_task { u32::try_from(task.pti_threadnum).unwrap_or(0) } else { 0 },
        rss: if has_task { task.pti_resident_size } else { 0 },
        start: bsd.pbi_start_tvsec.saturating_mul(1_000_000).saturating_add(bsd.pbi_start_tvusec),
    }))
}

/// Fills `value`; false when there is no such process or it may not be looked at.
fn info<T>(pid: i32, flavour: libc::c_int, arg: u64, value: &mut T) -> io::Result<bool> {
    let size = libc::c_int::try_from(size_of::<T>()).unwrap_or(0);
    // SAFETY: the kernel writes at most `size` bytes, the size of the live value; both callers pass structures of
    // integers that the flavour names.
    let got = unsafe { libc::proc_pidinfo(pid, flavour, arg, std::ptr::from_mut(value).cast(), size) };
    if got == size {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ESRCH | libc::EPERM) => Ok(false),
        _ => Err(error),
    }
}

/// Every process that can be seen. One that ends while this runs may be missing or there.
pub fn processes() -> io::Result<Vec<Process>> {
    // SAFETY: a null buffer of no size asks for the number of processes.
    let count = unsafe { libc::proc_listallpids(std::ptr::null_mut(), 0) };
    // Some may start between the two calls.
    let room = usize::try_from(count).map_err(|_| io::Error::last_os_error())?.saturating_add(64);
    let mut pids = vec![0_i32; room];
    let bytes = libc::c_int::try_from(room.saturating_mul(size_of::<i32>())).unwrap_or(libc::c_int::MAX);
    // SAFETY: the buffer is live and of the size given; the call fills it with numbers.
    let count = unsafe { libc::proc_listallpids(pids.as_mut_ptr().cast(), bytes) };
    pids.truncate(usize::try_from(count).map_err(|_| io::Error::last_os_error())?);
    let mut all = Vec::new();
    for pid in pids {
        all.extend(process(pid)?);
    }
    Ok(all)
}

/// The pid that a process has in the innermost pid namespace it is in: there is only one on macOS.
pub fn inner_pid(pid: i32) -> io::Result<Option<i32>> {
    Ok(process(pid)?.map(|process| process.pid))
}

/// What the limit of processes counts for a user: the processes that can be seen.
pub fn tasks_of(uid: u32) -> io::Result<u64> {
    let mut tasks = 0;
    for process in processes()? {
        // SAFETY: zeroed memory is a valid proc_bsdinfo (integers only).
        let mut bsd: libc::proc_bsdinfo = unsafe { std::mem::zeroed() };
        tasks += u64::from(info(process.pid, BSD_INFO, 1, &mut bsd)? && bsd.pbi_ruid == uid);
    }
    Ok(tasks)
}

/// How many threads this process has.
pub fn own_threads() -> io::Result<u32> {
    let own = process(crate::process::pid())?;
    own.map(|p| p.threads).ok_or_else(|| io::Error::other("this process cannot look at itself"))
}
