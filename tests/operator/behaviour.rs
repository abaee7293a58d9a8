//! How every command behaves in every environment: tables over all subcommands.

use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use shoal_harness::{Kernel, Place, Terminal};
use shoal_sys::process::Exit;

/// Commands that are good on a kernel with one session. Those that need a terminal are driven elsewhere.
const GOOD: &[&[&str]] = &[
    &["exec", "1 + 1"],
    &["exec", "--value", "(ls .)"],
    &["exec", "--background", "1"],
    &["status"],
    &["session", "list"],
    &["session", "freeze", "default"],
    &["session", "thaw", "default"],
    &["session", "kill", "nobody"],
    &["approvals", "list"],
    &["approvals", "list", "--all"],
    &["history"],
    &["history", "query", "--limit", "1"],
    &["history", "verify"],
    &["history", "gc"],
    &["token", "list"],
    &["pty", "list"],
    &["watch", "list"],
    &["policy", "check"],
    &["policy", "explain", "ls ."],
    &["kernel", "start"],
    &["kernel", "reload"],
    &["setup", "service", "--print"],
    &["setup", "mcp", "json"],
    &["setup", "mcp", "claude"],
];

/// Commands that print something else than a document.
const TEXTS: &[&[&str]] =
    &[&["completions", "bash"], &["man"], &["man", "shoal-exec"], &["--version"], &["--help"], &["session", "--help"]];

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().expect("runs")
}

/// Nothing that steers a terminal, and no panic.
fn check(what: &str, output: &Output) {
    for stream in [&output.stdout, &output.stderr] {
        let said = text(stream);
        assert!(!said.contains("panicked"), "{what}: {said}");
        let steers = |c: char| (c.is_control() && c != '\n' && c != '\t') || ('\u{202A}'..='\u{202E}').contains(&c);
        assert!(!said.chars().any(steers), "{what}: {said:?}");
    }
    assert!(output.status.code().is_some_and(|code| code != 101), "{what}: {:?}", output.status);
}

/// Runs every good command with a changed environment and checks that each succeeds.
fn all_good(place: &Place, what: &str, change: impl Fn(&mut Command)) {
    for words in GOOD.iter().chain(TEXTS) {
        let mut command = place.shoal("shoal");
        change(command.args(*words));
        let output = run(&mut command);
        let what = format!("{what}: shoal {}", words.join(" "));
        check(&what, &output);
        let homeless = ["no HOME", "empty environment"].iter().any(|without| what.contains(without));
        let needs_home = homeless && words.starts_with(&["setup", "service"]);
        let wanted = if needs_home { Some(1) } else { Some(0) };
        assert_eq!(output.status.code(), wanted, "{what}: {}{}", text(&output.stdout), text(&output.stderr));
    }
}

#[test]
fn without_home_without_xdg_and_in_seven_bits() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    all_good(&place, "no HOME", |command| {
        command.env_remove("HOME");
    });
    all_good(&place, "no XDG variables", |command| {
        command.env_remove("XDG_RUNTIME_DIR");
    });
    all_good(&place, "seven bits", |command| {
        command.env("LANG", "C").env("LC_ALL", "C");
    });
    all_good(&place, "an empty environment but for the state", |command| {
        command.env_clear().env("SHOAL_STATE_DIR", place.path("state"));
    });
    drop(kernel);
}

#[test]
fn a_home_that_cannot_be_written_is_no_hindrance() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let home = place.path("home");
    std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o500)).expect("read-only");
    all_good(&place, "read-only HOME", |_| {});
    // What has to write there says so.
    for words in [&["setup", "service"][..], &["setup", "mcp", "claude", "--write"]] {
        let output = run(place.shoal("shoal").args(words));
        check("read-only HOME", &output);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(home.to_str().expect("UTF-8")), "{}", text(&output.stderr));
    }
    drop(kernel);
    // Without a kernel and a place for its state, the error names both and what to do.
    let mut command = place.shoal("shoal");
    let output = run(command.env_remove("SHOAL_STATE_DIR").args(["exec", "1"]));
    check("read-only HOME, no state", &output);
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains(".local/state/shoal"), "{said}");
    std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o700)).expect("writable again");
}

#[test]
fn a_closed_output_is_no_panic() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let program = place.program("shoal");
    for words in GOOD.iter().chain(TEXTS) {
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let line = format!("{} {}", program.display(), quoted.join(" "));
        for closed in [">&-", "> /dev/full", "2>&-", "| :", ">&- 2>&-"] {
            // The status is the command's own, also in front of a pipe.
            let script = format!("set -o pipefail; {line} {closed}");
            let output = run(place.command("bash").arg("-c").arg(&script));
            assert!(!text(&output.stderr).contains("panicked"), "{script}: {}", text(&output.stderr));
            assert!(matches!(output.status.code(), Some(0 | 1)), "{script}: {:?}", output.status);
        }
    }
    drop(kernel);
}

#[test]
fn every_command_prints_one_document_when_asked() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    for words in GOOD {
        let output = run(place.shoal("shoal").arg("--json").args(*words));
        let what = format!("shoal --json {}", words.join(" "));
        check(&what, &output);
        let document: Result<Value, _> = serde_json::from_slice(&output.stdout);
        assert!(document.is_ok(), "{what}: {:?}: {}", document, text(&output.stdout));
    }
    // An error of a run is a document, too.
    let output = run(place.shoal("shoal").args(["--json", "exec", "^false"]));
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    assert_eq!((output.status.code(), &document["error"]["code"]), (Some(1), &json!(-32002)));
    assert_eq!(run(place.shoal("shoal").args(["--json", "doctor"])).status.code().map(|code| code < 2), Some(true));
    drop(kernel);
}

#[test]
fn exit_codes_are_those_of_the_guide() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    for (words, code) in [
        (&["exec", "1"][..], 0),
        (&["exec", "sh { exit 7 }"], 7),
        (&["exec", "sh { kill -TERM $$ }"], 143),
        (&["exec", "let = 3"], 2),
        (&["exec", "raise('no')"], 1),
        (&["nonsense"], 2),
        (&["exec"], 2),
        (&["session", "kill"], 2),
        (&["attach"], 2),
        (&["top"], 2),
        (&["man", "shoal-nonsense"], 2),
        (&["session", "freeze", "nobody"], 1),
        (&["token", "revoke", "nobody"], 1),
        (&["pty", "show", "pty:99"], 1),
        (&["approvals", "show", "plan:00000000000000000000000000000000"], 1),
        (&["history", "show", "999999"], 1),
    ] {
        let output = run(place.shoal("shoal").args(words));
        check(&words.join(" "), &output);
        assert_eq!(output.status.code(), Some(code), "{}: {}", words.join(" "), text(&output.stderr));
        if code != 0 {
            assert!(!output.stderr.is_empty(), "{}: nothing said", words.join(" "));
        }
    }
    drop(kernel);
}

#[test]
fn errors_name_what_to_type_next() {
    let place = Place::new();
    let without = |words: &[&str]| run(place.shoal("shoal").env("SHOAL_NO_AUTOSTART", "1").args(words));
    for words in [&["status"][..], &["exec", "1"], &["session", "list"], &["kernel", "reload"]] {
        let output = without(words);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("shoal kernel start"), "{}", text(&output.stderr));
    }
    assert_eq!(text(&without(&["kernel", "stop"]).stdout), "no kernel runs\n");
    let kernel = Kernel::start(&place);
    for (words, next) in [
        (&["approvals", "show", "plan:00000000000000000000000000000000"][..], "shoal approvals list --all"),
        (&["attach"], "shoal exec"),
        (&["top"], "shoal status"),
        (&["man", "nothing"], "shoal-exec"),
        (&["sesion", "list"], "session"),
    ] {
        let said = text(&run(place.shoal("shoal").args(words)).stderr);
        assert!(said.contains(next), "{}: {said}", words.join(" "));
    }
    drop(kernel);
}

#[test]
fn nothing_an_agent_chose_steers_a_view() {
    let place = Place::new();
    let hostile = "a\u{1b}[31mb\u{7}\u{202e}";
    let dir = place.work().join(hostile);
    std::fs::create_dir(&dir).expect("a directory");
    std::os::unix::fs::chown(&dir, Some(place.uid()), Some(place.uid())).expect("given");
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    client.ok("exec", json!({"src": "cd a*"}));
    client.ok("exec", json!({"src": "echo '\u{1b}]0;title\u{7}' # \u{1b}[2J"}));
    let opened =
        client.ok("pty.open", json!({"cmd": "sh", "args": ["-c", "printf '\\033[31mred\\007'; cat", hostile]}));
    let pty = opened["pty_id"].as_str().expect("an id").to_owned();
    client.ok("pty.read", json!({"pty_id": pty, "wait": {"text": "red", "timeout_ms": 20_000}}));
    let failing = format!("^nonsense{hostile}");
    for words in [
        &["status"][..],
        &["session", "list"],
        &["history"],
        &["history", "query"],
        &["pty", "list"],
        &["pty", "show", &pty],
        &["exec", "\"\\u{1b}[31mred\\u{202e}\""],
        &["exec", &failing],
        &["exec", "raise('\\u{1b}[31m')"],
        &["session", "kill", "default"],
        &["doctor"],
        &["--json", "history"],
        &["--json", "session", "list"],
    ] {
        let output = run(place.shoal("shoal").args(words));
        let what = words.join(" ");
        for stream in [&output.stdout, &output.stderr] {
            let said = text(stream);
            let steers = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
            assert!(!said.chars().any(steers), "{what}: {said:?}");
        }
    }
    drop(kernel);
}

#[test]
fn colour_is_for_terminals_that_want_it() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let is_coloured = |terminal: &Terminal| {
        terminal.with_screen(|screen| {
            let (rows, cols) = screen.size();
            let mut cells = (0..rows.get()).flat_map(|row| (0..cols.get()).map(move |col| (row, col)));
            cells.any(|(row, col)| screen.cell(row, col).is_some_and(|cell| cell.fgcolor() != vt100::Color::Default))
        })
    };
    for (env, wanted) in [(&[][..], true), (&[("NO_COLOR", "1")], false), (&[("TERM", "dumb")], false)] {
        let mut terminal = Terminal::start(&place, "shoal", &["doctor"], (120, 40), env);
        assert!(matches!(terminal.end(), Exit::Code(0 | 1)));
        let screen = terminal.see("exit: ");
        assert_eq!(is_coloured(&terminal), wanted, "{env:?}: {screen}");
    }
    let piped = run(place.shoal("shoal").arg("doctor"));
    assert!(!piped.stdout.contains(&0x1b));
    drop(kernel);
}

#[test]
fn the_aliases_are_the_commands() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let bin = place.path("home");
    for alias in ["token", "history", "doctor"] {
        let link = bin.join(format!("shoal-{alias}"));
        std::os::unix::fs::symlink(place.program("shoal"), &link).expect("a link");
        let output = run(place.command(&link).arg("--help"));
        assert!(text(&output.stdout).contains(&format!("shoal {alias}")), "{alias}: {}", text(&output.stdout));
    }
    let output = run(place.command(bin.join("shoal-history")).arg("verify"));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    drop(kernel);
}

#[test]
fn a_look_makes_nothing() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    client.ok("exec", json!({"src": "1"}));
    client.ok("session.kill", json!({"session": "default"}));
    for (words, code) in [
        (&["status"][..], 0),
        (&["session", "list"], 0),
        (&["session", "kill", "default"], 0),
        (&["session", "freeze", "default"], 1),
        (&["approvals", "list"], 0),
        (&["history"], 0),
        (&["history", "verify"], 0),
        (&["token", "list"], 0),
        (&["kernel", "reload"], 0),
        (&["pty", "list"], 1),
        (&["pty", "show", "pty:1"], 1),
        (&["watch", "list"], 1),
        (&["watch", "stop", "any"], 1),
    ] {
        let output = run(place.shoal("shoal").args(words));
        let what = words.join(" ");
        assert_eq!(output.status.code(), Some(code), "{what}: {}", text(&output.stderr));
        assert_eq!(client.ok("session.list", json!({}))["sessions"], json!([]), "{what}");
    }
    let said = text(&run(place.shoal("shoal").args(["pty", "list"])).stderr);
    assert!(said.contains("no session `default`") && said.contains("shoal session list"), "{said}");
    drop(kernel);
    // Nor is a kernel started to look at it.
    for words in [&["approvals", "list"][..], &["events", "tail", "session"], &["pty", "list"], &["watch", "list"]] {
        let output = run(place.shoal("shoal").args(words));
        assert_eq!((output.status.code(), place.path("run").join("shoal/default.sock").exists()), (Some(1), false));
        assert!(text(&output.stderr).contains("shoal kernel start"), "{}", text(&output.stderr));
    }
}

#[test]
fn root_leaves_another_users_home_alone() {
    if !shoal_harness::place::is_root() {
        eprintln!("not run: this is about root");
        return;
    }
    let place = Place::new();
    let home = place.path("home");
    // `sudo -E` keeps HOME and the runtime directory of the one who typed it.
    let mut command = Command::new(place.program("shoal"));
    command.env_clear().env("HOME", &home).env("XDG_RUNTIME_DIR", place.path("run")).env("PATH", "/usr/bin:/bin");
    let output = run(command.env("SHOAL_NO_AUTOSTART", "1").arg("doctor"));
    check("sudo", &output);
    let said = text(&output.stdout);
    assert!(said.contains(&format!("belongs to uid {}", place.uid())), "{said}");
    assert!(!said.contains(home.to_str().expect("UTF-8")), "root's state is not in {}: {said}", home.display());
    assert_eq!(std::fs::read_dir(&home).expect("readable").count(), 0, "nothing was made there");
}
