//! Screens on captured bytes, and the oracle of the fast path.

use proptest::prelude::*;

use super::*;

fn pane(cols: u16, rows: u16) -> Pane {
    Pane::new(Size::clamped(cols, rows))
}

fn show(pane: &mut Pane, output: &[u8]) {
    pane.push(output);
    pane.parse(&mut || false);
}

fn shown(cols: u16, rows: u16, output: &[u8]) -> Vec<String> {
    let mut pane = pane(cols, rows);
    show(&mut pane, output);
    pane.snapshot().rows
}

fn answers(output: &[u8]) -> String {
    let mut pane = pane(80, 24);
    show(&mut pane, output);
    String::from_utf8(pane.take_answers()).unwrap()
}

#[test]
fn rows_are_exact_and_trimmed() {
    assert_eq!(shown(10, 3, b"ab  \r\n  c"), ["ab", "  c", ""]);
    assert_eq!(shown(4, 2, b"abcdef"), ["abcd", "ef"]);
    assert_eq!(shown(4, 1, b"abcdef"), ["ef"]);
}

#[test]
fn wide_and_combined_characters_take_their_columns() {
    let mut pane = pane(5, 2);
    show(&mut pane, "\u{65e5}\u{672c}\u{8a9e}".as_bytes());
    let got = pane.snapshot();
    assert_eq!(got.rows, ["\u{65e5}\u{672c}", "\u{8a9e}"]);
    assert_eq!((got.row, got.col), (1, 2));
    assert_eq!(shown(5, 1, "e\u{301}x".as_bytes()), ["e\u{301}x"]);
}

#[test]
fn a_character_split_between_reads_is_whole() {
    let mut pane = pane(10, 1);
    for byte in "\u{65e5}x".as_bytes() {
        show(&mut pane, &[*byte]);
    }
    assert_eq!(pane.snapshot().rows, ["\u{65e5}x"]);
}

#[test]
fn the_alternate_screen_comes_and_goes() {
    let mut pane = pane(10, 2);
    show(&mut pane, b"main\x1b[?1049hother");
    assert_eq!(pane.snapshot().rows, ["other", ""]);
    show(&mut pane, b"\x1b[?1049l!");
    assert_eq!(pane.snapshot().rows, ["main!", ""]);
}

#[test]
fn the_cursor_never_leaves_the_screen() {
    let mut pane = pane(4, 2);
    show(&mut pane, b"abcd\x1b[?25l");
    let got = pane.snapshot();
    assert_eq!((got.row, got.col, got.hidden), (0, 3, true));
    pane.resize(Size::clamped(2, 1));
    let got = pane.snapshot();
    assert!(got.rows.len() == 1 && got.row == 0 && got.col < 2);
}

#[test]
fn queries_are_answered_with_the_state_at_their_byte() {
    assert_eq!(answers(b"\x1b[5n"), "\x1b[0n");
    assert_eq!(answers(b"ab\x1b[6ncd\r\n\x1b[6n"), "\x1b[1;3R\x1b[2;1R");
    assert_eq!(answers(&[b"x".repeat(80), b"\x1b[6n".to_vec()].concat()), "\x1b[1;80R");
    assert_eq!(answers(b"\x1b[c\x1b[0c\x1b[>c"), "\x1b[?62;22c\x1b[?62;22c\x1b[>0;10;0c");
    assert_eq!(answers(b"\x1b[?1$p\x1b[?1h\x1b[?1$p"), "\x1b[?1;2$y\x1b[?1;1$y");
    assert_eq!(answers(b"\x1b[?7$p\x1b[?25$p\x1b[?9999$p\x1b[4$p"), "\x1b[?7;3$y\x1b[?25;1$y\x1b[?9999;0$y\x1b[4;0$y");
    assert_eq!(answers(b"\x1b[?1049h\x1b[?1049$p\x1b[?47$p"), "\x1b[?1049;1$y\x1b[?47;1$y");
    assert_eq!(answers(b"\x1b[?1002h\x1b[?1002$p\x1b[?1000$p"), "\x1b[?1002;1$y\x1b[?1000;2$y");
    assert_eq!(answers(b"\x1b[14t\x1b[16t"), "\x1b[4;384;640t\x1b[6;16;8t");
    assert_eq!(answers(b"\x1b[18t\x1b[19t"), "\x1b[8;24;80t\x1b[9;24;80t");
}

#[test]
fn a_query_split_between_reads_is_answered_once() {
    let mut pane = pane(80, 24);
    for byte in b"ab\x1b[6n" {
        show(&mut pane, &[*byte]);
    }
    assert_eq!(pane.take_answers(), b"\x1b[1;3R");
    assert_eq!(pane.take_answers(), b"");
}

#[test]
fn unknown_queries_and_reads_of_title_and_clipboard_get_no_answer() {
    let silent: &[&[u8]] = &[
        b"\x1b[?6n",
        b"\x1b[7n",
        b"\x1b[=c",
        b"\x1b[1c",
        b"\x1b[20t",
        b"\x1b[21t",
        b"\x1b]52;c;?\x07",
        b"\x1b]52;c;?\x1b\\",
        b"\x1b]0;evil\x07\x1b[21t",
        b"\x1b]10;?\x07",
        b"\x1b]4;1;?\x07",
        b"\x1bP$qm\x1b\\",
        b"\x1bP+q544e\x1b\\",
        b"\x1bZ",
        b"\x05",
        b"\x1b[x",
    ];
    for query in silent {
        assert_eq!(answers(query), "", "{:?}", String::from_utf8_lossy(query));
    }
}

#[test]
fn the_keyboard_mode_is_kept_told_and_reset() {
    assert_eq!(answers(b"\x1b[?u\x1b[>31u\x1b[?u\x1b[<u\x1b[?u"), "\x1b[?0u\x1b[?1u\x1b[?0u");
    let mut pane = pane(80, 24);
    show(&mut pane, b"\x1b[=1u\x1b[?1h\x1b[?2004h");
    let all = Modes { application_cursor: true, bracketed_paste: true, disambiguate: true };
    assert_eq!(pane.modes(), all);
    show(&mut pane, b"\x1b[?1049h");
    assert!(!pane.modes().disambiguate, "the other screen has its own");
    show(&mut pane, b"\x1bc");
    assert_eq!(pane.modes(), Modes::default());
}

#[test]
fn a_flood_of_queries_is_answered_up_to_a_bound() {
    let mut pane = pane(80, 24);
    show(&mut pane, &b"\x1b[6n".repeat(100_000));
    assert!((1..=16 * 1024).contains(&pane.take_answers().len()));
}

#[test]
fn scrollback_is_bounded_and_sliced() {
    let mut pane = pane(10, 3);
    for n in 0..3000 {
        show(&mut pane, format!("{n}\r\n").as_bytes());
    }
    assert_eq!(pane.scrollback_len(), SCROLLBACK);
    let first = 3000 - 2 - SCROLLBACK;
    assert_eq!(pane.scrollback(0, 2), [first.to_string(), (first + 1).to_string()]);
    assert_eq!(pane.scrollback(1995, 9999).last().unwrap(), "2997");
    assert!(pane.scrollback(5, 5).is_empty() && pane.scrollback(9000, 9999).is_empty());
    assert_eq!(pane.snapshot().rows, ["2998", "2999", ""], "the window is back");
    show(&mut pane, b"\x1b[?1049h");
    assert_eq!(pane.scrollback_len(), 0);
}

#[test]
fn an_endless_string_takes_no_memory_and_hides_nothing_after_it() {
    let output = [&b"\x1b]0;"[..], &[b'x'; 1_000_000], b"\x07after"].concat();
    assert_eq!(shown(20, 2, &output), ["after", ""]);
}

#[test]
fn sizes_are_clamped() {
    let size = |cols, rows| Size::clamped(cols, rows);
    assert_eq!((size(0, 60_000).cols.get(), size(0, 60_000).rows.get()), (1, 1000));
}

#[test]
fn a_panic_of_the_emulator_costs_its_screen_alone() {
    let mut pane = pane(10, 2);
    show(&mut pane, b"before\x1b[3");
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let result: Option<()> = pane.guard(|_| panic!("a fault of the emulator"));
    std::panic::set_hook(hook);
    assert_eq!(result, None);
    assert!(pane.take_rebuilt() && pane.take_wants_repaint());
    assert!(!pane.take_rebuilt(), "said once");
    show(&mut pane, b"after");
    assert_eq!(pane.snapshot().rows, ["after", ""]);
}

#[test]
fn parsing_stops_when_time_is_over_and_goes_on() {
    let mut pane = pane(10, 2);
    pane.push(b"a\x1b[1mb\x1b[mc");
    let mut steps = 0;
    pane.parse(&mut || {
        steps += 1;
        steps == 2
    });
    assert!(!pane.is_idle());
    assert_eq!(pane.snapshot().rows, ["a", ""]);
    pane.parse(&mut || false);
    assert!(pane.is_idle());
    assert_eq!(pane.snapshot().rows, ["abc", ""]);
}

#[test]
fn text_can_wait_and_what_asks_or_fills_cannot() {
    let mut pane = pane(10, 2);
    pane.push(b"text\r\n");
    assert!(!pane.must_parse() && !pane.is_idle());
    pane.push(b"\x1b[6");
    assert!(pane.must_parse());
    pane.parse(&mut || false);
    assert!(!pane.must_parse() && pane.is_idle());
    pane.push(b"n");
    assert!(pane.must_parse(), "the end of a query");
    pane.parse(&mut || false);
    assert_eq!(pane.take_answers(), b"\x1b[2;1R");
    pane.push(&vec![b'x'; MAX_PENDING]);
    assert!(pane.must_parse() && !pane.has_room());
}

#[test]
fn no_step_between_two_looks_at_the_clock_is_large() {
    let mut pane = pane(1000, 1000);
    let (mut fed, mut steps) = (vec![b'\n'; 5000], 0_usize);
    fed.extend(b"\x1bc".repeat(2));
    pane.push(&fed);
    pane.parse(&mut || {
        steps += 1;
        steps == 5
    });
    assert!(!pane.is_idle(), "a step takes at most {CELLS_PER_PIECE} cells or one sequence");
}

#[test]
fn a_formatted_screen_draws_the_same_screen() {
    let mut one = pane(20, 4);
    show(&mut one, "\x1b[31mred\x1b[m \u{65e5}\r\n\x1b[1mbold\x1b[3;7H".as_bytes());
    let mut other = pane(20, 4);
    let formatted = one.formatted();
    show(&mut other, &formatted);
    assert_eq!(one.snapshot(), other.snapshot());
}

/// Text that floods, moves, sets margins and asks, each as often as said.
fn output() -> impl Strategy<Value = Vec<(String, usize)>> {
    let piece = prop_oneof![
        6 => ("[ -~]{0,12}", 1..60_usize).prop_map(|(line, n)| (format!("{line}\r\n"), n)),
        3 => ("[a-z]{1,3}", 2000..6000_usize).prop_map(|(line, n)| (format!("{line}\r\n"), n)),
        1 => (2000..6000_usize).prop_map(|n| ("\r\n".to_owned(), n)),
        2 => "[ -~]{0,40}".prop_map(|text| (text, 1)),
        2 => prop::sample::select(vec![
            "\x1b[2;4r", "\x1b[r", "\x1bc", "\x1b[?1049h", "\x1b[?1049l", "\x1b[?47h", "\x1b[?47l", "\x1b[2J", "\x1b[H",
            "\x1b[3;3H", "\x1b[31;44m", "\x1b[m", "\x1b[3b", "\x1b7", "\x1b8", "\x1b[?6h", "\x1b[?6l", "\x1bM", "\x1b[2L",
            "\x1b]0;t\x07", "\x1b]0;t", "\x1b\\", "\x1bPx", "\x18", "\x1b[", "\x1b", "\u{65e5}", "\u{e9}", "\t", "\x08",
            "\x1b[6n", "\x1b[3T", "\x1b[3S", "\n", "\r", "\x1b[3J",
        ]).prop_map(|text| (text.to_owned(), 1)),
    ];
    prop::collection::vec(piece, 1..12)
}

fn run(
    fast: bool,
    size: (u16, u16),
    output: &[u8],
    splits: &[usize],
    grown: (u16, u16),
) -> (Snapshot, Vec<String>, Vec<u8>, Vec<u8>) {
    let mut pane = pane(size.0, size.1);
    pane.fast = fast;
    let mut rest = output;
    for split in splits.iter().cycle() {
        let (chunk, after) = rest.split_at((*split).min(rest.len()));
        show(&mut pane, chunk);
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    let (formatted, answers) = (pane.formatted(), pane.take_answers());
    pane.resize(Size::clamped(grown.0, grown.1));
    (pane.snapshot(), pane.scrollback(0, SCROLLBACK), formatted, answers)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// The oracle: with and without the fast path, and however the output is cut, everything a reader can see is the
    /// same, also after the screen has changed its size.
    #[test]
    fn the_fast_path_shows_what_the_slow_path_shows(
        pieces in output(),
        size in (1..30_u16, 1..12_u16),
        splits in prop::collection::vec(1..40_000_usize, 1..5),
        grown in (1..30_u16, 1..40_u16),
    ) {
        let output: Vec<u8> = pieces.iter().flat_map(|(text, n)| text.repeat(*n).into_bytes()).collect();
        let slow = run(false, size, &output, &[usize::MAX], grown);
        for splits in [&[usize::MAX][..], &splits] {
            let fast = run(true, size, &output, splits, grown);
            prop_assert_eq!(&fast.0, &slow.0);
            prop_assert!(fast.1 == slow.1, "scrollback {:?} {:?}", fast.1.len(), slow.1.len());
            prop_assert_eq!(String::from_utf8_lossy(&fast.2), String::from_utf8_lossy(&slow.2));
            prop_assert_eq!(&fast.3, &slow.3);
        }
    }

    /// Nothing a program prints makes the emulator lose its screen or the cursor leave it.
    #[test]
    fn any_bytes_are_taken(bytes in prop::collection::vec(any::<u8>(), 0..2000), size in (1..40_u16, 1..20_u16)) {
        let mut pane = pane(size.0, size.1);
        show(&mut pane, &bytes);
        let got = pane.snapshot();
        prop_assert!(!pane.take_rebuilt());
        prop_assert_eq!(got.rows.len(), usize::from(size.1));
        prop_assert!(got.row < size.1 && got.col < size.0);
        prop_assert!(got.rows.iter().all(|row| !row.contains('\x1b') && !row.ends_with(' ')));
    }
}
