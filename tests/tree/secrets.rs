//! A bearer leaves no trace: not in the files of the kernel, not in its log, not in what its processes were started with.

use std::path::Path;
use std::process::Stdio;

use serde_json::json;
use shoal_harness::{Kernel, Place, processes};

/// Files below a directory.
fn files(dir: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("readable").map(|entry| entry.expect("an entry")) {
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            files(&entry.path(), found);
        } else if kind.is_file() && entry.metadata().is_ok_and(|meta| meta.len() < 32 * 1024 * 1024) {
            found.push(entry.path());
        }
    }
}

fn holds(bytes: &[u8], secret: &str) -> bool {
    bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
}

#[test]
fn a_bearer_is_in_no_file_log_argument_or_environment() {
    let place = Place::new();
    // Whoever starts a kernel may have a token of its own.
    let inherited = "inheritedSecretOfWhoeverStartedTheKernel0000";
    let policy = format!(
        "[principal.\"uid:{}\"]\nopaque = \"allow\"\nauto_apply = \"in-grant\"\nenv_read = [\"*\"]\njournal_read = true\n\
         fs.read = [\"/**\"]\nfs.write = [\"/**\"]\nfs.delete = [\"/**\"]\n\
         [principal.\"agent:docs\"]\nopaque = \"allow\"\nauto_apply = \"in-grant\"\nenv_read = [\"*\"]\nfs.read = [\"/**\"]\n",
        place.uid()
    );
    let policy = place.write("leash.toml", policy);
    let kernel = Kernel::start_with(&place, |command| {
        command.arg("--policy").arg(policy).arg("--verbose").env("SHOAL_TOKEN", inherited);
    });
    let mut human = kernel.attach("default");
    let by_wire = human.ok("token.create", json!({"principal": "agent:docs"}))["token"].clone();
    let made = place
        .shoal("shoal")
        .arg("--socket")
        .arg(kernel.socket())
        .args(["token", "create", "agent:docs"])
        .stderr(Stdio::piped())
        .output()
        .expect("shoal runs");
    assert!(made.status.success(), "{made:?}");
    let by_command = String::from_utf8(made.stdout).expect("text").trim().to_owned();
    assert_eq!(by_command.len(), 43, "alone on stdout");
    assert!(!holds(&made.stderr, &by_command));
    let secrets = [by_wire.as_str().expect("a bearer"), &by_command, inherited];

    // They are used, by a client, by a command line, and refused once.
    let mut agent = kernel.connect();
    agent.ok("session.attach", json!({"session": "s", "token": secrets[0]}));
    agent.ok(
        "exec",
        json!({"src": "sh { env; cat /proc/self/environ /proc/1/environ /proc/1/cmdline }", "async": true}),
    );
    let shown = agent.value("sh { env }");
    let run = place
        .shoal("shoal")
        .arg("--socket")
        .arg(kernel.socket())
        .args(["exec", "--value", "sh { env }"])
        .env("SHOAL_TOKEN", secrets[1])
        .output()
        .expect("shoal runs");
    assert!(run.status.success(), "{run:?}");
    kernel.connect().err("session.attach", json!({"session": "s", "token": "x".repeat(43)}));

    for (nth, secret) in secrets.into_iter().enumerate() {
        assert!(!holds(shown.to_string().as_bytes(), secret), "secret {nth} in a session's environment");
        assert!(!holds(&run.stdout, secret) && !holds(&run.stderr, secret), "secret {nth} in what a command printed");
        assert!(!holds(kernel.log().as_bytes(), secret), "secret {nth} in the log");
        for process in processes::tree(kernel.pid()) {
            for what in ["environ", "cmdline"] {
                // The supervisor has the environment it was started with, as every program has.
                let own = process.pid == kernel.pid() && what == "environ";
                let bytes = std::fs::read(format!("/proc/{}/{what}", process.pid)).unwrap_or_default();
                assert!(own || !holds(&bytes, secret), "secret {nth} in {what} of {}", process.comm);
            }
        }
    }
    let state = place.path("state");
    let mut found = Vec::new();
    files(&state, &mut found);
    assert!(
        found.iter().any(|path| path.ends_with("journal.db")) && found.iter().any(|path| path.ends_with("tokens.json"))
    );
    for path in found {
        let bytes = std::fs::read(&path).expect("readable");
        for (nth, secret) in secrets.into_iter().enumerate() {
            assert!(!holds(&bytes, secret), "secret {nth} in {}", path.display());
        }
    }
}
