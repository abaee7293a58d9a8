//! The policy of a running kernel: read again when it is told to, kept when the new one is no policy.

use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use shoal_harness::{Client, Kernel, Place, processes};

/// A policy that a symbolic link leads to; what lies there is not watched, so that SIGHUP alone tells of a change.
fn start(place: &Place, opaque: &str) -> (Kernel, PathBuf) {
    let path = place.path("tmp").join("real.toml");
    let link = place.path("home").join("linked.toml");
    write(place, &path, &policy(place, opaque));
    std::os::unix::fs::symlink(&path, &link).expect("linked");
    let kernel = Kernel::start_with(place, |command| {
        command.arg("--policy").arg(&link);
    });
    (kernel, path)
}

fn policy(place: &Place, opaque: &str) -> String {
    format!(
        "[principal.\"uid:{}\"]\nfs.read = [\"/**\"]\nproc_spawn = []\nopaque = \"{opaque}\"\nauto_apply = \"in-grant\"\n\
         session_write = true\ntime = true\njournal_read = true\n",
        place.uid()
    )
}

/// In one step, as an editor saves.
fn write(place: &Place, path: &Path, text: &str) {
    let beside = path.with_extension("new");
    std::fs::write(&beside, text).expect("written");
    place.give(&beside);
    std::fs::rename(&beside, path).expect("in place");
}

/// The next event of the kernel's channel with this action.
fn told(client: &mut Client, action: &str) -> Value {
    loop {
        let frame = client.frame().expect("the connection lasts");
        let payload = &frame["params"]["payload"]["v"];
        if payload["action"]["v"] == action {
            return payload.clone();
        }
    }
}

#[test]
fn a_signal_loads_the_policy_and_a_bad_one_changes_nothing() {
    let place = Place::new();
    let (kernel, path) = start(&place, "deny");
    let mut client = kernel.attach("default");
    client.ok("events.subscribe", json!({"channel": "kernel"}));
    let run = json!({"src": "sh { echo ran }", "position": "value"});
    let denied = client.err("exec", run.clone());
    assert_eq!((denied.code, &denied.data["reason"]), (-32010, &json!("policy")), "{denied:?}");

    write(&place, &path, &policy(&place, "allow"));
    processes::signal(kernel.pid(), Signal::SIGHUP);
    told(&mut client, "policy_reloaded");
    assert_eq!(client.ok("exec", run.clone())["value"]["ok"], json!(true), "the same connection, the new policy");

    write(&place, &path, &format!("{}opaqe = \"deny\"\n", policy(&place, "allow")));
    processes::signal(kernel.pid(), Signal::SIGHUP);
    let rejected = told(&mut client, "policy_rejected");
    let detail = rejected["detail"]["v"].as_str().unwrap_or_default().to_owned();
    for part in ["leash.toml:9:1", "opaqe", "opaque"] {
        assert!(detail.contains(part), "place, key and nearest key: {detail}");
    }
    assert_eq!(client.ok("exec", run.clone())["value"]["ok"], json!(true), "the policy before is still in force");

    // A kernel row for each, so that who looks later knows under which policy what ran.
    let rows = client.ok("journal.query", json!({"kinds": ["kernel"], "limit": 10}));
    let actions: Vec<&str> =
        rows.as_array().expect("rows").iter().filter_map(|row| row["detail"]["action"].as_str()).collect();
    assert_eq!(actions[..2], ["policy_rejected", "policy_reloaded"], "{rows}");

    write(&place, &path, &policy(&place, "deny"));
    processes::signal(kernel.pid(), Signal::SIGHUP);
    told(&mut client, "policy_reloaded");
    assert_eq!(client.err("exec", run).code, -32010);
    assert_eq!(client.ok("journal.verify", json!({}))["ok"], json!(true));
}

#[test]
fn a_policy_that_is_gone_keeps_the_one_before() {
    let place = Place::new();
    let (kernel, path) = start(&place, "deny");
    let mut client = kernel.attach("default");
    client.ok("events.subscribe", json!({"channel": "kernel"}));
    std::fs::remove_file(&path).expect("removed");
    processes::signal(kernel.pid(), Signal::SIGHUP);
    let rejected = told(&mut client, "policy_rejected");
    assert!(rejected["detail"]["v"].as_str().is_some_and(|why| why.contains("linked.toml")), "{rejected}");
    let denied = client.err("exec", json!({"src": "sh { echo ran }", "position": "value"}));
    assert_eq!(denied.code, -32010, "nothing was opened by a file that is gone: {denied:?}");
}

#[test]
fn a_session_that_is_made_anew_after_a_reload_gets_its_owners_jail() {
    let place = Place::new();
    let path = place.write("leash.toml", "");
    let work = place.work().display().to_string();
    let narrow = format!(
        "{}[principal.\"m\"]\nfs.read = [\"{work}/in/**\"]\nopaque = \"allow\"\nauto_apply = \"in-grant\"\n",
        place.unbounded()
    );
    // It comes before the other in every order of names.
    let wide = format!("[principal.\"a\"]\nfs.read = [\"{work}/**\"]\nopaque = \"allow\"\n");
    std::fs::create_dir(place.work().join("in")).expect("made");
    place.give(&place.work().join("in"));
    let secret = place.write("secret", "not for m");
    write(&place, &path, &narrow);
    let kernel = Kernel::start_with(&place, |command| {
        command.arg("--policy").arg(&path);
    });
    let mut human = kernel.attach("default");
    let mut client = crate::plans::agent_in(&kernel, &mut human, "m", &place.work().join("in"));
    let read = json!({"src": format!("sh {{{{ cat {} }}}}", secret.display()), "position": "value"});
    assert_eq!(client.ok("exec", read.clone())["value"]["ok"], json!(false));

    human.ok("events.subscribe", json!({"channel": "kernel"}));
    human.ok("events.subscribe", json!({"channel": "session", "owner": "m"}));
    write(&place, &path, &(wide + &narrow));
    told(&mut human, "policy_reloaded");
    let processes = human.ok("kernel.status", json!({}))["processes"].clone();
    let is_its = |process: &&Value| process["role"] == "launcher" && process["owner"] == "m";
    let launcher = processes.as_array().expect("processes").iter().find(is_its).expect("a launcher")["pid"].clone();
    let launcher = launcher.as_i64().and_then(|pid| i32::try_from(pid).ok()).expect("a pid");
    processes::signal(launcher, Signal::SIGKILL);
    told(&mut human, "restarted");
    let after = client.ok("exec", read);
    assert_eq!(after["value"]["ok"], json!(false), "{after}");
}

/// A principal without any grant of files.
const PLAIN: &str = "[principal.\"agent:plain\"]\nopaque = \"allow\"\nauto_apply = \"in-grant\"\n";

#[test]
fn an_agent_without_grants_starts_at_the_root_or_where_it_is_shown() {
    let place = Place::visible(env!("CARGO_TARGET_TMPDIR"));
    let file = place.write("leash.toml", place.unbounded() + PLAIN);
    let kernel = Kernel::start_with(&place, |command| {
        command.arg("--policy").arg(file);
    });
    let token = kernel.attach("human").ok("token.create", json!({"principal": "agent:plain"}))["token"].clone();
    let enter = |client: &mut Client, session: &str, create: Value| {
        client.call("session.attach", json!({"session": session, "token": token, "create": create}))
    };
    let mut client = kernel.connect();
    // The kernel's own directory lies outside its view, and nobody asked for it.
    assert_eq!(enter(&mut client, "none", json!({})).expect("a session")["cwd"]["display"], json!("/"));
    let work = place.work().display().to_string();
    let refused = enter(&mut client, "outside", json!({"cwd": work})).expect_err("outside the view");
    assert_eq!((refused.code, &refused.data["reason"]), (-32602, &json!("not_a_directory")), "{refused:?}");
    // One below /tmp comes along into the session's own, to be looked at.
    let dir = tempfile::Builder::new().prefix("shown-").tempdir_in("/tmp").expect("a directory");
    std::fs::write(dir.path().join("a.txt"), "seen\n").expect("written");
    place.give(dir.path());
    let path = dir.path().display().to_string();
    assert_eq!(enter(&mut client, "shown", json!({"cwd": path})).expect("a session")["cwd"]["display"], json!(path));
    assert!(client.render("sh { cat a.txt; ls /tmp | wc -l }").contains("seen\n1"), "nothing else of /tmp");
    let outcome = client.value("sh { touch b.txt }");
    assert_eq!(outcome["value"]["ok"], json!(false), "it may be read: {outcome}");
}

#[test]
fn no_session_changes_the_policy_it_is_under() {
    let place = Place::visible(env!("CARGO_TARGET_TMPDIR"));
    let named = place.work().join("rules").join("named.toml");
    std::fs::create_dir(named.parent().expect("a directory")).expect("made");
    std::fs::write(&named, place.unbounded()).expect("written");
    place.give(named.parent().expect("a directory"));
    place.give(&named);
    let config = place.work().join("config");
    std::fs::create_dir_all(config.join("shoal")).expect("made");
    place.give(&config);
    place.give(&config.join("shoal"));
    let kernel = Kernel::start_with(&place, |command| {
        command.env("XDG_CONFIG_HOME", &config).arg("--policy").arg(&named);
    });
    let mut client = kernel.attach("default");
    let fails = |client: &mut Client, script: &str| {
        let outcome = client.value(&format!("sh {{ cd {}; {script} }}", place.work().display()));
        assert_eq!(outcome["value"]["ok"], json!(false), "{script}: {outcome}");
    };
    for script in [
        "echo '# more' >> rules/named.toml",
        "echo '# other' > rules/new && mv rules/new rules/named.toml",
        "rm -f rules/named.toml",
        "mv rules elsewhere",
        "touch config/shoal/leash.toml",
        "mv config elsewhere",
    ] {
        fails(&mut client, script);
    }
    assert_eq!(std::fs::read_to_string(&named).expect("there"), place.unbounded());
    assert_eq!(client.value("sh { touch rules/beside }")["value"]["ok"], json!(true), "its neighbours are free");
}
