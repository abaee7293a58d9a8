//! Patterns.

use shoal_value::{Value, equal::equal};

use super::frame::Linked;
use crate::code::{Code, Pattern, Target};
use crate::machine::Machine;

impl Machine {
    /// Whether `value` matches; binds the names of the pattern on the way.
    pub(super) fn matches(
        &mut self,
        code: &Code,
        linked: &Linked,
        at: (usize, usize),
        pattern: u32,
        value: &Value,
    ) -> bool {
        self.fits(linked, at, &code.tables.patterns[pattern as usize], value)
    }

    fn fits(&mut self, linked: &Linked, at: (usize, usize), pattern: &Pattern, value: &Value) -> bool {
        match pattern {
            Pattern::Any => true,
            Pattern::Bind(target) => {
                self.bind_target(linked, at, *target, value.clone());
                true
            }
            Pattern::Literal(literal) => equal(literal, value).unwrap_or(false),
            Pattern::Regex(regex) => value.as_str().is_some_and(|text| regex.compiled().is_match(text)),
            Pattern::Range { start, end, inclusive } => in_range(*start, *end, *inclusive, value),
            Pattern::Type(types, target) => {
                let fits = types.has(value);
                if let (true, Some(target)) = (fits, target) {
                    self.bind_target(linked, at, *target, value.clone());
                }
                fits
            }
            Pattern::Record(fields) => match value {
                Value::Record(record) => fields
                    .iter()
                    .all(|(key, pattern)| record.get(key).is_some_and(|value| self.fits(linked, at, pattern, value))),
                _ => false,
            },
            Pattern::List { items, rest } => self.fits_list(linked, at, items, *rest, value),
            Pattern::Either(patterns) => patterns.iter().any(|pattern| self.fits(linked, at, pattern, value)),
        }
    }

    fn fits_list(
        &mut self,
        linked: &Linked,
        at: (usize, usize),
        patterns: &[Pattern],
        rest: Option<Option<Target>>,
        value: &Value,
    ) -> bool {
        let list = match value {
            Value::List(list) => list.clone(),
            Value::Table(table) => table.to_list(),
            _ => return false,
        };
        let long_enough = if rest.is_some() { list.len() >= patterns.len() } else { list.len() == patterns.len() };
        if !long_enough || !patterns.iter().zip(list.iter()).all(|(pattern, item)| self.fits(linked, at, pattern, item))
        {
            return false;
        }
        if let Some(Some(target)) = rest {
            let tail = match value {
                Value::Table(table) => Value::Table(table.slice(patterns.len(), table.len())),
                _ => Value::List(list.slice(patterns.len(), list.len())),
            };
            self.bind_target(linked, at, target, tail);
        }
        true
    }

    fn bind_target(&mut self, linked: &Linked, (base, cells): (usize, usize), target: Target, value: Value) {
        match target {
            Target::Local(at) => self.stack[base + at as usize] = value,
            Target::Cell(at) => drop(self.cells[cells + at as usize].lock().replace(value)),
            Target::Root(name, kind) => linked.cell(name).declare(value, kind),
        }
    }
}

fn in_range(start: i64, end: i64, inclusive: bool, value: &Value) -> bool {
    match value {
        Value::Int(n) => start <= *n && (*n < end || inclusive && *n == end),
        #[allow(clippy::cast_precision_loss, reason = "a bound compares as the float nearest to it")]
        Value::Float(f) => start as f64 <= *f && (*f < end as f64 || inclusive && *f == end as f64),
        _ => false,
    }
}
