//! Mounts of a test's own: made in a namespace that ends with the test, where an ordinary user may mount too.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Set in a process that has mounts of its own.
const MARK: &str = "SHOAL_TEST_OWN_MOUNTS";

/// Whether the calling test may go on: true in a process with mounts of its own, where the user is root, for an ordinary
/// user by name only. Elsewhere it runs the test again in such a process, passes its outcome on, and is false.
///
/// `test` is the whole path of the test, as its runner names it. Where the system gives an ordinary user no namespaces,
/// it says that the test was not run.
pub fn own(test: &str) -> bool {
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let mut command = Command::new("unshare");
    if !crate::place::is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.arg("--mount");
    if !crate::place::is_root() && !allows_namespaces() {
        eprintln!("not run: this system gives an ordinary user no namespaces");
        return false;
    }
    let program = std::env::current_exe().expect("a test has a program");
    let output = command.arg(program).args(["--exact", test, "--nocapture"]).env(MARK, "1").output();
    let output = output.expect("unshare runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{}\n{said}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    false
}

fn allows_namespaces() -> bool {
    let probe = Command::new("unshare").args(["--user", "--map-root-user", "--mount", "true"]).output();
    probe.expect("unshare runs").status.success()
}

/// Calls mount(8) in a process with mounts of its own.
pub fn mount(args: &[&str], at: &Path) {
    assert!(std::env::var_os(MARK).is_some(), "only in a namespace of the test's own");
    let output = Command::new("mount").args(args).arg(at).output().expect("mount runs");
    assert!(output.status.success(), "mount {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A small file system over a directory, unmounted when this is dropped; only in a process with mounts of its own.
#[derive(Debug)]
pub struct Disk(PathBuf);

impl Disk {
    /// Of so many mebibytes, private, with further options of `tmpfs` as `,name=value`.
    pub fn over(at: &Path, mib: u32, options: &str) -> Self {
        mount(&["-t", "tmpfs", "-o", &format!("size={mib}m,mode=0700{options}"), "tmpfs"], at);
        Self(at.to_owned())
    }

    /// Changes how it is mounted: `ro` or `rw`.
    pub fn remount(&self, how: &str) {
        mount(&["-o", &format!("remount,bind,{how}")], &self.0);
    }

    /// Takes every free block; the file that holds them.
    pub fn fill(&self) -> PathBuf {
        let path = self.0.join("ballast");
        let mut file = std::fs::File::create(&path).expect("a file");
        let chunk = vec![1u8; 64 * 1024];
        while std::io::Write::write_all(&mut file, &chunk).is_ok() {}
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Its directory can be removed once nothing is mounted there.
        let status = Command::new("umount").arg("-l").arg(&self.0).status();
        if !std::thread::panicking() {
            assert!(status.expect("umount runs").success(), "unmounted");
        }
    }
}
