//! The ladder: what it ends, how far it climbs, and that it needs no worker.

use std::os::fd::AsFd as _;

use shoal_chan::Chan;
use shoal_proto::launcher_worker::{self as lw, End, Rung, Target};
use shoal_proto::supervisor_broker::Ping;
use shoal_proto::{broker_launcher as bl, supervisor_launcher as sl};
use shoal_sys::socket;

use crate::session::{LIMIT, Session, eventually, lives, read_line};

fn end(session: &mut Session, target: Target, rung: Rung, rung_ms: u32) -> lw::Receipt {
    let end = End { call: 9, target, rung, rung_ms };
    session.worker.send(&lw::ToLauncher::End(end), &[]).expect("sent");
    let receipt = session.receipt();
    assert_eq!(receipt.call, 9);
    receipt
}

#[test]
fn a_polite_command_needs_one_rung() {
    let mut session = Session::start();
    let (id, pid, output) = session.sh(3, "echo up; exec sleep 300");
    read_line(&output.stdout);
    let receipt = end(&mut session, Target::Command(id), Rung::Int, 0);
    assert_eq!((receipt.ended.as_slice(), receipt.escalated), (&[pid][..], Some(Rung::Int)));
    assert!(receipt.survived.as_slice().is_empty() && !lives(pid));
}

#[test]
fn deaf_commands_and_their_children_need_kill() {
    let mut session = Session::start();
    let script = "trap '' INT TERM; (trap '' INT TERM; echo up; sleep 300; sleep 300) & sleep 300; sleep 300";
    let (_, pid, output) = session.sh(3, script);
    read_line(&output.stdout);
    let receipt = end(&mut session, Target::Run(3), Rung::Int, 50);
    assert!(receipt.escalated >= Some(Rung::Kill), "{receipt:?}");
    assert!(receipt.ended.as_slice().len() >= 2 && receipt.ended.as_slice().contains(&pid), "{receipt:?}");
    assert!(receipt.survived.as_slice().is_empty());
    assert!(receipt.ended.as_slice().iter().all(|pid| !lives(*pid)));
    let again = end(&mut session, Target::Run(3), Rung::Int, 50);
    assert_eq!((again.ended.as_slice().len(), again.escalated), (0, Some(Rung::Int)), "nothing is left to end");
}

#[test]
fn a_daemon_that_left_group_session_and_parent_is_found() {
    let mut session = Session::start();
    let script = "setsid sh -c 'echo $$; (setsid sleep 300 &) ; exec sleep 300' & wait";
    let (_, _, output) = session.sh(3, script);
    let daemon: i32 = read_line(&output.stdout).parse().expect("a pid");
    let receipt = end(&mut session, Target::Run(3), Rung::Term, 200);
    assert!(receipt.ended.as_slice().contains(&daemon), "{receipt:?}");
    eventually("the whole tree is gone", || {
        shoal_sys::procfs::tree(session.pid).expect("readable").iter().filter(|p| p.comm == "sleep").count() == 0
    });
}

#[test]
fn the_broker_cancels_without_the_worker() {
    let mut session = Session::start();
    let (_, pid, output) = session.sh(3, "echo up; exec sleep 300");
    read_line(&output.stdout);
    let cancel = bl::Cancel { call: 4, run: 3, rung: Rung::Kill };
    session.broker.send(&bl::ToLauncher::Cancel(cancel), &[]).expect("sent");
    let bl::ToBroker::Receipt(receipt) = session.broker.recv_deadline(LIMIT).expect("a receipt").msg else {
        panic!("not a receipt");
    };
    assert_eq!((receipt.call, receipt.ended.as_slice()), (4, &[pid][..]));
    assert!(!lives(pid));
}

#[test]
fn a_cancelled_run_starts_nothing_more() {
    let mut session = Session::start();
    let cancel = bl::Cancel { call: 4, run: 3, rung: Rung::Int };
    session.broker.send(&bl::ToLauncher::Cancel(cancel), &[]).expect("sent");
    assert!(matches!(session.broker.recv_deadline(LIMIT).expect("a receipt").msg, bl::ToBroker::Receipt(_)));
    let refused = session.program(3, "/bin/true", &["true"], "/", false).err().expect("refused");
    assert_eq!((refused.stage, refused.errno), (lw::SpawnStage::Gate, 125));
    let (id, ..) = session.program(3, "/bin/true", &["true"], "/", true).expect("a background command starts");
    session.exited(id);
    let (id, ..) = session.sh(4, "exit 0");
    assert_eq!(session.exited(id).status.code, Some(0));
}

#[test]
fn a_background_command_outlives_the_cancel_of_its_run() {
    let mut session = Session::start();
    let argv = ["sleep", "300"];
    let (id, pid, _output) = session.program(3, "/bin/sleep", &argv, "/", true).expect("starts");
    let receipt = end(&mut session, Target::Run(3), Rung::Kill, 0);
    assert_eq!(receipt.ended.as_slice().len(), 0);
    assert!(lives(pid));
    assert_eq!(end(&mut session, Target::Command(id), Rung::Kill, 0).ended.as_slice(), [pid]);
}

#[test]
fn suspended_commands_stop_and_a_ladder_wakes_them() {
    let mut session = Session::start();
    let (id, pid, output) = session.sh(3, "echo up; exec sleep 300");
    read_line(&output.stdout);
    let order = bl::RunOrder { call: 1, run: 3 };
    let state = || shoal_sys::procfs::process(pid).expect("readable").map(|p| p.state);
    session.broker.send(&bl::ToLauncher::Suspend(order), &[]).expect("sent");
    assert_eq!(session.broker.recv_deadline(LIMIT).expect("done").msg, bl::ToBroker::Done(order));
    eventually("it stops", || state() == Some('T'));
    session.broker.send(&bl::ToLauncher::Resume(order), &[]).expect("sent");
    assert_eq!(session.broker.recv_deadline(LIMIT).expect("done").msg, bl::ToBroker::Done(order));
    eventually("it goes on", || state() == Some('S'));
    session.broker.send(&bl::ToLauncher::Suspend(order), &[]).expect("sent");
    assert_eq!(session.broker.recv_deadline(LIMIT).expect("done").msg, bl::ToBroker::Done(order));
    let receipt = end(&mut session, Target::Command(id), Rung::Term, 0);
    assert_eq!(receipt.escalated, Some(Rung::Term), "continued before it was told to end");
}

#[test]
fn the_list_names_what_runs() {
    let mut session = Session::start();
    let (_, pid, output) = session.sh(3, "echo up; exec sleep 300");
    read_line(&output.stdout);
    session.broker.send(&bl::ToLauncher::List(bl::RunOrder { call: 2, run: 0 }), &[]).expect("sent");
    let bl::ToBroker::Listing(listing) = session.broker.recv_deadline(LIMIT).expect("a listing").msg else {
        panic!("not a listing");
    };
    assert_eq!(listing.running.as_slice(), [bl::Running { run: 3, pty: 0, pid }]);
    assert_eq!(listing.processes, 3, "launcher, worker, command");
}

#[test]
fn a_receipt_is_for_the_broker_that_asked() {
    let mut session = Session::start();
    let (_, pid, output) = session.sh(3, "trap '' INT TERM; echo up; while :; do sleep 300; done");
    read_line(&output.stdout);
    let cancel = |call, rung| bl::ToLauncher::Cancel(bl::Cancel { call, run: 3, rung });
    session.broker.send(&cancel(4, Rung::Int), &[]).expect("sent");
    let (next, far_next) = socket::pair(socket::Carrier::NATIVE).expect("a pair");
    let (_worker, far_worker) = socket::pair(socket::Carrier::NATIVE).expect("a pair");
    let adopt = sl::ToLauncher::Adopt(sl::Generation { generation: 2 });
    session.supervisor.send(&adopt, &[far_next.as_fd(), far_worker.as_fd()]).expect("sent");
    session.broker = Chan::from_fd(next).expect("a socket");
    assert!(matches!(session.broker.recv_deadline(LIMIT).expect("a hello").msg, bl::ToBroker::Hello(_)));
    session.broker.send(&cancel(9, Rung::Kill), &[]).expect("sent");
    let bl::ToBroker::Receipt(receipt) = session.broker.recv_deadline(LIMIT).expect("a receipt").msg else {
        panic!("not a receipt");
    };
    assert_eq!(receipt.call, 9, "{receipt:?}");
    assert!(!lives(pid));
}

#[test]
fn what_starts_in_a_suspended_run_or_a_frozen_session_stands_still() {
    let mut session = Session::start();
    let state = |pid| shoal_sys::procfs::process(pid).expect("readable").map(|p| p.state);
    let order = bl::RunOrder { call: 1, run: 3 };
    session.broker.send(&bl::ToLauncher::Suspend(order), &[]).expect("sent");
    assert_eq!(session.broker.recv_deadline(LIMIT).expect("done").msg, bl::ToBroker::Done(order));
    let argv = ["sleep", "300"];
    let (_, held, _output) = session.program(3, "/bin/sleep", &argv, "/", false).expect("starts");
    eventually("it stands still", || state(held) == Some('T'));
    let (_, other, _output) = session.program(4, "/bin/sleep", &argv, "/", false).expect("starts");
    eventually("another run goes on", || state(other) == Some('S'));
    session.broker.send(&bl::ToLauncher::Resume(order), &[]).expect("sent");
    assert_eq!(session.broker.recv_deadline(LIMIT).expect("done").msg, bl::ToBroker::Done(order));
    eventually("it goes on", || state(held) == Some('S'));

    session.supervisor.send(&sl::ToLauncher::Freeze(Ping { n: 6 }), &[]).expect("sent");
    assert_eq!(session.told(), sl::ToSupervisor::Frozen(Ping { n: 6 }));
    let (_, late, _output) = session.program(5, "/bin/sleep", &argv, "/", false).expect("starts");
    eventually("it stands still", || state(late) == Some('T'));
    session.supervisor.send(&sl::ToLauncher::Thaw(Ping { n: 7 }), &[]).expect("sent");
    assert_eq!(session.told(), sl::ToSupervisor::Frozen(Ping { n: 7 }));
    eventually("it goes on", || state(late) == Some('S'));
}
