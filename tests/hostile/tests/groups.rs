//! Control groups: a kernel that is given a part of the tree gives each session a group of its own, and leaves none.

use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde_json::json;
use shoal_harness::{ControlGroup, processes, until};

use crate::field::{Field, Ground, Principal};

/// The group of a field's kernel; `None`, with a word about it, where this user can make none.
fn group(field: &Field) -> Option<&ControlGroup> {
    if field.group.is_none() {
        eprintln!("not run: needs root and a unified hierarchy of control groups");
    }
    field.group.as_ref()
}

/// The one group there is.
fn only(group: &ControlGroup) -> PathBuf {
    let mut all = group.sessions();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[test]
fn each_session_has_a_group_that_goes_with_it() {
    for layers in ["", "namespaces"] {
        let field = Field::without(layers);
        let Some(group) = group(&field) else { return };
        until("no session is left", || group.sessions().is_empty());
        assert_eq!(group.of(field.kernel.pid()), Some(group.dir().join("kernel")));
        for principal in Principal::BOTH {
            let mut client = field.session(principal, "grouped");
            let own = only(group);
            client.ok("exec", json!({"src": "sh { setsid -f sleep 654.9; true }", "position": "value"}));
            for name in ["shoal-launcher", "shoal-worker", "sleep"] {
                for pid in field.kernel.pids_of(name) {
                    assert_eq!(group.of(pid).as_ref(), Some(&own), "{name} {principal:?} without {layers:?}");
                }
            }
            field.end(&mut client, principal, "grouped");
            // The session that ended it is the human's.
            let mut human = field.kernel.attach("human");
            assert_eq!(human.ok("session.list", json!({}))["sessions"].as_array().map(Vec::len), Some(1));
            assert_ne!(only(group), own, "without {layers:?}");
            assert_eq!(processes::all().iter().filter(|p| p.comm == "sleep" && group.of(p.pid).is_some()).count(), 0);
            human.call("session.kill", json!({"session": "human"})).expect("ended");
            until("its group is gone", || group.sessions().is_empty());
        }
    }
}

#[test]
fn a_group_goes_with_a_launcher_that_is_killed_and_with_the_kernel() {
    let mut field = Field::start(Ground::new(&[]), |_| {});
    let Some(group) = group(&field) else { return };
    let mut client = field.session(Principal::Permissive, "killed");
    assert_eq!(client.attach("killed")["isolation"]["cgroup"], json!("v2"));
    let first = only(group);
    processes::signal(field.kernel.pids_of("shoal-launcher")[0], Signal::SIGKILL);
    until("it is made anew", || !first.exists() && group.sessions().len() == 1);
    assert_eq!(client.render("1 + 1"), "2");
    // A kernel that is killed leaves empty groups; the next one in the same place takes them away.
    let second = only(group);
    processes::signal(field.kernel.pid(), Signal::SIGKILL);
    let lives = |pid: i32| processes::is_running(pid) && group.of(pid).is_some();
    until("nobody is left in it", || !processes::all().iter().any(|process| lives(process.pid)));
    field.restart();
    let group = field.group.as_ref().expect("as before");
    assert!(!second.exists());
    let mut client = field.session(Principal::Permissive, "again");
    assert_eq!(client.render("1 + 1"), "2");
    assert!(group.sessions().iter().all(|one| *one != second));
}
