//! Every layer is there for something: what gets through when it is away.

use std::collections::BTreeMap;

use crate::expected::Table;
use crate::field::{Field, Outcomes, Principal};

/// Attacks by the layers that stop them, as the weak kernel takes them away.
fn by_layers(table: &Table) -> BTreeMap<String, Vec<&'static str>> {
    let mut groups: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    for attack in shoal_hostile::all() {
        let layers = table.layers(attack.id);
        if layers.iter().all(|layer| table.can_be_away(layer)) {
            groups.entry(layers.join(",")).or_default().push(attack.id);
        }
    }
    groups
}

fn column(field: &mut Field, column: &str) -> Outcomes {
    match column {
        "command/scoped" => field.attack_as_command(Principal::Scoped),
        "outside" => field.attack_outside(),
        "terminal/permissive" => field.attack_in_terminal(Principal::Permissive),
        _ => field.attack_as_command(Principal::Permissive),
    }
}

#[test]
fn without_all_its_layers_an_attack_succeeds() {
    let table = Table::read();
    let mut wrong = Vec::new();
    for (layers, attacks) in by_layers(&table) {
        let mut field = Field::without(&layers);
        let mut found: BTreeMap<&str, Outcomes> = BTreeMap::new();
        for id in attacks {
            let shown = table.shown(id);
            let outcomes = found.entry(shown).or_insert_with(|| column(&mut field, shown));
            let got = outcomes.get(id).map_or("nothing", String::as_str);
            if got != table.control(id) {
                wrong.push(format!("without {layers}: {id} {got} in {shown}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn each_layer_changes_something_of_its_own() {
    let table = Table::read();
    let mut wrong = Vec::new();
    for (layer, shown, id, expected) in table.observables() {
        let mut field = Field::without(layer);
        let found = column(&mut field, shown);
        let got = found.get(id).map_or("nothing", String::as_str);
        let tier = if shown == "outside" { "outside" } else { "L3" };
        let with_it = table.expected(id, tier, shown).unwrap_or_default();
        if got != expected || got == with_it {
            wrong.push(format!("without {layer}: {id} {got}, expected {expected}; with it {with_it}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A session that reaches the socket after all is told apart from the user by who its ancestors are.
#[test]
fn the_broker_refuses_processes_of_a_session() {
    for layers in ["holes", "holes,processes"] {
        let found = Field::without(layers).attack_as_command(Principal::Permissive);
        assert_eq!(found["A40-connect"], "ok", "without {layers}");
        assert_eq!(found["A40-attach"], "session_descendant", "without {layers}");
    }
}

/// The switch is in the weak kernel and in no program of the product.
#[test]
fn the_product_has_no_switch() {
    const SWITCH: &[u8] = b"SHOAL_TEST_WITHOUT";
    let has_it = |path: &std::path::Path| {
        let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        memchr::memmem::find(&bytes, SWITCH).is_some()
    };
    let weak = std::path::Path::new(env!("CARGO_BIN_EXE_weak-kernel"));
    assert!(has_it(weak));
    let place = shoal_harness::Place::new();
    for program in shoal_harness::programs::PROGRAMS {
        assert!(!has_it(&place.program(program)), "{program}");
    }
}
