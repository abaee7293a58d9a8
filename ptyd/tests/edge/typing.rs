//! What is typed, and what is refused.

use shoal_proto::Bytes;
use shoal_proto::broker_ptyd::{Input, Refusal, Refused, Sent, ToBroker};

use crate::setup::{Ptyd, key, rows, text};

#[test]
fn cursor_keys_follow_the_program_s_mode() {
    let mut ptyd = Ptyd::start();
    let script = "stty raw -echo; dd bs=1 count=3 2>/dev/null | od -An -c; printf '\\033[?1hon'; \
                  dd bs=1 count=3 2>/dev/null | od -An -c; sleep 100";
    let _running = ptyd.sh(1, &format!("printf ready; {script}"));
    ptyd.read_text(1, "ready");
    ptyd.send(1, vec![key("Up")]);
    ptyd.read_text(1, "033   [   A");
    ptyd.read_text(1, "on");
    ptyd.send(1, vec![key("Up")]);
    ptyd.read_text(1, "033   O   A");
}

#[test]
fn a_line_too_long_for_the_terminal_is_refused_whole() {
    let mut ptyd = Ptyd::start();
    let _running = ptyd.sh(1, "echo ready; wc -c");
    ptyd.read_text(1, "ready");
    let refused = ptyd.send(1, vec![text(&"x".repeat(6000))]);
    assert!(
        matches!(refused, ToBroker::Refused(Refused { why: Refusal::LineTooLong { max: 4095 }, .. })),
        "{refused:?}"
    );
    let sent = ptyd.send(1, vec![text("four\n"), key("Ctrl-D")]);
    assert!(matches!(sent, ToBroker::Sent(Sent { sent: 6, complete: true, .. })), "{sent:?}");
    let screen = ptyd.read_text(1, "\n5\n");
    assert!(!rows(&screen).join("").contains('x'), "nothing of it was written");
}

#[test]
fn a_raw_reader_gets_two_hundred_thousand_bytes() {
    let mut ptyd = Ptyd::start();
    let script = "stty raw -echo; printf ready; dd bs=1000 count=200 iflag=fullblock 2>/dev/null | cksum; sleep 100";
    let _running = ptyd.sh(1, script);
    ptyd.read_text(1, "ready");
    let raw = Input::Raw(Bytes::new(vec![b'z'; 200_000]).expect("fits"));
    let sent = ptyd.send(1, vec![raw]);
    assert!(matches!(sent, ToBroker::Sent(Sent { sent: 200_000, complete: true, .. })), "{sent:?}");
    ptyd.read_text(1, " 200000");
}

#[test]
fn a_program_that_does_not_read_holds_up_only_its_own_send() {
    let mut ptyd = Ptyd::start();
    let _deaf = ptyd.sh(1, "stty raw -echo; printf ready; sleep 100");
    let _other = ptyd.sh(2, "cat");
    ptyd.read_text(1, "ready");
    let raw = Input::Raw(Bytes::new(vec![b'z'; 200_000]).expect("fits"));
    let send = shoal_proto::broker_ptyd::Send {
        call: ptyd.call(),
        id: 1,
        input: shoal_proto::List::new([raw]).expect("fits"),
        paste: false,
    };
    ptyd.broker.send(&shoal_proto::broker_ptyd::ToPtyd::Send(send), &[]).expect("sent");
    let echoed = ptyd.send(2, vec![text("quick\n")]);
    assert!(matches!(echoed, ToBroker::Sent(Sent { sent: 6, complete: true, .. })), "{echoed:?}");
    ptyd.read_text(2, "quick");
    let given_up = ptyd.answer();
    assert!(matches!(given_up, ToBroker::Sent(Sent { complete: false, sent, .. }) if sent < 200_000), "{given_up:?}");
}

#[test]
fn an_unknown_key_writes_nothing() {
    let mut ptyd = Ptyd::start();
    let _running = ptyd.sh(1, "cat");
    let refused = ptyd.send(1, vec![text("abc\n"), key("Hyper")]);
    assert!(matches!(refused, ToBroker::Refused(Refused { why: Refusal::Key(_), .. })), "{refused:?}");
    ptyd.send(1, vec![text("next\n")]);
    assert!(!rows(&ptyd.read_text(1, "next")).contains(&"abc"));
}

#[test]
fn typing_at_an_ended_program_is_refused() {
    let mut ptyd = Ptyd::start();
    let running = ptyd.sh(1, "echo bye");
    ptyd.reap(&running);
    ptyd.read(1, Some(shoal_proto::broker_ptyd::Wait { exit: true, ..crate::setup::wait() }));
    let refused = ptyd.send(1, vec![text("x")]);
    assert!(matches!(refused, ToBroker::Refused(Refused { why: Refusal::Closed, .. })), "{refused:?}");
}
