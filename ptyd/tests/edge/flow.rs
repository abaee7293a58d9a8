//! Floods, many terminals, and who does not suffer from them.

use shoal_proto::broker_ptyd::{Read, ToBroker, Wait};

use crate::host::{Host, lines, patient};

#[test]
fn a_flood_on_one_terminal_leaves_the_others_alive() {
    let mut host = Host::start();
    let flood = host.open(1, 80, 24, &["yes", "FLOOD"]);
    let quiet = host.sh(2, "read a; echo \"got $a\"; read b");
    host.until(1, "FLOOD\nFLOOD\nFLOOD");
    host.type_text(2, "word\n");
    host.until(2, "got word");
    let before = host.read(1, None).output;
    while host.read(1, None).output < before + 4_000_000 {}
    drop(flood);
    drop(quiet);
}

#[test]
fn costly_sequences_are_taken_in_slices() {
    let mut host = Host::start();
    let script = "stty -opost; while :; do printf '\\033c\\033[65535b\\033[?1049h\\033[?1049l'; done";
    let bomb = host.open(1, 1000, 1000, &["sh", "-c", script]);
    let quiet = host.sh(2, "for n in 1 2 3; do read a; echo \"got $a\"; done");
    for word in ["a", "b", "c"] {
        host.type_text(2, &format!("{word}\n"));
        host.until(2, &format!("got {word}"));
    }
    drop(bomb);
    host.reap(2, &quiet);
}

#[test]
fn many_terminals_that_print_and_end_all_show_their_mark_and_leave_nothing() {
    let mut host = Host::start();
    let before = host.open_files();
    for round in 0..25 {
        let programs: Vec<_> =
            (0..8).map(|n| round * 8 + n).map(|id| (id, host.sh(id, &format!("seq 1 300; echo mark-{id}")))).collect();
        for (id, program) in &programs {
            host.reap(*id, program);
        }
        for (id, _program) in &programs {
            let screen = host.read(*id, Some(Wait { exit: true, ..patient() }));
            assert_eq!(lines(&screen).last(), Some(&format!("mark-{id}").as_str()));
            host.close(*id);
        }
    }
    assert_eq!(host.open_files(), before);
}

#[test]
fn more_answers_than_the_channel_holds_all_arrive() {
    let mut host = Host::start();
    let shell = host.open(
        1,
        400,
        200,
        &[
            "sh",
            "-c",
            "i=0; while [ $i -lt 199 ]; do i=$((i+1)); \
        printf '%0390d\\n' $i; done; printf ready; read a",
        ],
    );
    host.until(1, "ready");
    let calls: Vec<u64> = (0..100).map(|_| host.begin_read(1, None)).collect();
    for call in calls {
        assert_eq!(host.screen(call).rows.as_slice().len(), 200);
    }
    drop(shell);
}

#[test]
fn output_before_a_new_size_is_shown_at_the_old_one() {
    let mut host = Host::start();
    let shell = host.open(1, 4, 3, &["sh", "-c", "printf abcdef; read a"]);
    // Ticks tell that the output came without anybody having looked.
    while !matches!(host.event(|event| matches!(event, ToBroker::Tick(_))), ToBroker::Tick(tick) if tick.output == 6) {}
    assert!(matches!(host.resize(1, 10, 3), ToBroker::Done(_)));
    assert_eq!(lines(&host.read(1, None)), ["abcd", "ef"]);
    drop(shell);
}

#[test]
fn scrollback_is_read_by_slices() {
    let mut host = Host::start();
    let shell = host.open(1, 20, 5, &["sh", "-c", "seq 1 100; printf ready; read a"]);
    host.until(1, "ready");
    let read = Read { call: 0, id: 1, wait: None, scrollback: Some((90, 500)), formatted: false };
    let screen = host.read_with(read);
    let got: Vec<&str> = screen.scrollback.as_slice().iter().map(|line| line.as_str()).collect();
    assert_eq!(screen.scrollback_len, 96);
    assert_eq!(got, ["91", "92", "93", "94", "95", "96"]);
    assert_eq!(lines(&screen), ["97", "98", "99", "100", "ready"]);
    assert!(matches!(host.resize(1, 20, 10), ToBroker::Done(_)));
    drop(shell);
}
