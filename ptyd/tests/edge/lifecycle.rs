//! Birth, adoption, replacement, end.

use std::os::fd::AsFd as _;

use shoal_chan::{Chan, ChanError};
use shoal_proto::broker_ptyd::{Hosted, Matched, Refusal, ToBroker, Wait};
use shoal_proto::launcher_ptyd as lp;
use shoal_sys::spawn::{Command, Program};
use shoal_sys::{fd, process, socket};

use crate::host::{Host, LIMIT, lines, on_terminal, patient, text};

#[test]
fn a_replaced_host_starts_blank_and_the_program_repaints() {
    let mut host = Host::start();
    let shell = host.open(1, 60, 8, &["python3", "-c", crate::host::SIZE_TELLER]);
    host.until(1, "8 60");
    host.resize(1, 61, 9);
    host.until(1, "9 61");
    host.begin_read(1, Some(Wait { exit: true, ..patient() }));
    host.replace(&[(1, &shell)]);
    let screen = host.until(1, "9 61");
    assert!(screen.reset && !lines(&screen).contains(&"8 60"), "{:?}", lines(&screen));
    assert_eq!((screen.cols, screen.rows.as_slice().len()), (61, 9), "the size in force");
    assert!(!host.read(1, None).reset, "said once");
    drop(shell);
}

#[test]
fn a_new_broker_finds_screens_and_ends_and_none_of_the_old_calls() {
    let mut host = Host::start();
    let ended = host.sh(1, "echo bye; exit 4");
    let alive = host.sh(2, "echo hi; read a; echo \"got $a\"; read b");
    host.reap(1, &ended);
    host.until(2, "hi");
    host.event(|event| matches!(event, ToBroker::Exited(_)));
    host.begin_read(2, Some(Wait { text: Some(shoal_proto::Text::new("got").expect("fits")), ..patient() }));
    host.resize(2, 70, 20);
    host.adopt(7);
    let hosted = [(1, ended.pid, 80, 24), (2, alive.pid, 70, 20)];
    for (id, pid, cols, rows) in hosted {
        let told = host.event(|event| matches!(event, ToBroker::Hosted(_)));
        assert_eq!(told, ToBroker::Hosted(Hosted { id, pid, cols, rows }));
    }
    let exited = host.event(|event| matches!(event, ToBroker::Exited(_)));
    assert!(matches!(exited, ToBroker::Exited(exited) if exited.id == 1 && exited.status.code == Some(4)));
    assert_eq!(lines(&host.read(1, None)), ["bye"]);
    host.type_text(2, "x\n");
    host.until(2, "got x");
    drop(alive);
}

#[test]
fn output_is_taken_while_there_is_no_broker() {
    let mut host = Host::start();
    let (nobody, _far) = socket::pair(socket::Carrier::NATIVE).expect("a pair");
    host.broker = Chan::from_fd(nobody).expect("a socket");
    let program = on_terminal(80, 24, &["sh", "-c", "seq 1 20000; echo all"]);
    host.give(1, &program, false);
    // The program can only end when somebody reads its terminal.
    host.reap(1, &program);
    host.adopt(4);
    let screen = host.read(1, Some(Wait { exit: true, ..patient() }));
    assert_eq!((screen.matched, lines(&screen).last().copied()), (Some(Matched::Exit), Some("all")));
}

#[test]
fn closing_tells_whoever_waits_and_forgets() {
    let mut host = Host::start();
    let shell = host.sh(1, "echo hi; read a");
    host.until(1, "hi");
    let waiting = host.begin_read(1, Some(Wait { exit: true, ..patient() }));
    let closing = host.begin_read(1, None);
    host.screen(closing);
    host.broker
        .send(&shoal_proto::broker_ptyd::ToPtyd::Close(shoal_proto::broker_ptyd::PtyCall { call: 900, id: 1 }), &[])
        .expect("sent");
    assert!(matches!(host.answer(waiting), ToBroker::Refused(refused) if refused.why == Refusal::Unknown));
    assert!(matches!(host.answer(900), ToBroker::Done(_)));
    assert!(matches!(host.send(1, vec![text("x")]), ToBroker::Refused(refused) if refused.why == Refusal::Unknown));
    drop(shell);
}

#[test]
fn a_send_before_the_leader_is_typed_when_it_comes() {
    let mut host = Host::start();
    let expect = shoal_proto::broker_ptyd::Expect { id: 5, cols: 80, rows: 24 };
    host.broker.send(&shoal_proto::broker_ptyd::ToPtyd::Expect(expect), &[]).expect("sent");
    let call = host.begin_send(5, vec![text("early\n")], false);
    assert!(lines(&host.read(5, None)).is_empty(), "a blank screen until then");
    let program = on_terminal(80, 24, &["sh", "-c", "read a; echo \"got $a\"; read b"]);
    host.give(5, &program, false);
    assert!(matches!(host.answer(call), ToBroker::Sent(sent) if sent.complete));
    host.until(5, "got early");
}

#[test]
fn input_after_the_end_is_refused() {
    let mut host = Host::start();
    let shell = host.sh(1, "exit 0");
    host.reap(1, &shell);
    host.read(1, Some(Wait { exit: true, ..patient() }));
    assert!(matches!(host.send(1, vec![text("x")]), ToBroker::Refused(refused) if refused.why == Refusal::Closed));
}

#[test]
fn the_end_of_the_launcher_is_the_end() {
    let mut host = Host::start();
    let (nobody, _far) = socket::pair(socket::Carrier::NATIVE).expect("a pair");
    host.launcher = Chan::from_fd(nobody).expect("a socket");
    assert!(matches!(host.broker.recv_deadline(LIMIT), Err(ChanError::Closed)));
    assert!(matches!(process::reap_pid(host.pid), Ok(process::Exit::Code(0))));
}

#[test]
fn a_launcher_that_breaks_the_protocol_is_not_served() {
    let mut host = Host::start();
    let hello =
        shoal_proto::Hello { version: shoal_proto::EDGE_VERSION, build: shoal_proto::Text::cut("x"), generation: 1 };
    host.launcher.send(&lp::ToPtyd::Hello(hello), &[]).expect("sent");
    assert!(matches!(host.broker.recv_deadline(LIMIT), Err(ChanError::Closed)));
    assert!(matches!(process::reap_pid(host.pid), Ok(process::Exit::Code(1))));
}

#[test]
fn an_environment_or_argument_is_refused() {
    let image = fd::open_program(std::path::Path::new(env!("CARGO_BIN_EXE_shoal-ptyd"))).expect("built");
    let null = fd::null().expect("the null device");
    let (ours, far) = socket::pair(socket::Carrier::NATIVE).expect("a pair");
    let fds = || vec![null.as_fd(), null.as_fd(), null.as_fd(), far.as_fd(), far.as_fd()];
    let name = c"shoal-ptyd".to_owned();
    let with_argument = Command::new(Program::Fd(image.as_fd()), vec![name.clone(), c"x".to_owned()]).fds(fds());
    let with_env = Command::new(Program::Fd(image.as_fd()), vec![name]).env(vec![c"A=b".to_owned()]).fds(fds());
    for command in [with_argument, with_env] {
        let pid = command.spawn().expect("started").pid;
        assert!(matches!(process::reap_pid(pid), Ok(process::Exit::Code(1))));
    }
    drop(ours);
}
