//! Starting: one kernel per state directory, clear refusals, autostart races.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Output, Stdio};

use serde_json::json;
use shoal_harness::{Kernel, Mcp, Place, processes};

fn run(place: &Place, args: &[&str]) -> Output {
    place.shoal("shoal-kernel").args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).output().expect("runs")
}

fn one_line(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).expect("UTF-8");
    assert_eq!(text.trim_end().lines().count(), 1, "one line: {text:?}");
    text
}

#[test]
fn a_second_kernel_names_the_first() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let state = place.path("state");
    let other = place.path("run").join("other.sock");
    let loser =
        run(&place, &["--socket", other.to_str().expect("UTF-8"), "--state-dir", state.to_str().expect("UTF-8")]);
    assert_eq!(loser.status.code(), Some(3));
    assert_eq!(String::from_utf8_lossy(&loser.stdout), format!("{}\n", kernel.socket().display()));
}

#[test]
fn what_is_at_the_socket_path_is_not_touched() {
    let place = Place::new();
    let socket = place.path("run").join("s.sock");
    std::fs::write(&socket, "mine").expect("written");
    let refused = run(&place, &["--socket", socket.to_str().expect("UTF-8")]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(one_line(&refused).contains("not a socket"), "{refused:?}");
    assert_eq!(std::fs::read(&socket).expect("still there"), b"mine");
}

#[test]
fn a_path_too_long_is_named() {
    let place = Place::new();
    let long = place.path("run").join("x".repeat(120)).join("s.sock");
    let refused = run(&place, &["--socket", long.to_str().expect("UTF-8")]);
    assert_eq!(refused.status.code(), Some(1));
    let text = one_line(&refused);
    assert!(text.contains("at most 103 fit"), "{text}");
}

#[test]
fn bad_flags_and_names_are_one_line() {
    let place = Place::new();
    for (args, expect) in [
        (&["--nope"][..], "--nope"),
        (&["--session", "a/b"][..], "session"),
        (&["--policy", "/nonexistent/leash.toml"][..], "/nonexistent/leash.toml"),
    ] {
        let refused = run(&place, args);
        assert!(matches!(refused.status.code(), Some(1 | 2)), "{args:?}: {refused:?}");
        assert!(one_line(&refused).contains(expect), "{args:?}: {refused:?}");
    }
}

#[test]
fn a_malformed_policy_stops_the_start_and_says_where() {
    let place = Place::new();
    let policy = place.write("leash.toml", "[default]\nopaqe = \"ask\"\n");
    let refused = run(&place, &["--policy", policy.to_str().expect("UTF-8")]);
    assert_eq!(refused.status.code(), Some(1));
    let text = one_line(&refused);
    assert!(text.contains("leash.toml:2:1") && text.contains("did you mean `opaque`"), "{text}");
}

#[test]
fn files_are_private_and_gone_after_an_orderly_end() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let socket = kernel.socket().to_path_buf();
    let mode = std::fs::metadata(&socket).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut client = kernel.attach("default");
    client.value("1");
    let status = kernel.stop();
    assert!(status.success(), "{status:?}");
    assert!(!socket.exists());
    for entry in std::fs::read_dir(place.path("state")).expect("there").flatten() {
        let mode = entry.metadata().expect("metadata").permissions().mode() & 0o077;
        assert_eq!(mode, 0, "{} lets others in", entry.path().display());
    }
}

#[test]
fn twenty_facades_on_a_cold_machine_make_one_kernel() {
    let place = Place::new();
    let mut facades: Vec<Mcp> = (0..20).map(|_| Mcp::start(&place, |_| {})).collect();
    for facade in &mut facades {
        facade.initialize();
    }
    let ids: Vec<String> = facades
        .iter_mut()
        .enumerate()
        .map(|(n, facade)| {
            let result = facade.tool("shoal_exec", json!({"src": format!("{n} + 1")}));
            assert_ne!(result["isError"], json!(true), "{result}");
            result["structuredContent"]["render"].to_string()
        })
        .collect();
    assert_eq!(ids.len(), 20);
    let kernels = processes::kernels_of(&place);
    assert_eq!(kernels.len(), 1, "{kernels:?}");
    for facade in facades {
        assert!(facade.close().success());
    }
    processes::end_kernels_of(&place);
}
