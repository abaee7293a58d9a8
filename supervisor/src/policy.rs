//! One run of the policy compiler: two open files in, sealed sections out.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Mode, OFlags, fstat};
use shoal_proto::section::Sections;
use shoal_sys::pidfd::Pidfd;
use shoal_sys::poll::{Ready, wait};
use shoal_sys::process::Exit;
use shoal_sys::rlimit::Limit;

use crate::options::Options;
use crate::roles::{self, Roles, word};

/// Compiling takes milliseconds; its own CPU limit is below this.
const DEADLINE: Duration = Duration::from_secs(10);
/// Seconds of CPU.
const CPU: u64 = 2;
/// Bytes of address space: two files and their sections.
const MEMORY: u64 = 512 * 1024 * 1024;
/// A policy file is written by a person.
const MAX_FILE: u64 = 1024 * 1024;
/// Bytes of compiled sections.
const MAX_SECTIONS: usize = 16 * 1024 * 1024;
/// Bytes of its error text.
const MAX_ERROR: u64 = 4096;

/// The files a policy is compiled from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    /// `leash.toml`; a named one must exist.
    pub(crate) leash: Option<PathBuf>,
    /// Whether it was named on the command line.
    pub(crate) named: bool,
    /// `shoal.toml`.
    pub(crate) shoal: Option<PathBuf>,
    /// What `~/` stands for.
    pub(crate) home: Option<PathBuf>,
}

impl Files {
    /// The files of a configuration directory, with the policy that was named instead.
    pub(crate) fn new(options: &Options, config: Option<PathBuf>, home: Option<PathBuf>) -> Self {
        let in_config = |name: &str| config.as_ref().map(|dir| dir.join(name));
        let named = options.policy.is_some();
        let leash = options.policy.clone().or_else(|| in_config("leash.toml"));
        Self { leash, named, shoal: in_config("shoal.toml"), home }
    }
}

/// A policy in force.
#[derive(Debug)]
pub(crate) struct Policy {
    /// The compiled sections, with the command line's limits in them.
    pub(crate) sections: Sections,
    /// The same, encoded and sealed, for the broker.
    pub(crate) memfd: OwnedFd,
}

/// A compiler at work.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) pid: i32,
    child: Pidfd,
    stderr: OwnedFd,
    output: OwnedFd,
    /// When it is killed.
    pub(crate) deadline: Instant,
}

impl Run {
    /// Opens the files and starts the compiler. An error is one line for the operator.
    pub(crate) fn start(files: &Files, roles: &Roles, now: Instant) -> Result<Self, String> {
        let failed = |e: io::Error| format!("cannot start the policy compiler: {e}");
        let null = shoal_sys::fd::null().map_err(failed)?;
        let leash = open(files.leash.as_deref(), files.named)?;
        let shoal = open(files.shoal.as_deref(), false)?;
        let output = shoal_sys::memfd::create("shoal-sections").map_err(failed)?;
        let (stderr, theirs) = shoal_sys::fd::pipe().map_err(failed)?;
        let uid = shoal_sys::process::uid().to_string();
        let home = files.home.as_ref().map(|home| home.to_string_lossy().into_owned()).unwrap_or_default();
        let mut words = vec!["shoal-policy", "--uid", &uid, "--home", &home];
        if leash.is_none() {
            words.push("--built-in");
        }
        let words = words.into_iter().map(word).collect();
        let inputs = [leash.as_ref().unwrap_or(&null).as_fd(), shoal.as_ref().unwrap_or(&null).as_fd(), output.as_fd()];
        let child = roles::command(&roles.policy, words, &null, theirs.as_fd(), &inputs)
            .limit(Limit::Cpu, CPU)
            .limit(Limit::AddressSpace, MEMORY)
            .limit(Limit::Core, 0)
            .die_with_parent()
            .spawn()
            .map_err(|e| format!("cannot start the policy compiler: {e}"))?;
        Ok(Self { pid: child.pid, child: child.pidfd, stderr, output, deadline: now + DEADLINE })
    }

    /// Ends a compiler that takes too long; the reaper sees it.
    pub(crate) fn kill(&self) {
        if let Err(e) = self.child.signal(libc::SIGKILL) {
            crate::log::line(&format!("cannot kill the policy compiler: {e}"));
        }
    }

    /// Waits for the end, for the first policy: there is no loop yet that would.
    pub(crate) fn wait(self, options: &Options) -> Result<Policy, String> {
        let failed = |e: io::Error| format!("cannot wait for the policy compiler: {e}");
        if !wait(self.child.as_fd(), Ready::READ, Some(DEADLINE)).map_err(failed)? {
            self.kill();
            wait(self.child.as_fd(), Ready::READ, None).map_err(failed)?;
        }
        let exit = self.child.try_reap().map_err(failed)?.ok_or("the policy compiler did not end")?;
        self.finish(exit, options)
    }

    /// Takes the result of a compiler that ended.
    pub(crate) fn finish(self, exit: Exit, options: &Options) -> Result<Policy, String> {
        if exit != Exit::Code(0) {
            let mut text = String::new();
            // The compiler has ended, so its side of the pipe is closed and this reads what is there.
            let read = std::fs::File::from(self.stderr).take(MAX_ERROR).read_to_string(&mut text);
            let text = text.trim();
            return Err(match (read, text) {
                (Ok(_), text) if !text.is_empty() => text.to_owned(),
                (_, _) => format!("the policy compiler ended with {exit}"),
            });
        }
        let bytes = shoal_sys::memfd::read_sealed(&self.output, MAX_SECTIONS)
            .map_err(|e| format!("the policy compiler left no sealed sections: {e}"))?;
        let sections = Sections::decode(&bytes).map_err(|e| format!("the policy compiler's sections: {e}"))?;
        Policy::new(sections, options)
    }
}

impl Policy {
    fn new(mut sections: Sections, options: &Options) -> Result<Self, String> {
        lay_over(&mut sections, options)?;
        let bytes = sections.encode().map_err(|e| format!("cannot encode the sections: {e}"))?;
        let memfd = shoal_sys::memfd::sealed("shoal-sections", &bytes)
            .map_err(|e| format!("cannot make the sections' memfd: {e}"))?;
        Ok(Self { sections, memfd })
    }
}

/// The command line's limits over those of `shoal.toml`, and its idle time where a section says nothing.
fn lay_over(sections: &mut Sections, options: &Options) -> Result<(), String> {
    let mut quotas = sections.settings.quotas.as_slice().to_vec();
    for (name, value) in &options.limits {
        quotas.retain(|(old, _)| old.as_str() != name);
        let name = shoal_proto::Text::new(name.as_str()).map_err(|e| format!("limit {name}: {e}"))?;
        quotas.push((name, *value));
    }
    sections.settings.quotas = shoal_proto::List::new(quotas).map_err(|e| format!("limits: {e}"))?;
    if let Some(ttl) = options.idle_ttl {
        let mut all = std::mem::take(&mut sections.sections).into_vec();
        for section in &mut all {
            section.idle_ttl.get_or_insert(ttl);
        }
        sections.sections = shoal_proto::List::new(all).map_err(|e| format!("sections: {e}"))?;
    }
    Ok(())
}

/// Opens a policy file: a regular file of ours or root's that others cannot write. A missing one is `None` unless it
/// was named.
fn open(path: Option<&Path>, named: bool) -> Result<Option<OwnedFd>, String> {
    let Some(path) = path else { return Ok(None) };
    let at = path.display();
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(rustix::io::Errno::NOENT) if !named => return Ok(None),
        Err(e) => return Err(format!("cannot open {at}: {}", io::Error::from(e))),
    };
    let stat = fstat(&file).map_err(|e| format!("cannot look at {at}: {e}"))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(format!("{at} is not a regular file"));
    }
    if u64::try_from(stat.st_size).unwrap_or(u64::MAX) > MAX_FILE {
        return Err(format!("{at} has {} bytes, at most {MAX_FILE} are read", stat.st_size));
    }
    let ours = [0, shoal_sys::process::uid()].contains(&stat.st_uid);
    if !ours || stat.st_mode & 0o022 != 0 {
        let (uid, mode) = (stat.st_uid, stat.st_mode & 0o7777);
        return Err(format!(
            "{at} has owner {uid} and mode {mode:04o}; it must be yours or root's and not writable by others: chmod go-w {at}"
        ));
    }
    Ok(Some(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_are_checked_before_anyone_reads_them() {
        let dir = std::env::temp_dir().join(format!("shoal-policy-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("leash.toml");
        assert!(open(Some(&file), false).unwrap().is_none());
        assert!(open(Some(&file), true).unwrap_err().contains("cannot open"));
        assert!(open(Some(&dir), true).unwrap_err().contains("not a regular file"));
        std::fs::write(&file, "x").unwrap();
        assert!(open(Some(&file), true).unwrap().is_some());
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(open(Some(&file), true).unwrap_err().contains("mode 0666"));
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::File::options().write(true).open(&file).unwrap().set_len(MAX_FILE + 1).unwrap();
        assert!(open(Some(&file), true).unwrap_err().contains("1048577 bytes"));
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn the_command_line_lies_over_the_file() {
        let text = |name: &str| shoal_proto::Text::new(name).unwrap();
        let mut sections = Sections::default();
        sections.settings.quotas = shoal_proto::List::new(vec![(text("tasks"), 1), (text("ptys"), 2)]).unwrap();
        let own = shoal_proto::section::Section { idle_ttl: Some(5), ..Default::default() };
        sections.sections = shoal_proto::List::new(vec![own, Default::default()]).unwrap();
        let limits = [("tasks".to_owned(), 9)].into();
        lay_over(&mut sections, &Options { limits, idle_ttl: Some(60), ..Default::default() }).unwrap();
        assert_eq!(sections.settings.quotas.as_slice(), [(text("ptys"), 2), (text("tasks"), 9)]);
        let idle: Vec<Option<u64>> = sections.sections.as_slice().iter().map(|section| section.idle_ttl).collect();
        assert_eq!(idle, [Some(5), Some(60)]);
    }
}
