//! Methods and fields by type.

use crate::registry::{Field, Method};

/// Method tables of all families.
pub(crate) static TABLES: &[&[Method]] = &[];

/// Field tables of all families.
pub(crate) static FIELDS: &[&[Field]] = &[];
