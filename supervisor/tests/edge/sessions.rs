//! Sessions: birth, roles, freeze, kill.

use shoal_proto::hello::{ExitStatus, SessionRole};
use shoal_proto::supervisor_broker::{Order, ToBroker, ToSupervisor};
use shoal_proto::supervisor_launcher::{self as launcher, BirthFailed, RoleDied, RoleStarted, ToLauncher};

use crate::Test;
use crate::fake::{CHILD, EXIT};
use crate::rig::{Rig, eventually, exists, hello, order, ping, variant};

pub(crate) const TESTS: &[Test] = &[
    ("a_session_comes_up_with_its_ends", a_session_comes_up_with_its_ends),
    ("a_birth_that_fails_says_where", a_birth_that_fails_says_where),
    ("impossible_orders_are_answered", impossible_orders_are_answered),
    ("a_dead_worker_is_replaced", a_dead_worker_is_replaced),
    (
        "deaths_that_cannot_be_end_the_session_and_not_the_broker",
        deaths_that_cannot_be_end_the_session_and_not_the_broker,
    ),
    ("a_ptyd_comes_when_it_is_needed", a_ptyd_comes_when_it_is_needed),
    ("a_dead_launcher_ends_its_session_alone", a_dead_launcher_ends_its_session_alone),
    ("a_launcher_that_breaks_the_edge_is_killed", a_launcher_that_breaks_the_edge_is_killed),
    ("a_kill_is_proved", a_kill_is_proved),
    ("freeze_and_thaw", freeze_and_thaw),
    ("processes_are_listed", processes_are_listed),
];

fn gone(status: u8) -> ExitStatus {
    ExitStatus { code: None, signal: Some(status) }
}

fn a_session_comes_up_with_its_ends() {
    let mut rig = Rig::new();
    let mut broker = rig.ready();
    let (up, ends, launcher, theirs) = rig.session(&mut broker);
    assert_eq!((up.generation, up.launcher, ends.len(), theirs.len()), (1, launcher.pid(), 2, 3));
    let section = shoal_sys::memfd::read_sealed(&theirs[0], 1 << 20).unwrap();
    let section = shoal_proto::section::Section::decode(&section).unwrap();
    assert!(section.is_whole_filesystem());
    for (end, theirs) in ends.iter().zip(&theirs[1..]) {
        shoal_sys::socket::send(end, &[std::io::IoSlice::new(b"ping")], &[], true).unwrap();
        assert_eq!(shoal_sys::socket::recv(theirs, &mut [0; 8], true).unwrap().len, 4);
    }
    // Number 1 of its own processes, with the listed descriptors and nothing else.
    assert_eq!(launcher.report, "shoal-launcher pid=1 fds=[0, 1, 2, 3, 4, 5] env=0 threads=1");
}

fn a_birth_that_fails_says_where() {
    let mut rig = Rig::new();
    let mut broker = rig.ready();
    broker.edge.send(&ToSupervisor::CreateSession(order(4)), &[]).unwrap();
    let mut launcher = rig.launcher();
    launcher.expect(variant!(ToLauncher::Birth));
    let failed = BirthFailed { step: shoal_proto::Text::cut("load the filter"), errno: libc::EINVAL };
    launcher.edge.send(&launcher::ToSupervisor::BirthFailed(failed), &[]).unwrap();
    let (failed, _) = broker.expect(variant!(ToBroker::SessionFailed));
    assert_eq!((failed.order, failed.step.as_str(), failed.errno), (4, "load the filter", libc::EINVAL));

    broker.edge.send(&ToSupervisor::CreateSession(order(5)), &[]).unwrap();
    rig.launcher().order(EXIT);
    let (failed, _) = broker.expect(variant!(ToBroker::SessionFailed));
    assert_eq!(failed.order, 5);
    assert!(failed.step.as_str().contains("ended with exit 7"), "{}", failed.step);
}

fn impossible_orders_are_answered() {
    let mut rig = Rig::new();
    let mut broker = rig.ready();
    let mut bad = order(1);
    bad.owner = shoal_proto::Text::cut("agent:nobody");
    broker.edge.send(&ToSupervisor::CreateSession(bad), &[]).unwrap();
    let (failed, _) = broker.expect(variant!(ToBroker::SessionFailed));
    assert_eq!((failed.order, failed.step.as_str()), (1, "find a section of the policy for agent:nobody"));
    let mut bad = order(2);
    bad.cwd = shoal_proto::Text::cut("/nowhere");
    broker.edge.send(&ToSupervisor::CreateSession(bad), &[]).unwrap();
    let (failed, _) = broker.expect(variant!(ToBroker::SessionFailed));
    assert_eq!((failed.order, failed.no_such_dir), (2, true));
    let unknown = Order { order: 3, session: 99 };
    broker.edge.send(&ToSupervisor::KillSession(unknown.clone()), &[]).unwrap();
    let (killed, _) = broker.expect(variant!(ToBroker::Killed));
    assert_eq!((killed.order, killed.ended.as_slice().len()), (3, 0));
    broker.edge.send(&ToSupervisor::Freeze(unknown), &[]).unwrap();
    assert!(!broker.expect(variant!(ToBroker::Frozen)).0.frozen);
}

fn a_dead_worker_is_replaced() {
    let mut rig = Rig::new();
    let mut broker = rig.ready();
    let (up, _ends, mut launcher, _theirs) = rig.session(&mut broker);
    let worker = SessionRole::Worker;
    let mut delays = Vec::new();
    for generation in 2..4 {
        let died = RoleDied { role: worker, status: gone(11), fault: shoal_proto::Text::default() };
        launcher.edge.send(&launcher::ToSupervisor::RoleDied(died), &[]).unwrap();
        let (exit, _) = broker.expect(variant!(ToBroker::RoleExit));
        assert_eq!((exit.session, exit.role, exit.status), (up.session, worker, gone(11)));
        delays.push(exit.restart_in_ms);
        let (start, theirs) = launcher.expect(variant!(ToLauncher::StartWorker));
        assert_eq!(start.generation, generation);
        let started = RoleStarted { role: worker, pid: 10, generation };
        launcher.edge.send(&launcher::ToSupervisor::RoleStarted(started), &[]).unwrap();
        let (role_up, ends) = broker.expect(variant!(ToBroker::RoleUp));
        assert_eq!((role_up.session, role_up.role, role_up.generation), (up.session, worker, generation));
        shoal_sys::socket::send(&ends[0], &[std::io::IoSlice::new(b"x")], &[], true).unwrap();
        assert_eq!(shoal_sys::socket::recv(&theirs[0], &mut [0; 8], true).unwrap().len, 1);
    }
    assert_eq!(delays, [Some(0), Some(1000)]);
}

fn deaths_that_cannot_be_end_the_session_and_not_the_broker() {
    let mut rig = Rig::new();
    let mut broker = rig.ready();
    let (up, _ends, mut launcher, _theirs) = rig.session(&mut broker);
    let ptyd = SessionRole::Ptyd;
    // More than the broker's queue takes while it does not read.
    for _ in 0..200 {
        let died = RoleDied { role: ptyd, status: gone(11), fault: shoal_proto::Text::default() };
        if launcher.edge.send(&launcher::ToSupervisor::RoleDied(died), &[]).is_err() {
            break;
        }
    }
    let (exit, _) = broker.expect(variant!(ToBroker::RoleExit));
    assert_eq!((exit.session, exit.role), (up.session, SessionRole::Launcher));
    assert!(exit.fault.as_str().contains("RoleDied"), "{exit:?}");
}

fn a_ptyd_comes_when_it_is_needed() {
    let mut rig = Rig::new();
    let mut broker = rig.ready();
    let (up, _ends, mut launcher, _theirs) = rig.session(&mut broker);
    broker.edge.send(&ToSupervisor::NeedPtyd(Order { order: 2, session: up.session }), &[]).unwrap();
    let (start, theirs) = launcher.expect(variant!(ToLauncher::StartPtyd));
    assert_eq!(theirs.len(), 1);
    let started = RoleStarted { role: SessionRole::Ptyd, pid: 11, generation: start.generation };
    launcher.edge.send(&launcher::ToSupervisor::RoleStarted(started), &[]).unwrap();
    let (role_up, _) = broker.expect(variant!(ToBroker::RoleUp));
    assert_eq!(role_up.role, SessionRole::Ptyd);
    // A new broker gets its end of the ptyd too.
    broker.order(EXIT);
    let (adopted, ends) = rig.broker().expect(variant!(ToBroker::Adopt));
    assert!(adopted.ptyd);
    assert_eq!(ends.len(), 3);
    assert_eq!(launcher.expect(variant!(ToLauncher::Adopt)).1.len(), 3);
}

fn a_dead_launcher_ends_its_session_alone() {
    let mut rig = Rig::new();
    let mut broker = rig.ready();
    let (first, _ends, mut launcher, _) = rig.session(&mut broker);
    let (second, _ends2, other, _) = rig.session(&mut broker);
    launcher.order(EXIT);
    let (exit, _) = broker.expect(variant!(ToBroker::RoleExit));
    assert_eq!((exit.session, exit.role, exit.restart_in_ms), (first.session, SessionRole::Launcher, None));
    assert!(exists(other.pid()));
    broker.edge.send(&ToSupervisor::ListProcesses(ping(9)), &[]).unwrap();
    let (processes, _) = broker.expect(variant!(ToBroker::Processes));
    let sessions: Vec<u64> = processes.sessions.as_slice().iter().map(|s| s.session).collect();
    assert_eq!(sessions, [second.session]);
}

fn a_launcher_that_breaks_the_edge_is_killed() {
    let mut rig = Rig::new();
    let mut broker = rig.ready();
    let (up, _ends, mut launcher, _) = rig.session(&mut broker);
    launcher.edge.send(&launcher::ToSupervisor::Ready(hello()), &[]).unwrap();
    let (exit, _) = broker.expect(variant!(ToBroker::RoleExit));
    assert_eq!((exit.session, exit.status), (up.session, gone(9)));
}

fn a_kill_is_proved() {
    let mut rig = Rig::new();
    let mut broker = rig.ready();
    let (up, _ends, mut launcher, _) = rig.session(&mut broker);
    launcher.order(CHILD);
    let child = || shoal_sys::procfs::tree(launcher.pid()).unwrap().iter().map(|p| p.pid).collect::<Vec<_>>();
    eventually("the child runs", || child().len() >= 2);
    let all = child();
    broker.edge.send(&ToSupervisor::KillSession(Order { order: 8, session: up.session }), &[]).unwrap();
    // The launcher is told, and does nothing.
    assert_eq!(launcher.expect(variant!(ToLauncher::Kill)).0.grace_ms, 2000);
    let (killed, _) = broker.expect(variant!(ToBroker::Killed));
    assert_eq!((killed.order, killed.session), (8, up.session));
    let mut ended: Vec<i32> = killed.ended.as_slice().iter().map(|p| p.pid).collect();
    ended.sort_unstable();
    assert!(all.iter().all(|pid| ended.contains(pid)), "{all:?} {ended:?}");
    assert!(killed.survived.as_slice().is_empty());
    assert!(all.iter().all(|pid| !exists(*pid)));
}

fn freeze_and_thaw() {
    let mut rig = Rig::new();
    let mut broker = rig.ready();
    let (up, _ends, mut launcher, _) = rig.session(&mut broker);
    broker.edge.send(&ToSupervisor::Freeze(Order { order: 3, session: up.session }), &[]).unwrap();
    let (asked, _) = launcher.expect(variant!(ToLauncher::Freeze));
    launcher.edge.send(&launcher::ToSupervisor::Frozen(asked), &[]).unwrap();
    let (frozen, _) = broker.expect(variant!(ToBroker::Frozen));
    assert_eq!((frozen.order, frozen.frozen), (3, true));
    // A launcher that does not do it: nothing changed.
    broker.edge.send(&ToSupervisor::Thaw(Order { order: 4, session: up.session }), &[]).unwrap();
    let (frozen, _) = broker.expect(variant!(ToBroker::Frozen));
    assert_eq!((frozen.order, frozen.frozen), (4, true));
}

fn processes_are_listed() {
    let mut rig = Rig::new();
    let mut broker = rig.ready();
    let (up, _ends, launcher, _) = rig.session(&mut broker);
    broker.edge.send(&ToSupervisor::ListProcesses(ping(6)), &[]).unwrap();
    let (list, _) = broker.expect(variant!(ToBroker::Processes));
    assert_eq!(list.supervisor.pid, i32::try_from(rig.kernel.as_ref().unwrap().id()).unwrap());
    assert_eq!(list.supervisor.comm.as_str(), "shoal-kernel");
    assert_eq!(list.broker.pid, broker.pid());
    let [session] = list.sessions.as_slice() else { panic!("{list:?}") };
    assert_eq!((session.session, session.launcher), (up.session, launcher.pid()));
    assert!(session.all.as_slice().iter().all(|process| process.rss > 0));
}
