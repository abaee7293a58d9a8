//! A host for tests: real files below a temporary directory, a real clock, and nothing else.
#![allow(clippy::disallowed_methods, reason = "this is the host: files, time and programs leave here")]

mod files;
mod programs;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use shoal_eval::cancel::{CancelToken, Cancelled};
use shoal_eval::host::{Clock, Dir, Files, Host, Processes, System};
use shoal_value::PathValue;
use tempfile::TempDir;

pub(crate) use files::RealDir;

/// The host. Its directory goes with it.
pub(crate) struct TestHost {
    dir: TempDir,
    files: files::RealFiles,
    processes: programs::RealPrograms,
    clock: RealClock,
}

impl TestHost {
    /// A host with an empty directory.
    pub(crate) fn new() -> Arc<Self> {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let trash = tempfile::tempdir().expect("a temporary directory");
        let clock = RealClock { start: Instant::now() };
        Arc::new(Self { dir, files: files::RealFiles::new(trash), processes: programs::RealPrograms, clock })
    }

    /// Makes a file, or a directory if `name` ends in `/`.
    pub(crate) fn fixture(&self, name: &str, contents: &[u8]) {
        let path = self.dir.path().join(name);
        if name.ends_with('/') {
            std::fs::create_dir_all(path).expect("a directory can be made");
        } else {
            std::fs::write(path, contents).expect("a file can be made");
        }
    }

    /// Its directory, as a working directory.
    pub(crate) fn cwd(&self) -> Arc<dyn Dir> {
        use std::os::unix::ffi::OsStrExt;
        let path = self.dir.path().canonicalize().expect("the directory exists");
        Arc::new(RealDir(PathValue::from(path.as_os_str().as_bytes())))
    }
}

impl Host for TestHost {
    fn reads_manifests(&self) -> bool {
        true
    }

    fn files(&self) -> &dyn Files {
        &self.files
    }

    fn processes(&self) -> &dyn Processes {
        &self.processes
    }

    fn clock(&self) -> &dyn Clock {
        &self.clock
    }

    fn system(&self) -> System {
        System {
            platform: if cfg!(target_os = "macos") { "macos" } else { "linux" },
            arch: std::env::consts::ARCH,
            pid: std::process::id(),
            hostname: "testhost".into(),
            username: "tester".into(),
            cpus: 2,
            uptime_ns: Some(1_000_000_000),
        }
    }
}

struct RealClock {
    start: Instant,
}

impl Clock for RealClock {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::try_from(SystemTime::now()).expect("a time within the calendar")
    }

    fn zone(&self) -> jiff::tz::TimeZone {
        jiff::tz::TimeZone::UTC
    }

    fn monotonic_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).expect("a test does not run for centuries")
    }

    fn sleep(&self, ns: u64, cancel: &CancelToken) -> Result<(), Cancelled> {
        let (wake, woken) = std::sync::mpsc::channel::<()>();
        let _registration = cancel.on_cancel(move || wake.send(()).unwrap_or(()));
        match woken.recv_timeout(Duration::from_nanos(ns)) {
            Ok(()) => Err(Cancelled),
            Err(_) => Ok(()),
        }
    }
}
