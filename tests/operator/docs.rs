//! Every command in the documentation is run as it is written. Placeholders and choices are filled in by a table, and a
//! command that is not to be run here is named with the reason; anything new fails until it is one of the two.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::json;
use shoal_harness::{Kernel, Place};

/// Commands that need a terminal, a service manager or somebody else's program, and where they are tried.
const ELSEWHERE: &[(&str, &str)] = &[
    ("shoal attach", "attach.rs, on a terminal"),
    ("shoal top", "top.rs, on a terminal"),
    ("shoal pty attach", "on a terminal, with the terminals' tests"),
    ("shoal setup service", "tests/packaging, under a real service manager"),
    ("shoal mcp", "tests/conformance: serves until its stdin ends"),
    ("shoal watch", "with the watches' tests"),
    ("shoal kernel stop", "ends the kernel of this test; the last command here"),
    ("shoal session kill", "the last but one here"),
];

/// A documented command line.
#[derive(Debug)]
struct Documented {
    file: PathBuf,
    line: usize,
    text: String,
}

/// Lines of code blocks that begin with the command, without what is said beside them.
fn commands() -> Vec<Documented> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = std::fs::read_dir(root.join("docs")).expect("docs").flatten().map(|entry| entry.path());
    let mut pages: Vec<PathBuf> =
        pages.filter(|path| path.extension().is_some_and(|e| e == "md")).chain([root.join("README.md")]).collect();
    pages.sort();
    let mut found = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("readable");
        let mut fence = None;
        for (number, line) in text.lines().enumerate() {
            if let Some(kind) = line.strip_prefix("```") {
                fence = if fence.is_some() { None } else { Some(kind) };
            }
            // Transcripts are run with what they show, by the test of the guides.
            if fence == Some("console") {
                continue;
            }
            let in_block = fence.is_some() || line.starts_with("    ");
            let code = line.trim_start().trim_start_matches("$ ").trim_start_matches("target/release/");
            if in_block && (code.starts_with("shoal ") || code.starts_with("shoal-history ")) {
                let code = code.split("  ").next().unwrap_or(code).split(" # ").next().unwrap_or(code).trim_end();
                found.push(Documented { file: page.clone(), line: number + 1, text: code.to_owned() });
            }
        }
    }
    found
}

/// What stands for something in a documented command. A choice becomes the first alternative.
fn filled(text: &str, [plan, row, hash, head, pty]: [&str; 5]) -> String {
    let text = match text.split_once(" | ") {
        // `exec SRC | other` is a pipe of the shell; `start | stop` is a choice.
        Some((first, _)) if !text.contains("'") && !text.contains('"') => first.to_owned(),
        _ => text.to_owned(),
    };
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    for word in &mut words {
        if word.starts_with("plan:") {
            *word = plan.to_owned();
        }
        if word.starts_with("pty:") {
            *word = pty.to_owned();
        }
        if word.ends_with('…') {
            *word = head.to_owned();
        }
        match word.as_str() {
            "NAME" => *word = "default".to_owned(),
            "HASH" => *word = hash.to_owned(),
            "120" => *word = row.to_owned(),
            "plan…" => *word = plan.to_owned(),
            _ => {}
        }
    }
    words.join(" ")
}

/// Commands that go on until they are ended.
fn follows(line: &str) -> bool {
    ["shoal events tail", "shoal history follow"].iter().any(|prefix| line.starts_with(prefix))
}

fn shell(place: &Place, line: &str) -> Output {
    // The tests' own folder of programs is in the PATH; a follower is ended after what it had time to say.
    let seconds = if follows(line) { 2 } else { 20 };
    let mut command: Command = place.command("timeout");
    command.arg(seconds.to_string()).args(["bash", "-c", line]).stdin(Stdio::null()).output().expect("bash runs")
}

#[test]
fn every_documented_command_does_what_it_says() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    client.ok("exec", json!({"src": "git --version; echo hello"}));
    let plan = client.ok("exec", json!({"src": "rm nothing", "mode": "plan"}));
    let plan = plan["plan_ref"].as_str().expect("a plan").to_owned();
    let rows = client.ok("journal.query", json!({"kinds": ["exec"]}));
    let newest = &rows[0];
    let row = newest["id"].to_string();
    let hash = newest["outputs"][0]["hash"].as_str().expect("an output").to_owned();
    let head = client.ok("journal.verify", json!({}))["head"].as_str().expect("a head").to_owned();
    let pty = client.ok("pty.open", json!({"cmd": "cat", "args": []}))["pty_id"].as_str().expect("an id").to_owned();
    place.write("src/main.rs", "fn main() {}\n");

    let documented = commands();
    assert!(documented.len() > 25, "the search still finds them: {documented:?}");
    for Documented { file, line, text } in documented {
        if ELSEWHERE.iter().any(|(prefix, _)| text.starts_with(prefix)) {
            continue;
        }
        let command = filled(&text, [&plan, &row, &hash, &head, &pty]);
        let output = shell(&place, &command);
        let at = format!("{}:{line}: {text} (run as: {command})", file.display());
        let said = String::from_utf8_lossy(&output.stderr);
        if command.starts_with("shoal session freeze") {
            assert!(shell(&place, "shoal session thaw default").status.success(), "{at}");
        }
        // 124: the follower was ended. A doctor may find fault with this machine.
        let may_be = match text.as_str() {
            // Some show what a failure looks like.
            text if text.starts_with("shoal doctor") || text.starts_with("shoal exec") => [0, 1],
            text if follows(text) => [0, 124],
            _ => [0, 0],
        };
        assert!(output.status.code().is_some_and(|code| may_be.contains(&code)), "{at}: {:?}: {said}", output.status);
    }
    for (line, word) in [("shoal session kill default", "ended:"), ("shoal kernel stop", "stopped")] {
        let output = shell(&place, line);
        assert!(String::from_utf8_lossy(&output.stdout).contains(word), "{line}: {output:?}");
    }
    drop(client);
}
