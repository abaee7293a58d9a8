//! Commands and programs in terminals, at both tiers, and the control: outside every session.

use shoal_harness::Kernel;

use crate::expected::{Differences, Table};
use crate::field::{Field, Ground, Principal};

#[test]
fn outside_every_session_they_succeed() {
    let mut differences = Differences::default();
    let found = Field::start(Ground::new(&[]), |_| {}).attack_outside();
    differences.compare(&Table::read(), "outside", "user", &found);
    differences.none();
}

#[test]
fn in_a_full_jail_none_gets_through() {
    everywhere("L3", Field::start(Ground::new(&[]), |_| {}));
}

#[test]
fn without_namespaces_each_comes_to_what_is_known() {
    everywhere("L2", Field::without("namespaces"));
}

fn everywhere(tier: &str, mut field: Field) {
    let table = Table::read();
    let mut differences = Differences::default();
    assert_eq!(field.level(), tier);
    for principal in Principal::BOTH {
        let found = field.attack_as_command(principal);
        differences.compare(&table, tier, &format!("command/{}", principal.name()), &found);
        let found = field.attack_in_terminal(principal);
        differences.compare(&table, tier, &format!("terminal/{}", principal.name()), &found);
    }
    differences.none();
}

/// The product's own kernel on a host that has no user namespaces left says so and works.
#[test]
fn a_host_without_user_namespaces_is_found_by_trial() {
    let ground = Ground::new(&[]);
    // An inner user namespace whose limit is zero, entered with the same user.
    let script =
        "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all --inh-caps=-all \"$0\" \"$@\"";
    let kernel = Kernel::start_by(&ground.place, |kernel| {
        let mut command = ground.place.command("unshare");
        command.args(["--user", "--map-current-user", "--keep-caps", "sh", "-c", script]).arg(kernel);
        command
    });
    let mut client = kernel.attach("default");
    let attached = client.ok("kernel.status", serde_json::json!({}));
    assert_eq!(attached["level"], "L2", "{attached}");
    assert!(kernel.log().contains("sessions get no full jail (L2)"), "{}", kernel.log());
    assert!(kernel.log().contains("raise user.max_user_namespaces"), "{}", kernel.log());
    assert_eq!(client.render("1 + 1"), "2");
}

#[test]
fn every_cell_is_filled_and_every_open_one_has_a_reason() {
    let table = Table::read();
    let listed: Vec<&str> = shoal_hostile::all().iter().map(|attack| attack.id).collect();
    assert_eq!(table.ids(), listed);
    for id in listed {
        assert!(!table.layers(id).is_empty(), "{id}: stopped by nothing");
        for tier in ["L3", "L2"] {
            for column in crate::expected::COLUMNS {
                let expected = table.expected(id, tier, column).unwrap_or_default();
                assert!(!expected.is_empty(), "{id}: nothing for {tier} {column}");
                let open = expected.split('|').any(|word| word == "ok");
                assert!(!open || table.allowed(id, tier).is_some(), "{id}: open at {tier} {column} without a reason");
            }
        }
    }
}

#[test]
fn what_is_shown_elsewhere_is_there() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a workspace");
    let mut sources = String::new();
    for crates in ["broker", "ipc", "mcp", "ptyd", "supervisor", "tests", "worker"] {
        read_all(&root.join(crates), &mut sources);
    }
    for (id, test) in Table::read().elsewhere() {
        assert!(sources.contains(&format!("fn {test}()")), "{id}: no test {test}");
    }
}

fn read_all(path: &std::path::Path, text: &mut String) {
    for entry in std::fs::read_dir(path).expect("a directory").flatten().map(|entry| entry.path()) {
        if entry.is_dir() {
            read_all(&entry, text);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(entry).expect("a source"));
        }
    }
}
