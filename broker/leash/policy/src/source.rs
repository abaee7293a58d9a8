//! A TOML file with its name, so that every error says where: `leash.toml:3:1: unknown key ...`.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One file's text.
pub(crate) struct Source<'t> {
    name: &'static str,
    text: &'t str,
}

/// Any value with its place.
pub(crate) type Node<'t> = Spanned<DeValue<'t>>;

impl<'t> Source<'t> {
    /// A file of this name.
    pub(crate) fn new(name: &'static str, text: &'t str) -> Self {
        Self { name, text }
    }

    /// The file's top table.
    pub(crate) fn table(&self) -> Result<DeTable<'t>, String> {
        DeTable::parse(self.text).map(Spanned::into_inner).map_err(|e| {
            let message = e.message().replace('\n', "; ");
            self.at(e.span().unwrap_or(0..0), &message)
        })
    }

    /// An error at a place.
    pub(crate) fn at(&self, span: Range<usize>, message: &str) -> String {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        format!("{}:{line}:{column}: {message}", self.name)
    }

    /// An error about a key nobody knows, with the nearest one there is.
    pub(crate) fn unknown(&self, span: Range<usize>, what: &str, given: &str, known: &[&str]) -> String {
        let hint = match nearest(given, known) {
            Some(near) => format!("; did you mean `{near}`?"),
            None => format!("; known: {}", known.join(", ")),
        };
        self.at(span, &format!("unknown {what} `{given}`{hint}"))
    }

    /// An error about a value of another type.
    pub(crate) fn wrong_type(&self, node: &Node<'_>, key: &str, expected: &str) -> String {
        let actual = node.get_ref().type_str();
        self.at(node.span(), &format!("`{key}` takes {expected}, got {actual}"))
    }
}

/// The known name with the fewest edits, when they are few enough to be a slip.
pub(crate) fn nearest<'k>(given: &str, known: &[&'k str]) -> Option<&'k str> {
    let best = known.iter().map(|k| (edits(given, k), *k)).min()?;
    (best.0 <= 1 + given.chars().count() / 4).then_some(best.1)
}

/// Levenshtein distance.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(&b) {
            let up = *cell;
            let best = (diagonal + usize::from(x != *y)).min(up + 1).min(left + 1);
            diagonal = up;
            left = best;
            *cell = best;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(nearest("opaqe", &["opaque", "approve"]), Some("opaque"));
        assert_eq!(nearest("zzz", &["opaque", "approve"]), None);
    }

    #[test]
    fn places_count_from_one() {
        let source = Source::new("leash.toml", "a = 1\nbä = 2\n");
        assert_eq!(source.at(9..10, "x"), "leash.toml:2:3: x");
    }
}
