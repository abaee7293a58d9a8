//! Input: keys by the program's modes, pastes, lines that do not fit, programs that do not read.

use shoal_proto::broker_ptyd::{Refusal, Refused, ToBroker};

use crate::host::{Host, key, lines, raw, text};

#[test]
fn keys_follow_the_modes_of_the_program() {
    let mut host = Host::start();
    // Shows what arrives, one key per line of hex.
    let script = r"stty raw -echo; printf '\033[?1hready'; dd bs=16 count=1 2>/dev/null | od -An -tx1;
        printf '\033[?1l\033[>1uagain'; dd bs=16 count=1 2>/dev/null | od -An -tx1; printf done";
    let shell = host.sh(1, script);
    host.until(1, "ready");
    host.send(1, vec![key("up")]);
    host.until(1, "1b 4f 41");
    host.until(1, "again");
    host.send(1, vec![key("Escape")]);
    host.until(1, "1b 5b 32 37 75");
    host.until(1, "done");
    host.reap(1, &shell);
}

#[test]
fn a_paste_is_wrapped_when_the_program_asked_for_it() {
    let mut host = Host::start();
    let script = r"stty raw -echo; printf '\033[?2004hready'; head -c 15 | od -An -c";
    let shell = host.sh(1, script);
    host.until(1, "ready");
    let call = host.begin_send(1, vec![text("a\x1b[201~bc")], true);
    assert!(matches!(host.answer(call), ToBroker::Sent(sent) if sent.sent == 15 && sent.complete));
    let screen = host.until(1, "2   0   1   ~");
    assert!(lines(&screen)[0].contains("2   0   0   ~   a   b   c"), "{:?}", lines(&screen));
    host.reap(1, &shell);
}

#[test]
fn a_line_over_the_limit_is_refused_whole() {
    let mut host = Host::start();
    let shell = host.sh(1, "read -r line; echo \"got ${#line}\"");
    let typed = format!("{}\n", "x".repeat(6000));
    let call = host.begin_send(1, vec![text(&typed)], false);
    let max = u32::try_from(shoal_sys::pty::MAX_LINE).expect("small");
    assert_eq!(host.answer(call), ToBroker::Refused(Refused { call, why: Refusal::LineTooLong { max } }));
    assert!(lines(&host.read(1, None)).is_empty(), "nothing was written");
    host.type_text(1, "short\n");
    host.until(1, "got 5");
    host.reap(1, &shell);
}

#[test]
fn a_raw_reader_gets_every_byte() {
    let mut host = Host::start();
    let script = "stty raw -echo; printf ready; head -c 200000 | cksum";
    let shell = host.sh(1, script);
    host.until(1, "ready");
    let bytes: Vec<u8> = (0..200_000_u32).map(|n| (n * 7 % 251) as u8).collect();
    let ToBroker::Sent(sent) = host.send(1, vec![raw(&bytes)]) else { panic!("not sent") };
    assert!(sent.complete && sent.sent == 200_000, "{sent:?}");
    host.until(1, "200000");
    let ToBroker::Sent(all) = host.send(1, vec![]) else { panic!("not sent") };
    assert!(all.complete && all.sent == 0);
    host.reap(1, &shell);
}

#[test]
fn what_comes_back_is_read_while_writing() {
    let mut host = Host::start();
    let shell = host.sh(1, "stty raw -echo; printf ready; cat");
    host.until(1, "ready");
    let typed = format!("{}END", "0123456789".repeat(50_000));
    host.type_text(1, &typed);
    let screen = host.until(1, "END");
    assert!(screen.output >= 500_000);
    drop(shell);
}

#[test]
fn a_program_that_does_not_read_ends_the_call_incomplete_and_blocks_no_read() {
    let mut host = Host::start();
    let shell = host.sh(1, "stty raw -echo; printf ready; sleep 1000");
    host.until(1, "ready");
    let other = host.sh(2, "cat");
    let call = host.begin_send(1, vec![raw(&vec![b'x'; 1024 * 1024])], false);
    host.type_text(2, "quick\n");
    host.until(2, "quick");
    assert_eq!(lines(&host.read(1, None)), ["ready"], "a read is answered before the write ends");
    let ToBroker::Sent(sent) = host.answer(call) else { panic!("not sent") };
    assert!(!sent.complete && sent.sent < 1024 * 1024, "{sent:?}");
    drop((shell, other));
}

#[test]
fn bad_input_is_refused_and_nothing_is_written() {
    let mut host = Host::start();
    let shell = host.sh(1, "read -r line; echo \"got $line\"");
    let call = host.begin_send(1, vec![text("a"), key("Entre")], false);
    let ToBroker::Refused(refused) = host.answer(call) else { panic!("sent") };
    assert!(matches!(refused.why, Refusal::Key(name) if name.as_str() == "Entre"));
    host.type_text(1, "b\n");
    host.until(1, "got b");
    host.reap(1, &shell);
    let call = host.begin_send(9, vec![text("a")], false);
    assert_eq!(host.answer(call), ToBroker::Refused(Refused { call, why: Refusal::Unknown }));
}
