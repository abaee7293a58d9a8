//! Methods and fields by type. One file per family; the tables are data that the registry, the documentation and the
//! derivation of effects read.

use crate::registry::{Field, Method};

pub(crate) mod any;
pub(crate) mod bytes;
mod closures;
mod columns;
mod convert;
mod fields;
mod fold;
pub(crate) mod items;
mod merge;
mod number;
mod order;
mod outcome;
pub(crate) mod path;
mod patterns;
mod record;
pub(crate) mod rows;
mod sequence;
mod streams;
pub(crate) mod text;
mod text_search;

/// Method tables of all families.
pub(crate) static TABLES: &[&[Method]] = &[
    any::METHODS,
    convert::METHODS,
    sequence::METHODS,
    closures::METHODS,
    order::METHODS,
    fold::METHODS,
    columns::METHODS,
    text::METHODS,
    text_search::METHODS,
    number::METHODS,
    path::METHODS,
    patterns::METHODS,
    bytes::METHODS,
    outcome::METHODS,
    record::METHODS,
    streams::METHODS,
];

/// Field tables of all families.
pub(crate) static FIELDS: &[&[Field]] = &[fields::FIELDS];
