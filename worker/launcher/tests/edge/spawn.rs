//! Starting commands: what they get, how failures come back, what is left of them.

use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt;

use shoal_proto::launcher_worker::{self as lw, SpawnStage, Started};
use shoal_proto::section::Section;
use shoal_proto::{List, Text};
use shoal_sys::fd;

use crate::session::{LIMIT, Session, eventually, read_all, read_line};

#[test]
fn a_command_runs_and_its_end_is_told() {
    let mut session = Session::start();
    let (id, pid, output) = session.sh(1, "echo out; echo err >&2; exit 7");
    assert!(pid > 0);
    let exited = session.exited(id);
    assert_eq!((exited.status.code, exited.status.signal, exited.left), (Some(7), None, 0));
    assert!(exited.peak_kib > 0);
    assert_eq!(read_all(output.stdout), "out\n");
    assert_eq!(read_all(output.stderr), "err\n");
}

#[test]
fn a_command_gets_three_descriptors_a_session_and_a_clean_environment() {
    let mut session = Session::start();
    let script = "ls /proc/self/fd | tr '\\n' ' '; env | grep -v '^PWD=\\|^_=\\|^SHLVL=\\|^OLDPWD='";
    let (id, .., output) = session.sh(1, script);
    session.exited(id);
    // The fourth is the directory that `ls` itself has open.
    assert_eq!(read_all(output.stdout), "0 1 2 3 PATH=/usr/bin:/bin\n");
    let (id, pid, output) = session.sh(1, "ps -o pgid=,sid=,tty= -p $$ 2>/dev/null || cut -d' ' -f5,6,7 /proc/$$/stat");
    session.exited(id);
    let line = read_all(output.stdout);
    let ids: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(ids[..2], [pid.to_string(), pid.to_string()], "group and session are its own");
    assert!(matches!(ids[2], "?" | "0"), "no terminal");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test writes the program it starts")]
fn failures_name_their_stage() {
    let mut session = Session::start();
    let dir = tempfile::tempdir().expect("a directory");
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "not a program").expect("written");
    std::fs::set_permissions(&plain, PermissionsExt::from_mode(0o644)).expect("set");
    let gone = dir.path().join("gone");
    let mut failure = |path: &str, cwd: &str| session.program(1, path, &["x"], cwd, false).err().expect("fails");
    let missing = failure("/no/such/program", "/");
    assert_eq!((missing.stage, missing.errno), (SpawnStage::Exec, 2));
    let cwd = failure("/bin/sh", gone.to_str().expect("text"));
    assert_eq!((cwd.stage, cwd.errno), (SpawnStage::Cwd, 2));
    let not_executable = failure(plain.to_str().expect("text"), "/");
    assert_eq!((not_executable.stage, not_executable.errno), (SpawnStage::Exec, 13));
    std::fs::set_permissions(&plain, PermissionsExt::from_mode(0o755)).expect("set");
    let no_format = failure(plain.to_str().expect("text"), "/");
    assert_eq!((no_format.stage, no_format.errno), (SpawnStage::Exec, 8));
    // Still there and serving.
    let (id, ..) = session.sh(1, "exit 0");
    assert_eq!(session.exited(id).status.code, Some(0));
}

#[test]
fn the_gate_refuses_what_is_not_listed() {
    let pins = List::new([Text::new("sh").expect("fits")]).expect("fits");
    let mut session = Session::start_under(&Section { proc_spawn: pins, ..Section::default() });
    let refused = session.program(1, "/bin/cat", &["cat"], "/", false).err().expect("refused");
    assert_eq!((refused.stage, refused.errno), (SpawnStage::Gate, 0));
    assert!(refused.reason.contains("cat"), "{}", refused.reason);
    let (id, ..) = session.sh(1, "exit 0");
    assert_eq!(session.exited(id).status.code, Some(0));
}

#[test]
fn the_gate_opens_regular_files_alone() {
    let pins = List::new([Text::new("sh").expect("fits")]).expect("fits");
    let mut session = Session::start_under(&Section { proc_spawn: pins, ..Section::default() });
    let (read, _write) = fd::pipe().expect("a pipe");
    let pipe = format!("/proc/{}/fd/{}", std::process::id(), read.as_raw_fd());
    for path in [pipe.as_str(), "/dev/zero"] {
        let refused = session.program(1, path, &["program"], "/", false).err().expect("refused");
        assert_eq!((refused.stage, refused.errno), (SpawnStage::Open, 13), "{path}");
    }
}

#[test]
fn a_left_behind_process_is_counted_and_a_holder_told_apart() {
    let mut session = Session::start();
    let (id, pid, output) = session.sh(1, "sleep 300 & echo started");
    assert_eq!(session.exited(id).left, 1);
    session.worker.send(&lw::ToLauncher::CountHolders(Started { id, pid }), &[]).expect("sent");
    let held = session.worker.recv_deadline(LIMIT).expect("an answer").msg;
    assert_eq!(held, lw::ToWorker::Held(lw::Held { id, holders: 1 }));
    assert_eq!(read_line(&output.stdout), "started");

    let (id, pid, _output) = session.sh(1, "(setsid sleep 300 >/dev/null 2>&1 &)");
    assert_eq!(session.exited(id).left, 1, "a daemon in a session of its own");
    eventually("the daemon closes the pipes", || {
        session.worker.send(&lw::ToLauncher::CountHolders(Started { id, pid }), &[]).expect("sent");
        let held = session.worker.recv_deadline(LIMIT).expect("an answer").msg;
        held == lw::ToWorker::Held(lw::Held { id, holders: 0 })
    });
}

#[test]
fn a_thousand_commands_leave_nothing() {
    let mut session = Session::start();
    let (id, ..) = session.sh(1, "exit 0");
    session.exited(id);
    let before = session.open_files();
    for run in 0..1000 {
        let (id, ..) = session.program(run, "/bin/true", &["true"], "/", false).expect("starts");
        assert_eq!(session.exited(id).left, 0);
    }
    assert_eq!(session.open_files(), before);
    let tree = shoal_sys::procfs::tree(session.pid).expect("readable");
    assert_eq!(tree.len(), 2, "launcher and worker: {tree:?}");
}
