//! Terminals: the launcher opens both sides and outlives the ptyd.

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;

use shoal_proto::broker_launcher::{self as bl, PtyOrder, SpawnPty};
use shoal_proto::hello::SessionRole;
use shoal_proto::launcher_worker::SpawnStage;
use shoal_proto::{Bytes, List, launcher_ptyd as lp, supervisor_launcher as sl};

use crate::session::{LIMIT, Session, lives};

fn spawn_pty(session: &mut Session, id: u64, program: &str, argv: &[&str]) -> bl::ToBroker {
    let argv: Vec<_> = argv.iter().map(|a| Bytes::new(a.as_bytes()).expect("fits")).collect();
    let order = SpawnPty {
        id,
        program: Bytes::new(program.as_bytes()).expect("fits"),
        argv: List::new(argv).expect("fits"),
        env: List::new([Bytes::new("PATH=/usr/bin:/bin").expect("fits")]).expect("fits"),
        cwd: Bytes::new("/").expect("fits"),
        cols: 80,
        rows: 24,
    };
    session.broker.send(&bl::ToLauncher::SpawnPty(order), &[]).expect("sent");
    session.broker.recv_deadline(LIMIT).expect("an answer").msg
}

/// Reads the terminal until `mark` was printed.
fn read_until(leader: &OwnedFd, mark: &str) -> String {
    let mut file = std::fs::File::from(leader.try_clone().expect("a copy"));
    let (mut text, mut chunk) = (String::new(), [0; 256]);
    while !text.contains(mark) {
        let n = file.read(&mut chunk).expect("readable");
        text.push_str(&String::from_utf8_lossy(&chunk[..n]));
    }
    text
}

#[test]
fn a_program_owns_its_terminal_and_survives_a_ptyd() {
    let mut session = Session::start();
    let (mut ptyd, life) = session.start_ptyd(2);
    assert!(matches!(session.told(), sl::ToSupervisor::RoleStarted(s) if s.role == SessionRole::Ptyd));
    let script = "stty size </dev/tty; echo ready; read line; echo \"got $line\"; sleep 300";
    let bl::ToBroker::PtyStarted(started) = spawn_pty(&mut session, 8, "sh", &["sh", "-c", script]) else {
        panic!("did not start");
    };
    let received = ptyd.recv_deadline(LIMIT).expect("a leader");
    let expected = lp::Leader { id: 8, pid: started.pid, cols: 80, rows: 24, again: false };
    assert_eq!(received.msg, lp::ToPtyd::Leader(expected));
    let text = read_until(&received.fds[0], "ready");
    assert!(text.contains("24 80"), "{text:?}");

    drop((received, ptyd, life));
    assert!(matches!(session.told(), sl::ToSupervisor::RoleDied(d) if d.role == SessionRole::Ptyd));
    let (mut ptyd, _life) = session.start_ptyd(3);
    let received = ptyd.recv_deadline(LIMIT).expect("the leader again");
    assert_eq!(received.msg, lp::ToPtyd::Leader(lp::Leader { again: true, ..expected }));
    std::fs::File::from(received.fds[0].try_clone().expect("a copy")).write_all(b"word\n").expect("written");
    read_until(&received.fds[0], "got word");

    let order = PtyOrder { call: 3, id: 8 };
    session.broker.send(&bl::ToLauncher::KillPty(order), &[]).expect("sent");
    let mut messages = [(); 2].map(|()| session.broker.recv_deadline(LIMIT).expect("a message").msg);
    messages.sort_by_key(|message| matches!(message, bl::ToBroker::Receipt(_)));
    assert!(matches!(messages[0], bl::ToBroker::PtyExited(exited) if exited.status.signal == Some(9)));
    assert!(matches!(&messages[1], bl::ToBroker::Receipt(r) if r.ended.as_slice().contains(&started.pid)));
    assert!(!lives(started.pid));
}

#[test]
fn a_missing_program_is_told_by_its_stage() {
    let mut session = Session::start();
    let bl::ToBroker::PtyFailed(failed) = spawn_pty(&mut session, 8, "no-such-prog", &["no-such-prog"]) else {
        panic!("started");
    };
    assert_eq!((failed.id, failed.stage, failed.errno), (8, SpawnStage::Open, 2));
}
