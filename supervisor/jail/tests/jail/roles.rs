//! What a confined role can still do, and what it cannot.

use std::os::fd::AsFd;

use shoal_jail::{Failed, confine};
use shoal_sys::fork::{Namespaces, fork};
use shoal_sys::process::{Exit, reap_pid};
use shoal_sys::spawn::{Command, Program};

use crate::Test;
use crate::rig::Rig;

pub(crate) const TESTS: &[Test] = &[
    ("a_worker_has_files_and_threads", a_worker_has_files_and_threads),
    ("a_ptyd_has_its_descriptors", a_ptyd_has_its_descriptors),
    ("a_broker_has_its_directory", a_broker_has_its_directory),
    ("a_policy_compiler_has_nothing", a_policy_compiler_has_nothing),
    ("a_foreign_entry_is_no_way_around", a_foreign_entry_is_no_way_around),
];

/// Runs checks in a child that confined itself; the name of the first that fails is the failure.
fn confined(confine: impl FnOnce() -> Result<(), Failed>, checks: &[(&str, &dyn Fn() -> bool)]) {
    let child = fork(Namespaces::default(), || {
        if let Err(failed) = confine() {
            eprintln!("{failed}");
            return 100;
        }
        checks.iter().zip(1..).find(|((_, holds), _)| !holds()).map_or(0, |(_, number)| number)
    })
    .unwrap();
    match reap_pid(child.pid).unwrap() {
        Exit::Code(0) => {}
        Exit::Code(100) => panic!("no confinement"),
        Exit::Code(number) => panic!("{}", checks[usize::from(number) - 1].0),
        Exit::Signal(signal) => panic!("signal {signal}"),
    }
}

fn threads() -> bool {
    std::thread::spawn(|| 7).join().is_ok_and(|seven| seven == 7)
}

fn no_socket() -> bool {
    std::net::UdpSocket::bind("127.0.0.1:0").is_err() && std::os::unix::net::UnixDatagram::unbound().is_err()
}

fn no_program() -> bool {
    let command = || Command::new(Program::Path(c"/bin/true".to_owned()), vec![c"true".to_owned()]);
    command().spawn().is_err() && command().exec().errno == libc::EPERM
}

fn no_file() -> bool {
    std::fs::File::open("/etc/passwd").is_err() && std::fs::read_dir("/").is_err()
}

/// Permission to send no signal is permission to send any.
fn can_signal(pid: i32) -> bool {
    matches!(shoal_sys::process::kill(pid, 0), Ok(true))
}

fn bodies() -> bool {
    let memfd = shoal_sys::memfd::sealed("t", &[7; 100]);
    memfd.is_ok_and(|memfd| shoal_sys::memfd::read_sealed(&memfd, 100).is_ok_and(|bytes| bytes == [7; 100]))
}

fn a_worker_has_files_and_threads() {
    let parent = shoal_sys::process::pid();
    let rig = Rig::new();
    let work = rig.dir.join("home/work");
    let files = || {
        let (a, b) = (work.join("a"), work.join("b"));
        std::fs::write(&a, "x").is_ok()
            && std::fs::rename(&a, &b).is_ok()
            && std::fs::read_to_string(&b).is_ok_and(|text| text == "x")
            && std::fs::metadata(&b).is_ok()
            && std::fs::read_dir(&work).is_ok_and(|dir| dir.count() == 1)
            && std::fs::copy(&b, &a).is_ok()
            && std::fs::remove_file(&b).is_ok()
    };
    let pipes = || shoal_sys::fd::pipe().is_ok_and(|(read, _write)| shoal_sys::fd::is_pipe_read(read.as_fd()));
    confined(
        confine::worker,
        &[
            ("files", &files),
            ("pipes", &pipes),
            ("threads", &threads),
            ("bodies", &bodies),
            ("no socket", &no_socket),
            ("no program", &no_program),
            ("no signal", &|| !can_signal(parent)),
        ],
    );
}

fn a_ptyd_has_its_descriptors() {
    let parent = shoal_sys::process::pid();
    let pty = shoal_sys::pty::open(80, 24).unwrap();
    let (leader, follower) = (pty.leader, pty.follower);
    let terminal = || {
        shoal_sys::pty::is_leader(leader.as_fd())
            && shoal_sys::pty::resize(&leader, 100, 30).is_ok()
            && shoal_sys::pty::size(&leader).is_ok_and(|size| size == (100, 30))
            && rustix::io::write(&follower, b"x").is_ok()
            && rustix::io::read(&leader, &mut [0; 4]).is_ok_and(|len| len == 1)
    };
    confined(
        confine::ptyd,
        &[
            ("terminal", &terminal),
            ("bodies", &bodies),
            ("no file", &no_file),
            ("no socket", &no_socket),
            ("no program", &no_program),
            ("no signal", &|| !can_signal(parent)),
        ],
    );
}

fn a_broker_has_its_directory() {
    let rig = Rig::new();
    let state = rig.dir.join("home/state");
    let dir = std::fs::File::open(&state).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(rig.dir.join("home/run/b.sock")).unwrap();
    let client = std::os::unix::net::UnixStream::connect(rig.dir.join("home/run/b.sock")).unwrap();
    let inside = || {
        let (a, b) = (state.join("a"), state.join("b"));
        std::fs::write(&a, "x").is_ok()
            && std::fs::File::open(&a)
                .is_ok_and(|file| file.sync_all().is_ok() && shoal_sys::lock::try_exclusive(&file).is_ok())
            && std::fs::rename(&a, &b).is_ok()
            && std::fs::remove_file(&b).is_ok()
    };
    let peers = || {
        listener.accept().is_ok_and(|(peer, _)| shoal_sys::peer::credentials(&peer).is_ok())
            && std::fs::read_to_string("/proc/self/status").is_ok()
            && shoal_sys::procfs::own_threads().is_ok_and(|threads| threads == 1)
    };
    let work = rig.dir.join("home/work/x");
    let outside = || std::fs::write(&work, "x").is_err() && std::fs::File::open("/etc/passwd").is_err();
    confined(
        || confine::broker(dir.as_fd()),
        &[
            ("its directory", &inside),
            ("peers", &peers),
            ("threads", &threads),
            ("bodies", &bodies),
            ("nothing outside", &outside),
            ("no socket", &no_socket),
            ("no program", &no_program),
        ],
    );
    drop(client);
}

fn a_policy_compiler_has_nothing() {
    confined(
        confine::policy,
        &[("bodies", &bodies), ("no file", &no_file), ("no socket", &no_socket), ("no program", &no_program)],
    );
}

/// System calls by another architecture's entry end the process; by the second table of this one they are refused.
fn a_foreign_entry_is_no_way_around() {
    let rig = Rig::new();
    let script = "python3 -c 'import ctypes; l=ctypes.CDLL(None, use_errno=True); r=l.syscall(0x40000000+39); print(r, ctypes.get_errno()); r=l.syscall(467,0,0,0,0,0); print(r, ctypes.get_errno()); r=l.syscall(425, 1, 0); print(r, ctypes.get_errno()); r=l.syscall(435, 0, 0); print(r, ctypes.get_errno())'";
    let text = rig.shell(&crate::rig::permissive(), script);
    if cfg!(target_arch = "x86_64") {
        assert_eq!(text, "-1 1\n-1 1\n-1 1\n-1 38\n");
    }
}
