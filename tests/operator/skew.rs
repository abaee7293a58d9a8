//! A newer command against an older kernel: both versions are named, and the kernel can still be ended.

use std::path::PathBuf;
use std::process::{Child, Stdio};

use shoal_harness::{Place, until};

/// A kernel of another time, which listens on a socket of its own.
fn old_kernel(place: &Place) -> (Child, PathBuf) {
    let socket = place.path("run").join("old.sock");
    let script = place.write("old_kernel.py", include_str!("old_kernel.py"));
    let kernel =
        place.command("python3").arg(&script).arg(&socket).stdout(Stdio::null()).spawn().expect("python3 runs");
    until("the old kernel listens", || socket.exists());
    (kernel, socket)
}

#[test]
fn both_versions_are_named_and_the_old_kernel_ends() {
    let place = Place::new();
    let (mut kernel, socket) = old_kernel(&place);
    let shoal = |words: &[&str]| {
        place.shoal("shoal").env("SHOAL_SOCKET", &socket).args(words).stdin(Stdio::null()).output().expect("runs")
    };
    for words in [&["status"][..], &["exec", "1"], &["session", "list"]] {
        let output = shoal(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("the kernel is 0.0.9+old") && said.contains("this command is "), "{said}");
        assert!(said.contains("shoal kernel stop"), "{said}");
    }
    let doctor = shoal(&["doctor"]);
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("0.0.9+old"), "{doctor:?}");
    let stopped = shoal(&["kernel", "stop"]);
    assert_eq!(stopped.status.code(), Some(0), "{}", String::from_utf8_lossy(&stopped.stderr));
    assert_eq!(String::from_utf8_lossy(&stopped.stdout), "stopped\n");
    until("the old kernel is gone", || kernel.try_wait().expect("a child of ours").is_some());
}

#[test]
fn one_that_only_the_state_directory_knows_of_ends_too() {
    let place = Place::new();
    let (mut kernel, socket) = old_kernel(&place);
    let lock = place.state().join("lock");
    std::fs::create_dir_all(place.state()).expect("a state directory");
    std::fs::write(&lock, format!("{}\n", socket.display())).expect("written");
    place.give(place.state());
    place.give(&lock);
    let stopped = place.shoal("shoal").args(["kernel", "stop"]).stdin(Stdio::null()).output().expect("runs");
    assert_eq!(stopped.status.code(), Some(0), "{}", String::from_utf8_lossy(&stopped.stderr));
    until("the old kernel is gone", || kernel.try_wait().expect("a child of ours").is_some());
}
