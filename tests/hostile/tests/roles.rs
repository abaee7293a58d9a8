//! A worker and a ptyd that are hostile from their first instruction after confinement, at both tiers.

use crate::expected::{Differences, Table};
use crate::field::{Field, Principal};

#[test]
fn in_a_full_jail_hostile_roles_get_nowhere() {
    everywhere("L3", Field::with_hostile_roles(""));
}

#[test]
fn without_namespaces_hostile_roles_come_to_what_is_known() {
    everywhere("L2", Field::with_hostile_roles("namespaces"));
}

fn everywhere(tier: &str, mut field: Field) {
    let table = Table::read();
    let mut differences = Differences::default();
    assert_eq!(field.level(), tier);
    for principal in Principal::BOTH {
        let found = field.attack_as_worker(principal);
        differences.compare(&table, tier, &format!("worker/{}", principal.name()), &found);
        let found = field.attack_as_ptyd(principal);
        differences.compare(&table, tier, &format!("ptyd/{}", principal.name()), &found);
    }
    differences.none();
}
