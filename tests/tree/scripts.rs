//! Scripts without a kernel: `shoal FILE`, `shoal -c SOURCE` and `shoal -`.

use std::io::Write as _;
use std::process::{Output, Stdio};

use shoal_harness::Place;

/// Runs `shoal` with these words, the input and the variables.
fn shoal(place: &Place, words: &[&str], input: &str, vars: &[(&str, &str)]) -> Output {
    let mut child = place
        .shoal("shoal")
        .args(words)
        .envs(vars.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("shoal starts");
    child.stdin.take().expect("its input").write_all(input.as_bytes()).expect("it takes its input");
    child.wait_with_output().expect("it ends")
}

#[track_caller]
fn check(output: &Output, code: i32, stdout: &str, stderr: &str) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!((output.status.code(), &*out), (Some(code), stdout), "{err}");
    assert!(err.contains(stderr), "{err}");
}

#[test]
fn a_file_runs_with_its_arguments() {
    let place = Place::new();
    let file = place.write("greet.shl", "#!/usr/bin/env shoal\nlet who = args.join(\" and \")\n\"hi {who}\"\n");
    let file = file.to_str().expect("a text");
    check(&shoal(&place, &[file, "a", "--b"], "", &[]), 0, "hi a and --b\n", "");
    check(&shoal(&place, &["./no-such-file"], "", &[]), 1, "", "not_found");
}

#[test]
fn a_text_runs_and_its_end_is_the_status() {
    let place = Place::new();
    check(&shoal(&place, &["-c", "args.len()", "x", "y"], "", &[]), 0, "2\n", "");
    check(&shoal(&place, &["-"], "1 + 1", &[]), 0, "2\n", "");
    check(&shoal(&place, &["-c", "exit 4"], "", &[]), 4, "", "");
    check(&shoal(&place, &["-c", "sh { exit 7 }"], "", &[]), 7, "", "exited with status 7");
    check(&shoal(&place, &["-c", "1 / 0"], "", &[]), 1, "", "-c:1:1: div_zero");
    check(&shoal(&place, &["-c", "1 +"], "", &[]), 2, "", "parse_error");
    check(&shoal(&place, &["-c"], "", &[]), 2, "", "Usage");
}

#[test]
fn manifests_count_where_they_are_trusted() {
    let place = Place::new();
    check(&shoal(&place, &["-c", "reef.len()"], "", &[]), 1, "", "SHOAL_REEF=1");
    check(&shoal(&place, &["-c", "with reef: {ft: \"1\"} { ft }"], "", &[]), 1, "", "not available here");
    let trusted = [("SHOAL_REEF", "1")];
    check(&shoal(&place, &["-c", "with reef: {ft: \"1\"} { ft }"], "", &trusted), 1, "", "reef_unlocked");
}
