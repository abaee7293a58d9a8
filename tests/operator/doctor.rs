//! `shoal doctor`: what is well, what is not, and what to do about it.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use shoal_harness::{Kernel, Place};

/// The findings of a doctor, and its exit code.
fn findings(place: &Place, change: impl FnOnce(&mut Command)) -> (Vec<Value>, i32) {
    let mut command = place.shoal("shoal");
    command.arg("--json").arg("doctor").stdin(Stdio::null());
    change(&mut command);
    let output = command.output().expect("runs");
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)));
    let code = output.status.code().expect("an exit");
    assert_eq!(document["exit"], json!(code));
    (document["checks"].as_array().expect("a list").clone(), code)
}

fn named<'f>(findings: &'f [Value], name: &str) -> &'f Value {
    findings.iter().find(|f| f["name"] == json!(name)).unwrap_or_else(|| panic!("no {name} in {findings:#?}"))
}

fn mode(path: &std::path::Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
}

#[test]
fn every_step_of_the_real_path_is_tried() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let (findings, code) = findings(&place, |_| {});
    for name in ["version", "kernel socket", "command", "journal", "event", "pty", "mcp", "policy", "tool sh"] {
        assert_eq!(named(&findings, name)["level"], json!("ok"), "{name}: {findings:#?}");
    }
    for name in ["XDG_RUNTIME_DIR", "runtime dir", "socket path", "state dir", "config dir", "jail", "tty", "service"] {
        named(&findings, name);
    }
    for finding in &findings {
        let is_well = finding["level"] == json!("ok");
        assert_eq!(finding["remedy"].is_null(), is_well, "what is not well has a remedy: {finding}");
    }
    let worst = if findings.iter().any(|f| f["level"] == json!("warn")) { 1 } else { 0 };
    assert_eq!(code, worst);
    drop(kernel);
}

#[test]
fn what_is_wrong_has_a_name_and_a_remedy() {
    let place = Place::new();
    let off = |command: &mut Command| {
        command.env("SHOAL_NO_AUTOSTART", "1");
    };
    let expect = |name: &str, level: &str, remedy: &str, change: &dyn Fn(&mut Command)| {
        let (findings, code) = findings(&place, |command| {
            off(command);
            change(command);
        });
        let finding = named(&findings, name);
        assert_eq!(finding["level"], json!(level), "{finding}");
        assert!(finding["remedy"].as_str().expect("a remedy").contains(remedy), "{finding}");
        assert_eq!(code, 2, "no kernel runs, which is the worst here");
    };
    expect("kernel socket", "FAIL", "shoal kernel start", &|_| {});

    mode(&place.path("state"), 0o755);
    expect("state dir", "FAIL", "chmod 700", &|_| {});
    mode(&place.path("state"), 0o700);
    expect("state dir", "warn", "SHOAL_STATE_DIR", &|command| {
        command.env("SHOAL_STATE_DIR", "/dev/shm/shoal-is-not-there");
    });

    let nowhere = place.path("nowhere");
    expect("XDG_RUNTIME_DIR", "FAIL", "/run/user/", &|command| {
        command.env("XDG_RUNTIME_DIR", &nowhere);
    });
    if shoal_harness::place::is_root() {
        expect("XDG_RUNTIME_DIR", "FAIL", "machinectl", &|command| {
            command.env("XDG_RUNTIME_DIR", "/root");
        });
    }

    let file = place.write("s.sock", "mine");
    expect("socket path", "FAIL", "mv ", &|command| {
        command.env("SHOAL_SOCKET", &file);
    });
    std::fs::remove_file(&file).expect("removed");
    drop(std::os::unix::net::UnixListener::bind(&file).expect("bound"));
    std::os::unix::fs::chown(&file, Some(place.uid()), None).expect("given");
    expect("socket path", "warn", "shoal kernel start", &|command| {
        command.env("SHOAL_SOCKET", &file);
    });

    let policy = place.write("leash.toml", "[default]\nopaqe = \"ask\"\n");
    expect("policy", "FAIL", "shoal policy check", &|command| {
        command.env("SHOAL_POLICY", &policy);
    });
    expect("tool sh", "FAIL", "PATH", &|command| {
        command.env("PATH", "/nowhere");
    });
}

#[test]
fn a_unit_whose_program_is_gone_is_told() {
    let place = Place::new();
    let units = place.path("home").join(".config/systemd/user");
    std::fs::create_dir_all(&units).expect("made");
    std::fs::write(units.join("shoal.socket"), "[Socket]\n").expect("written");
    std::fs::write(units.join("shoal.service"), "[Service]\nExecStart=/gone/shoal-kernel\n").expect("written");
    let (findings, code) = findings(&place, |command| {
        command.env("SHOAL_NO_AUTOSTART", "1");
    });
    let service = named(&findings, "service");
    assert!(service["detail"].as_str().expect("text").contains("/gone/shoal-kernel"), "{service}");
    assert_eq!((service["level"].clone(), code), (json!("FAIL"), 2));
    named(&findings, "linger");
}
