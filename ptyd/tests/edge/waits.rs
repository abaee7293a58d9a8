//! Reads that wait, and events.

use shoal_proto::Text;
use shoal_proto::broker_ptyd::{Matched, PtyCall, Read, Refusal, ToBroker, ToPtyd, Wait};

use crate::host::{Host, lines, patient};

#[test]
fn several_readers_wait_for_different_things() {
    let mut host = Host::start();
    let shell = host.sh(1, "read a; echo one; read b; echo two; read c");
    let word = |word: &str| Some(Text::new(word).expect("fits"));
    let two = host.begin_read(1, Some(Wait { text: word("two"), ..patient() }));
    let one = host.begin_read(1, Some(Wait { regex: word("^one$"), ..patient() }));
    host.type_text(1, "\n");
    assert_eq!(host.screen(one).matched, Some(Matched::Regex));
    host.type_text(1, "\n");
    assert_eq!(host.screen(two).matched, Some(Matched::Text));
    drop(shell);
}

#[test]
fn quiet_and_time_end_a_wait() {
    let mut host = Host::start();
    let shell = host.sh(1, "echo hi; read a");
    host.until(1, "hi");
    let screen = host.read(1, Some(Wait { quiet_ms: Some(30), ..patient() }));
    assert!(screen.matched == Some(Matched::Quiet) && screen.waited_ms >= 30, "{screen:?}");
    let screen = host.read(1, Some(Wait { exit: true, timeout_ms: 40, ..patient() }));
    assert!(screen.timed_out && screen.matched.is_none() && screen.waited_ms >= 40, "{screen:?}");
    drop(shell);
}

#[test]
fn the_end_of_the_program_ends_every_wait_with_its_last_output() {
    let mut host = Host::start();
    let shell = host.sh(1, "read a; seq 1 5000; echo last; exit 3");
    let call = host.begin_read(1, Some(Wait { text: Some(Text::new("never").expect("fits")), ..patient() }));
    host.type_text(1, "\n");
    let status = host.reap(1, &shell);
    let screen = host.screen(call);
    assert_eq!((screen.matched, screen.timed_out, screen.exit), (None, false, Some(status)));
    assert_eq!(lines(&screen).last(), Some(&"last"));
    assert_eq!(status.code, Some(3));
    let again = host.read(1, None);
    assert_eq!((again.changed, again.exit), (false, Some(status)));
    let scrolled = host.read_with(Read { call: 0, id: 1, wait: None, scrollback: Some((0, 2)), formatted: false });
    assert_eq!(scrolled.scrollback_len, 2000);
    assert_eq!(scrolled.scrollback.as_slice().len(), 2);
}

#[test]
fn an_exit_never_comes_before_the_last_output() {
    let mut host = Host::start();
    for id in 1..=30 {
        let shell = host.sh(id, &format!("seq 1 300; echo MARK{id}; exit 3"));
        let call = host.begin_read(id, Some(Wait { exit: true, ..patient() }));
        let status = host.reap(id, &shell);
        let screen = host.screen(call);
        assert_eq!((screen.matched, screen.exit), (Some(Matched::Exit), Some(status)));
        assert_eq!(lines(&screen).last(), Some(&format!("MARK{id}").as_str()));
    }
}

#[test]
fn a_bad_pattern_is_refused_and_a_cancelled_read_is_not_answered() {
    let mut host = Host::start();
    let shell = host.sh(1, "read a; echo hi; read b");
    let call = host.begin_read(1, Some(Wait { regex: Some(Text::new("(").expect("fits")), ..patient() }));
    let ToBroker::Refused(refused) = host.answer(call) else { panic!("not refused") };
    assert!(matches!(refused.why, Refusal::Regex(_)));
    let gone = host.begin_read(1, Some(Wait { text: Some(Text::new("hi").expect("fits")), ..patient() }));
    host.broker.send(&ToPtyd::CancelRead(PtyCall { call: gone, id: 1 }), &[]).expect("sent");
    host.type_text(1, "\n");
    // The next answer is this one's: an answer to the cancelled read would fail here.
    host.until(1, "hi");
    drop(shell);
}

#[test]
fn changed_compares_with_the_previous_read_that_was_not_a_looker_on() {
    let mut host = Host::start();
    let shell = host.sh(1, "echo hi; read a; read b");
    assert!(host.until(1, "hi").changed);
    assert!(!host.read(1, None).changed);
    host.type_text(1, "x\n");
    let wait = Some(Wait { text: Some(Text::new("x").expect("fits")), ..patient() });
    let looked = host.read_with(Read { call: 0, id: 1, wait, scrollback: None, formatted: true });
    assert!(looked.formatted.as_slice().starts_with(b"\x1b[?25h"), "{:?}", looked.formatted);
    assert!(host.read(1, None).changed);
    drop(shell);
}

#[test]
fn output_ticks_with_the_count_so_far() {
    let mut host = Host::start();
    let shell = host.sh(1, "printf hello; read a");
    let ToBroker::Tick(tick) = host.event(|event| matches!(event, ToBroker::Tick(_))) else { unreachable!() };
    assert!(tick.id == 1 && (1..=5).contains(&tick.output));
    assert_eq!(host.until(1, "hello").output, 5);
    drop(shell);
}
