//! `shoal setup mcp`: registrations in files that belong to somebody else.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use shoal_harness::{Kernel, Place};

fn setup(place: &Place, kernel: &Kernel, words: &[&str]) -> String {
    let mut command = place.shoal("shoal");
    let output = command.arg("--socket").arg(kernel.socket()).args(["setup", "mcp"]).args(words).output();
    let output = output.expect("shoal runs");
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn file_of(place: &Place, client: &str) -> PathBuf {
    let home = place.path("home");
    match client {
        "claude" => home.join(".claude.json"),
        "cursor" => home.join(".cursor/mcp.json"),
        "gemini" => home.join(".gemini/settings.json"),
        "codex" => home.join(".codex/config.toml"),
        "vscode" => place.work().join(".vscode/mcp.json"),
        _ => place.work().join(".mcp.json"),
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn every_client_is_entered_once_and_only_that_changes() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    for client in ["claude", "codex", "cursor", "vscode", "gemini", "json"] {
        let path = file_of(&place, client);
        let printed = setup(&place, &kernel, &[client]);
        assert!(printed.contains("shoal-mcp") && !path.exists(), "{client}: printing writes nothing: {printed}");
        setup(&place, &kernel, &[client, "--write"]);
        let written = read(&path);
        assert!(written.contains("shoal-mcp") && written.contains("SHOAL_SESSION"), "{client}: {written}");
        assert!(setup(&place, &kernel, &[client, "--write"]).contains("already"), "{client}");
        assert_eq!(read(&path), written, "{client}: the same once more changes nothing");
    }
}

#[test]
fn an_agent_gets_a_token_of_its_own_and_nobody_else_reads_it() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let path = file_of(&place, "cursor");
    let folder = path.parent().expect("a folder");
    let before = r#"{"theme":"dark","mcpServers":{"other":{"command":"x"}}}"#;
    shoal_harness::place::acting_as(place.uid(), || {
        std::fs::create_dir_all(folder)?;
        std::fs::write(&path, before)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644))
    })
    .expect("a file of the client");
    setup(&place, &kernel, &["cursor", "--write", "--principal", "agent:docs"]);
    let now: Value = serde_json::from_str(&read(&path)).expect("JSON");
    assert_eq!((&now["theme"], &now["mcpServers"]["other"]["command"]), (&json!("dark"), &json!("x")));
    assert_eq!(read(&folder.join("mcp.json.shoal-backup")), before);
    let mode = std::fs::metadata(&path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "a secret is inside");
    let token = now["mcpServers"]["shoal"]["env"]["SHOAL_TOKEN"].as_str().expect("a token");
    // The kernel knows it, and no section of the built-in policy serves the agent.
    let refused = kernel.connect().err("session.attach", json!({"session": "default", "token": token}));
    assert_eq!((refused.code, &refused.data["reason"]), (-32010, &json!("policy")), "{refused:?}");
    let listed = kernel.attach("default").ok("token.list", json!({}));
    assert_eq!(listed["tokens"][0]["principal"], json!("agent:docs"), "{listed}");
}

#[test]
fn attaches_that_race_for_a_session_that_cannot_be_made_hear_why() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut clients: Vec<_> = (0..8).map(|_| kernel.connect()).collect();
    let params = json!({"session": "raced", "create": {"cwd": "/nonexistent/place"}});
    let asked: Vec<i64> = clients.iter_mut().map(|client| client.send("session.attach", params.clone())).collect();
    for (client, id) in clients.iter_mut().zip(asked) {
        let error = client.answer(id).expect_err("there is no such directory");
        assert_eq!((error.code, &error.data["reason"]), (-32602, &json!("not_a_directory")), "{error:?}");
    }
}
