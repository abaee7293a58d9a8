//! Each official client against a cold start: handshake, lists, tools, resources, subscriptions.

use std::process::Command;

use shoal_harness::{Place, processes};

use crate::drive::{node, passes, python, server};

fn drives(driver: impl FnOnce(&Place) -> Command) {
    let place = Place::new();
    let mut command = driver(&place);
    command.args(server(&place));
    passes(command);
    processes::end_kernels_of(&place);
}

#[test]
fn python_1() {
    drives(|place| python(place, "python1", "python1.py"));
}

#[test]
fn python_2_probing() {
    drives(|place| {
        let mut command = python(place, "python2", "python2.py");
        command.arg("auto");
        command
    });
}

#[test]
fn python_2_alone() {
    drives(|place| {
        let mut command = python(place, "python2", "python2.py");
        command.arg("2026-07-28");
        command
    });
}

#[test]
fn typescript_1() {
    drives(|place| node(place, "typescript1", "typescript1.mjs"));
}

#[test]
fn typescript_2_probing() {
    drives(|place| {
        let mut command = node(place, "typescript2", "typescript2.mjs");
        command.arg("auto");
        command
    });
}

#[test]
fn typescript_2_alone() {
    drives(|place| {
        let mut command = node(place, "typescript2", "typescript2.mjs");
        command.arg("pin");
        command
    });
}

#[test]
fn the_main_job_over_two_clients_of_one_session() {
    let place = Place::new();
    place.write("a.txt", "one");
    place.write("b.txt", "two");
    let mut command = python(&place, "python1", "main_job.py");
    command.args(server(&place));
    passes(command);
    processes::end_kernels_of(&place);
}
