//! Switches of this process.

use std::io;

/// Names the process in `ps` and `top`; at most 15 bytes are shown, a NUL ends it.
pub fn set_name(name: &str) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let bytes: Vec<u8> = name.bytes().take_while(|&b| b != 0).take(15).collect();
        let name = std::ffi::CString::new(bytes)?;
        rustix::thread::set_name(&name)?;
    }
    #[cfg(not(target_os = "linux"))]
    let _unnamed = name;
    Ok(())
}

/// Whether others of the same uid may read this process's memory, environment and descriptors, and whether it leaves
/// core files. An exec turns it on again.
#[cfg(target_os = "linux")]
pub fn set_dumpable(on: bool) -> io::Result<()> {
    use rustix::process::DumpableBehavior;
    let behaviour = if on { DumpableBehavior::Dumpable } else { DumpableBehavior::NotDumpable };
    Ok(rustix::process::set_dumpable_behavior(behaviour)?)
}

/// Adopts orphaned descendants instead of pid 1.
#[cfg(target_os = "linux")]
pub fn set_subreaper() -> io::Result<()> {
    // Any pid stands for "on"; the call takes a flag.
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Programs executed from now on gain nothing by set-uid bits or file capabilities. Cannot be undone.
#[cfg(target_os = "linux")]
pub fn set_no_new_privs() -> io::Result<()> {
    Ok(rustix::thread::set_no_new_privs(true)?)
}

/// The signal this process gets when the thread that made it ends. Cleared by fork, kept by exec.
#[cfg(target_os = "linux")]
pub fn die_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn status(field: &str) -> String {
        let text = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        text.lines().find_map(|l| l.strip_prefix(field)).unwrap().trim_start_matches(':').trim().to_owned()
    }

    #[test]
    fn the_name_is_cut_and_shown() {
        set_name("shoal-long-name-of-a-role").unwrap();
        assert_eq!(status("Name"), "shoal-long-name");
    }

    #[test]
    fn switches_take() {
        set_dumpable(false).unwrap();
        assert_eq!(rustix::process::dumpable_behavior().unwrap(), rustix::process::DumpableBehavior::NotDumpable);
        set_dumpable(true).unwrap();
        set_subreaper().unwrap();
        assert!(rustix::process::child_subreaper().unwrap().is_some());
        set_no_new_privs().unwrap();
        assert_eq!(status("NoNewPrivs"), "1");
        die_with_parent().unwrap();
        assert_eq!(rustix::process::parent_process_death_signal().unwrap(), Some(rustix::process::Signal::KILL));
    }
}
