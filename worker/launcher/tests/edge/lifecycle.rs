//! Roles that end, fresh brokers, and the end of the session.

use std::os::fd::AsFd as _;

use shoal_chan::Chan;
use shoal_proto::hello::SessionRole;
use shoal_proto::supervisor_broker::Ping;
use shoal_proto::{broker_launcher as bl, launcher_worker as lw, supervisor_launcher as sl};
use shoal_sys::{process, socket};

use crate::session::{LIMIT, Session, eventually, hello, is_closed, lives, read_line};

#[test]
fn a_dead_worker_s_commands_end_and_a_new_one_starts() {
    let mut session = Session::start();
    let (_, pid, output) = session.sh(3, "echo up; exec sleep 300");
    read_line(&output.stdout);
    let (life, _) = socket::pair(socket::Carrier::NATIVE).expect("a pair");
    drop(std::mem::replace(&mut session.worker_life, life));
    let sl::ToSupervisor::RoleDied(died) = session.told() else { panic!("no death") };
    assert_eq!(died.role, SessionRole::Worker);
    eventually("its command ends", || !lives(pid));
    session.restart_worker(2);
    assert!(
        matches!(session.told(), sl::ToSupervisor::RoleStarted(s) if s.role == SessionRole::Worker && s.generation == 2)
    );
    let (id, ..) = session.sh(4, "exit 5");
    assert_eq!(session.exited(id).status.code, Some(5));
}

#[test]
fn a_worker_that_breaks_the_protocol_is_ended() {
    let mut session = Session::start();
    session.worker.send(&lw::ToLauncher::Hello(hello(1)), &[]).expect("sent");
    assert!(is_closed(&mut session.worker));
    let sl::ToSupervisor::RoleDied(died) = session.told() else { panic!("no death") };
    assert_eq!((died.role, died.status.signal), (SessionRole::Worker, Some(9)));
}

#[test]
fn adoption_hands_out_fresh_ends() {
    let mut session = Session::start();
    let (broker, far_broker) = socket::pair(socket::Carrier::NATIVE).expect("a pair");
    let (_worker, far_worker) = socket::pair(socket::Carrier::NATIVE).expect("a pair");
    let adopt = sl::ToLauncher::Adopt(sl::Generation { generation: 2 });
    session.supervisor.send(&adopt, &[far_broker.as_fd(), far_worker.as_fd()]).expect("sent");
    let received = session.worker.recv_deadline(LIMIT).expect("an end");
    assert_eq!(received.msg, lw::ToWorker::Adopt(sl::Generation { generation: 2 }));
    assert_eq!(received.fds.len(), 1);
    assert!(is_closed(&mut session.broker), "the old end is dead");
    let mut broker: Chan<bl::ToLauncher, bl::ToBroker> = Chan::from_fd(broker).expect("a socket");
    assert_eq!(broker.recv_deadline(LIMIT).expect("a hello").msg, bl::ToBroker::Hello(hello(2)));
}

#[test]
fn a_probe_is_answered_and_a_freeze_stops_worker_and_commands() {
    let mut session = Session::start();
    let (_, pid, output) = session.sh(3, "echo up; exec sleep 300");
    read_line(&output.stdout);
    session.supervisor.send(&sl::ToLauncher::Ping(Ping { n: 5 }), &[]).expect("sent");
    assert_eq!(session.told(), sl::ToSupervisor::Pong(Ping { n: 5 }));
    let state = |pid| shoal_sys::procfs::process(pid).expect("readable").map(|p| p.state);
    session.supervisor.send(&sl::ToLauncher::Freeze(Ping { n: 6 }), &[]).expect("sent");
    assert_eq!(session.told(), sl::ToSupervisor::Frozen(Ping { n: 6 }));
    eventually("the command stops", || state(pid) == Some('T'));
    let stopped = shoal_sys::procfs::tree(session.pid).expect("readable").iter().filter(|p| p.state == 'T').count();
    assert_eq!(stopped, 2);
    session.supervisor.send(&sl::ToLauncher::Thaw(Ping { n: 7 }), &[]).expect("sent");
    assert_eq!(session.told(), sl::ToSupervisor::Frozen(Ping { n: 7 }));
    eventually("it goes on", || state(pid) == Some('S'));
}

#[test]
fn kill_ends_everything_then_the_launcher() {
    let mut session = Session::start();
    let (_, pid, output) = session.sh(3, "trap '' TERM; echo up; while :; do sleep 1; done");
    read_line(&output.stdout);
    session.supervisor.send(&sl::ToLauncher::Kill(sl::Kill { grace_ms: 50 }), &[]).expect("sent");
    assert!(matches!(session.told(), sl::ToSupervisor::Ended(_)));
    assert!(!lives(pid));
    assert_eq!(session.end(), process::Exit::Code(0));
}

#[test]
fn the_end_of_the_supervisor_is_the_end() {
    let mut session = Session::start();
    let (_, pid, output) = session.sh(3, "(setsid sleep 300 &); echo up; exec sleep 300");
    read_line(&output.stdout);
    assert_eq!(session.end(), process::Exit::Code(0));
    assert!(!lives(pid));
}
