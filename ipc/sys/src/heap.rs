//! The C library's heap, which every allocation of the process comes from.
//!
//! By default it has up to eight arenas for each processor, one after another given to threads, and an arena keeps its
//! freed memory: a process whose threads take turns with large values comes to hold the most that any of them ever needed,
//! once in every arena.

/// Arenas of a process that evaluates on several threads: few requests of a session are busy at once.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENAS: libc::c_int = 4;

/// Bounds the arenas. To be called before threads are started; no effect with another C library.
pub fn keep_few_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes two plain numbers and changes a setting of the allocator under its own lock.
    let _is_known = unsafe { libc::mallopt(libc::M_ARENA_MAX, ARENAS) };
}

/// Gives freed memory back to the system, from all arenas. Takes about as long as reading the list of what is free; no
/// effect with another C library.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes a plain number; the allocator locks each arena while it looks at it and unmaps only free pages.
    let _gave_any = unsafe { libc::malloc_trim(0) };
}

#[cfg(test)]
mod tests {
    /// Resident memory of this process that is no file's, in KiB.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn resident_kib() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("since Linux 4.5");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn freed_memory_goes_back() {
        super::keep_few_arenas();
        // Small enough to come from an arena, many enough to be seen, with one that stays above them.
        let many: Vec<Vec<u8>> = (0..20_000).map(|_| vec![1; 4096]).collect();
        let above = vec![1_u8; 4096];
        let full = resident_kib();
        drop(many);
        super::give_back();
        assert!(resident_kib() + 60 * 1024 < full, "{} KiB of {full} KiB", resident_kib());
        drop(above);
    }
}
