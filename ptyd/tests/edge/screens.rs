//! What is on the screens, and when.

use std::os::fd::AsFd as _;

use shoal_chan::Chan;
use shoal_proto::broker_ptyd::{Expect, Matched, PtyCall, Read, Refusal, Refused, Resize, ToBroker, ToPtyd, Wait};
use shoal_proto::launcher_ptyd;
use shoal_proto::supervisor_launcher::Generation;
use shoal_proto::{Text, broker_launcher::PtyExited};
use shoal_sys::socket;

use crate::setup::{LIMIT, Ptyd, hello, key, rows, start_on_terminal, text, wait};

#[test]
fn output_shows_and_changes_are_told() {
    let mut ptyd = Ptyd::start();
    let running = ptyd.sh(1, "printf 'one\\ntwo '; cat");
    let first = ptyd.read_text(1, "two");
    assert_eq!(rows(&first), ["one", "two", "", "", "", ""]);
    assert_eq!((first.row, first.col, first.cols, first.hidden, first.changed), (1, 4, 40, false, true));
    assert!(!ptyd.read(1, None).changed);
    ptyd.send(1, vec![text("hello"), key("Enter")]);
    let echoed = ptyd.read(1, Some(Wait { regex: Some(Text::cut("^hello$")), ..wait() }));
    assert_eq!((echoed.matched, echoed.changed, echoed.exit), (Some(Matched::Regex), true, None));
    ptyd.send(1, vec![key("Ctrl-D")]);
    ptyd.reap(&running);
    let ended = ptyd.read(1, Some(Wait { exit: true, ..wait() }));
    assert_eq!((ended.matched, ended.exit.and_then(|e| e.code)), (Some(Matched::Exit), Some(0)));
    assert!(rows(&ended).contains(&"hello"), "the last screen stays readable");
}

#[test]
fn an_exit_comes_after_the_last_output() {
    let mut ptyd = Ptyd::start();
    for id in 1..=30 {
        let running = ptyd.sh(id, &format!("seq 1 300; echo MARK{id}; exit 3"));
        let read = Read {
            call: ptyd.call(),
            id,
            wait: Some(Wait { exit: true, ..wait() }),
            scrollback: None,
            formatted: false,
        };
        ptyd.broker.send(&ToPtyd::Read(read), &[]).expect("sent");
        let status = ptyd.reap(&running);
        let ToBroker::Screen(screen) = ptyd.answer() else { panic!("no screen") };
        assert_eq!(screen.exit, Some(status));
        assert!(rows(&screen).contains(&format!("MARK{id}").as_str()), "{:?}", rows(&screen));
    }
}

#[test]
fn ticks_and_the_end_are_events() {
    let mut ptyd = Ptyd::start();
    let running = ptyd.sh(1, "echo hi");
    let ToBroker::Tick(tick) = ptyd.broker.recv_deadline(LIMIT).expect("a tick").msg else { panic!("no tick") };
    assert!(tick.id == 1 && tick.output > 0);
    let status = ptyd.reap(&running);
    let ended = loop {
        match ptyd.broker.recv_deadline(LIMIT).expect("an end").msg {
            ToBroker::Tick(_) => {}
            other => break other,
        }
    };
    assert_eq!(ended, ToBroker::Exited(PtyExited { id: 1, status }));
}

#[test]
fn a_program_that_asks_gets_its_answer() {
    let mut ptyd = Ptyd::start();
    let script = "stty raw -echo; printf 'ab\\033[6n'; dd bs=1 count=6 2>/dev/null | od -An -c; sleep 100";
    let _running = ptyd.sh(1, script);
    let screen = ptyd.read_text(1, "R");
    assert!(rows(&screen).join(" ").contains("033   [   1   ;   3   R"), "{:?}", rows(&screen));
}

#[test]
fn a_resize_reaches_the_program_and_scrollback_is_read_by_line() {
    let mut ptyd = Ptyd::start();
    let _running = ptyd.sh(1, "trap 'stty size' WINCH; seq 1 100; while :; do sleep 0.05; done");
    ptyd.read_text(1, "100");
    let read = Read { call: ptyd.call(), id: 1, wait: None, scrollback: Some((10, 13)), formatted: true };
    let ToBroker::Screen(screen) = ptyd.ask(&ToPtyd::Read(read)) else { panic!("no screen") };
    let lines: Vec<&str> = screen.scrollback.as_slice().iter().map(Text::as_str).collect();
    assert_eq!(lines, ["11", "12", "13"]);
    assert!(screen.scrollback_len >= 90 && !screen.formatted.as_slice().is_empty());
    let call = ptyd.call();
    let done = ptyd.ask(&ToPtyd::Resize(Resize { call, id: 1, cols: 70, rows: 9 }));
    assert_eq!(done, ToBroker::Done(PtyCall { call, id: 1 }));
    let screen = ptyd.read_text(1, "9 70");
    assert_eq!((screen.cols, screen.rows.as_slice().len()), (70, 9));
}

#[test]
fn a_replaced_emulator_starts_blank_and_makes_the_program_repaint() {
    let running = start_on_terminal(5, "trap 'echo again' WINCH; echo painted; while :; do sleep 0.05; done");
    let mut first = Ptyd::start();
    first.give(&running, false);
    first.read_text(5, "painted");
    drop(first);
    let mut second = Ptyd::start();
    second.give(&running, true);
    let screen = second.read_text(5, "again");
    assert!(screen.reset && screen.exit.is_none());
    assert!(!rows(&screen).contains(&"painted"));
    assert!(!second.read(5, None).reset, "said once");
}

#[test]
fn a_fresh_broker_takes_over() {
    let mut ptyd = Ptyd::start();
    let _running = ptyd.sh(1, "echo kept; cat");
    ptyd.read_text(1, "kept");
    let (broker, far) = socket::pair(socket::Carrier::NATIVE).expect("a pair");
    let adopt = launcher_ptyd::ToPtyd::Adopt(Generation { generation: 2 });
    ptyd.launcher.send(&adopt, &[far.as_fd()]).expect("sent");
    ptyd.broker = Chan::from_fd(broker).expect("a socket");
    assert_eq!(ptyd.broker.recv_deadline(LIMIT).expect("a hello").msg, ToBroker::Hello(hello(2)));
    ptyd.broker.send(&ToPtyd::Hello(hello(2)), &[]).expect("sent");
    ptyd.read_text(1, "kept");
}

#[test]
fn a_terminal_that_was_announced_is_blank_until_it_comes() {
    let mut ptyd = Ptyd::start();
    ptyd.broker.send(&ToPtyd::Expect(Expect { id: 3, cols: 20, rows: 2 }), &[]).expect("sent");
    assert_eq!(rows(&ptyd.read(3, None)), ["", ""]);
    let call = ptyd.call();
    let read = Read { call, id: 4, wait: None, scrollback: None, formatted: false };
    assert_eq!(ptyd.ask(&ToPtyd::Read(read)), ToBroker::Refused(Refused { call, why: Refusal::Unknown }));
    let call = ptyd.call();
    assert_eq!(ptyd.ask(&ToPtyd::Close(PtyCall { call, id: 3 })), ToBroker::Done(PtyCall { call, id: 3 }));
}

#[test]
fn two_hundred_terminals_show_their_marks_and_leave_nothing() {
    let mut ptyd = Ptyd::start();
    let files = |pid: i32| std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    let before = files(ptyd.pid);
    for batch in 0..25 {
        let ids = batch * 8 + 1..=batch * 8 + 8;
        let running: Vec<_> = ids.map(|id| ptyd.sh(id, &format!("echo mark-{id}"))).collect();
        for running in &running {
            ptyd.reap(running);
            ptyd.read_text(running.id, &format!("mark-{}", running.id));
            let call = ptyd.call();
            ptyd.ask(&ToPtyd::Close(PtyCall { call, id: running.id }));
        }
    }
    assert_eq!(files(ptyd.pid), before);
}
