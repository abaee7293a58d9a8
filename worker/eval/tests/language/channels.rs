//! Channels, and streams whose items come when something happens.

use crate::acceptance::check;

#[test]
fn channels_are_rings_that_tasks_share() {
    check(&[
        ("channel(\"a\")", "channel(a)"),
        ("channel(\"a\").latest()", "null"),
        ("let c = channel(\"a\")\nc.emit({n: 1})\nchannel(\"a\").latest().n", "1"),
        (
            "let c = channel(\"a\")\nc.emit(1)\nc.emit(2)\nc.events().take(2).map(e => [e.channel, e.seq, e.payload]).collect()",
            "[[\"a\", 0, 1], [\"a\", 1, 2]]",
        ),
        ("let c = channel(\"a\")\nfor i in 0..1030 { c.emit(i) }\nc.events().first().payload", "6"),
        (
            "let c = channel(\"a\")\nfor i in 0..3 { c.emit(i) }\nc.events(since: 0).take(2).map(e => e.payload).collect()",
            "[1, 2]",
        ),
        ("channel(\"a\").events(since: -1)", "! type_error"),
        ("channel(\"a\").events().len()", "! stream_unbounded"),
        ("channel(\"a\").emit(x => x)", "! type_error data"),
        ("channel(\"a\").emit([{s: [1].stream()}])", "! type_error stream"),
        ("channel(\"user.a\").emit(\"x\".repeat(70000))", "! too_large 64 KiB"),
        ("channel(\"a\").emit(\"x\".repeat(70000))", "null"),
        ("var v = [1]\nfor i in 0..64 { v = [v] }\nchannel(\"user.a\").emit(v)", "! too_large 64 levels"),
        ("channel(\"a\").take(timeout: 2ms)", "! timeout"),
        ("channel(3)", "! type_error"),
        (
            "let t = spawn { channel(\"a\").take() }\nwhile !t.is_done() { channel(\"a\").emit(5); sleep 1ms }\nt.await()",
            "5",
        ),
        (
            "let t = on(channel(\"a\"), e => channel(\"b\").emit(e.payload * 2))\nchannel(\"a\").emit(4)\nchannel(\"b\").events().first().payload",
            "8",
        ),
        ("let t = on(\"a\", e => 1 / 0)\nchannel(\"a\").emit(4)\nt.await()", "! div_zero"),
        ("let t = on(\"a\", e => e)\nt.cancel()\nt.await()", "! cancelled"),
        ("[1, 2].stream().into(channel(\"a\"))\nchannel(\"a\").events().take(2).map(.payload).collect()", "[1, 2]"),
        ("[1].stream().into(\"a\")", "! type_error"),
        ("channel(\"a\").shout()", "! field_missing"),
        ("[channel(\"a\") == channel(\"a\"), channel(\"a\") == channel(\"b\")]", "[true, false]"),
    ]);
}

#[test]
fn live_streams_wait_for_each_other() {
    check(&[
        ("let t = every(1ms).tee()\n[t[0].take(2).collect().len(), t[1].take(3).collect().len()]", "[2, 3]"),
        (
            "let c = channel(\"a\")\nfor i in 0..100 { c.emit(i) }\nlet t = c.events().map(.payload).tee(2)\nt[0].take(100).collect().len()\n\
          let late = t[1].take(3).collect()\nlate",
            "[{dropped: 36}, 36, 37]",
        ),
        // A merge must not wait for a source that has nothing while the other has.
        (
            "let c = channel(\"a\")\nc.emit(1)\nc.emit(2)\nchannel(\"quiet\").events().merge(c.events()).take(2).map(.payload).collect()",
            "[1, 2]",
        ),
        (
            "let stop = channel(\"stop\")\nstop.emit(1)\nchannel(\"quiet\").events().take_until(stop.events()).collect()",
            "[]",
        ),
        ("let c = channel(\"a\")\nfor i in 0..5 { c.emit(i) }\nc.events().map(.payload).debounce(20ms).first()", "4"),
        (
            "let c = channel(\"a\")\nfor i in 0..5 { c.emit(i) }\nc.events().map(.payload).buffer(2).take(5).collect()",
            "[0, 1, 2, 3, 4]",
        ),
        ("channel(\"quiet\").events().buffer(2).map(x => 1 / 0).merge([1].stream()).first()", "1"),
        ("every(1ms).map(x => 1 / 0).merge(channel(\"quiet\").events()).first()", "! div_zero"),
        ("every(1ms).map(x => 7).feed(head -2).out", "\"7\\n7\""),
        ("let s = every(1ms)\ns.take(1).collect()\ns.take(1).collect()", "! stream_consumed"),
    ]);
}

#[test]
fn names_that_are_not_built_say_what_to_use() {
    check(&[
        ("watch(\".\")", "! custom not available in this build"),
        ("watch(\".\", recursive: false)", "! custom every(1s)"),
        ("tail(\"f.txt\", from_start: true)", "! custom not available in this build"),
        ("open f.txt", "! custom not available in this build"),
        ("interact vim", "! custom not available in this build"),
        ("http.get(\"https://example.com\")", "! custom curl"),
        ("secret.get(\"t\")", "! custom env.NAME"),
        ("jump x", "! custom cd PATH"),
    ]);
}
