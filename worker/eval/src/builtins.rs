//! Builtin commands, functions and namespaces. One file per family; the tables are data that the registry, the
//! documentation and the derivation of effects read.

use crate::registry::{Command, Function, Namespace};

mod copying;
mod creating;
mod echo;
mod environment;
mod journal;
mod later;
mod listing;
mod makers;
mod namespaces;
mod navigation;
mod place;
mod reading;
mod reef;
mod removing;
mod resources;
mod waiting;

/// Command tables of all families.
pub(crate) static COMMANDS: &[&[Command]] = &[
    echo::COMMANDS,
    listing::COMMANDS,
    reading::COMMANDS,
    creating::COMMANDS,
    copying::COMMANDS,
    removing::COMMANDS,
    navigation::COMMANDS,
    environment::COMMANDS,
    waiting::COMMANDS,
    journal::COMMANDS,
    reef::COMMANDS,
    later::COMMANDS,
];

/// Function tables of all families.
pub(crate) static FUNCTIONS: &[&[Function]] =
    &[makers::FUNCTIONS, waiting::FUNCTIONS, reading::FUNCTIONS, resources::FUNCTIONS, later::FUNCTIONS];

/// Namespaces.
pub(crate) static NAMESPACES: &[&Namespace] = namespaces::ALL;
