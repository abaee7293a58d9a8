//! The main job: sessions do work.

use serde_json::json;
use shoal_harness::{Kernel, Place};

#[test]
fn values_of_both_positions() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let answer = client.value("6 * 7");
    assert_eq!(answer["value"], json!({"$": "int", "v": 42}));
    assert_eq!((answer["ref"].as_str(), answer["render"].as_str()), (Some("out:1"), Some("42")));
    let failed = client.value("(^false)");
    assert_eq!(failed["value"]["ok"], json!(false), "{failed}");
    let raised = client.err("exec", json!({"src": "^false"}));
    assert_eq!((raised.code, raised.data["code"].as_str()), (-32002, Some("cmd_failed")), "{raised:?}");
    let parse = client.err("exec", json!({"src": "let = 3"}));
    assert_eq!(parse.code, -32001);
    assert!(parse.data["span"]["start"].is_u64(), "{parse:?}");
}

#[test]
fn typed_listing_of_real_files() {
    let place = Place::new();
    place.write("a.txt", "one");
    place.write("b.txt", "two");
    std::fs::create_dir(place.work().join("d")).expect("a directory");
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let names = client.value("(ls .).where(.type == 'file').map(.name)");
    assert_eq!(names["value"]["v"], json!([{"$": "str", "v": "a.txt"}, {"$": "str", "v": "b.txt"}]), "{names}");
}

#[test]
fn bindings_are_the_sessions_and_outlive_a_client() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut first = kernel.attach("default");
    first.ok("exec", json!({"src": "let x = [1, 2, 3]"}));
    drop(first);
    let mut second = kernel.attach("default");
    assert_eq!(second.render("x.map(n => n * 2).sum()"), "12");
    let mut other = kernel.attach("other");
    let error = other.err("exec", json!({"src": "x", "position": "value"}));
    assert_eq!(error.code, -32002, "{error:?}");
}

#[test]
fn large_values_are_elided_and_paged_by_reference() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let answer = client.value("range(0, 100000).collect()");
    assert_eq!(answer["value"]["$"], json!("ref"), "{}", answer["value"]);
    let page = client.ok("value.get", json!({"ref": answer["ref"], "slice": [99_998, 100_000]}));
    assert_eq!(page["value"]["v"], json!([{"$": "int", "v": 99_998}, {"$": "int", "v": 99_999}]), "{page}");
}

#[test]
fn directory_and_environment_belong_to_the_session() {
    let place = Place::new();
    std::fs::create_dir(place.work().join("d")).expect("a directory");
    nix_chown(&place, "d");
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    client.ok("exec", json!({"src": "cd d\nenv.X = 'y'"}));
    let answer = client.value("sh { pwd; echo $X }");
    let text = answer["render"].as_str().expect("a render");
    assert!(text.contains("/work/d") && text.contains('y'), "{answer}");
}

fn nix_chown(place: &Place, name: &str) {
    let id = place.uid();
    std::os::unix::fs::chown(place.work().join(name), Some(id), Some(id)).expect("given to the user");
}

#[test]
fn a_timeout_hands_over_and_a_cancel_is_proved() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let handed = client.ok("exec", json!({"src": "/bin/sleep 631.7", "position": "value", "timeout_ms": 0}));
    let handed = if handed.get("task").is_some() { handed } else { panic!("{handed}") };
    let cancelled = client.ok("task.cancel", json!({"task": handed["task"]}));
    assert_eq!(cancelled["receipt"]["survived"], json!([]), "{cancelled}");
    let again = client.ok("task.cancel", json!({"task": handed["task"]}));
    assert_eq!(again["already_ended"], json!(true), "{again}");
}

#[test]
fn status_shows_the_tree() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    client.value("1");
    let status = client.ok("kernel.status", json!({}));
    let roles: Vec<&str> =
        status["processes"].as_array().expect("a list").iter().filter_map(|p| p["role"].as_str()).collect();
    for role in ["supervisor", "broker", "launcher", "worker"] {
        assert!(roles.contains(&role), "{role} in {roles:?}");
    }
    for name in ["shoal-kernel", "shoal-broker", "shoal-launcher", "shoal-worker"] {
        assert_eq!(kernel.pids_of(name).len(), 1, "{name} shows its role in ps");
    }
}
