//! The table of what must come of every attack.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::field::Outcomes;

/// The places of a session from which an attack comes, for each of two principals.
pub(crate) const COLUMNS: &[&str] = &[
    "command/permissive",
    "command/scoped",
    "terminal/permissive",
    "terminal/scoped",
    "worker/permissive",
    "worker/scoped",
    "ptyd/permissive",
    "ptyd/scoped",
];

/// The file's rows.
pub(crate) struct Table(toml::Table);

/// Cells that differ.
#[derive(Debug, Default)]
pub(crate) struct Differences(String);

impl Table {
    pub(crate) fn read() -> Self {
        let text = include_str!("../expected.toml");
        Self(toml::from_str(text).expect("expected.toml is TOML"))
    }

    fn row(&self, id: &str) -> Option<&toml::Table> {
        self.0.get("attack")?.get(id)?.as_table()
    }

    /// Every attack that has a row.
    pub(crate) fn ids(&self) -> Vec<&str> {
        let rows = self.0.get("attack").and_then(toml::Value::as_table);
        rows.map(|rows| rows.keys().map(String::as_str).collect()).unwrap_or_default()
    }

    /// What must come of an attack in a column of a tier; a row with one word has it in every column.
    pub(crate) fn expected(&self, id: &str, tier: &str, column: &str) -> Option<String> {
        match self.row(id)?.get(tier)? {
            toml::Value::String(word) => Some(word.clone()),
            toml::Value::Table(columns) => {
                let exact = columns.get(column).or_else(|| columns.get("else"))?;
                exact.as_str().map(str::to_owned)
            }
            _ => None,
        }
    }

    /// The layers that stop an attack.
    pub(crate) fn layers(&self, id: &str) -> Vec<String> {
        let list = self.row(id).and_then(|row| row.get("stopped_by")).and_then(toml::Value::as_array);
        list.map(|list| list.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect()).unwrap_or_default()
    }

    /// Attacks that are no deed of one program, and the test of each.
    pub(crate) fn elsewhere(&self) -> Vec<(String, String)> {
        let rows = self.0.get("elsewhere").and_then(toml::Value::as_table).expect("rows");
        rows.iter().filter_map(|(id, test)| Some((id.clone(), test.as_str()?.to_owned()))).collect()
    }

    /// Whether the weak kernel can take a layer away.
    pub(crate) fn can_be_away(&self, layer: &str) -> bool {
        let in_table =
            |name: &str| self.0.get(name).and_then(toml::Value::as_table).is_some_and(|t| t.contains_key(layer));
        assert!(in_table("layer") || in_table("fixed"), "no layer {layer}");
        in_table("layer")
    }

    /// Where it is shown that an attack succeeds without its layers.
    pub(crate) fn shown(&self, id: &str) -> &str {
        self.row(id).and_then(|row| row.get("shown")?.as_str()).unwrap_or("command/permissive")
    }

    /// What an attack comes to without its layers: it succeeds, unless this machine lacks what it needs.
    pub(crate) fn control(&self, id: &str) -> &str {
        self.row(id).and_then(|row| row.get("control")?.as_str()).unwrap_or("ok")
    }

    /// Layer, place, attack, and what comes of the attack without that layer alone.
    pub(crate) fn observables(&self) -> Vec<(&str, &str, &str, &str)> {
        let mut all = Vec::new();
        for (layer, row) in self.0.get("layer").and_then(toml::Value::as_table).expect("layers") {
            let text = |key: &str| row.get(key).and_then(toml::Value::as_str);
            let (id, outcome) = text("without").and_then(|words| words.split_once(' ')).expect("an attack and a word");
            all.push((layer.as_str(), text("shown").unwrap_or("command/permissive"), id, outcome));
        }
        all
    }

    /// Why an attack may succeed in a tier.
    pub(crate) fn allowed(&self, id: &str, tier: &str) -> Option<&str> {
        self.row(id)?.get(&format!("open_at_{tier}"))?.as_str()
    }
}

impl Differences {
    /// Compares the outcomes of one column with the table; words of `|` are alternatives.
    pub(crate) fn compare(&mut self, table: &Table, tier: &str, column: &str, found: &Outcomes) {
        let all: BTreeMap<&str, &str> = found.iter().map(|(id, outcome)| (id.as_str(), outcome.as_str())).collect();
        for attack in shoal_hostile::all() {
            let got = all.get(attack.id).copied().unwrap_or("nothing");
            let expected = table.expected(attack.id, tier, column).unwrap_or_else(|| "ok".to_owned());
            if !expected.split('|').any(|word| word == got) {
                writeln!(self.0, "{tier} {column} {} {got} (expected {expected:?})", attack.id).expect("a text");
            }
        }
    }

    /// Fails when anything differed.
    pub(crate) fn none(self) {
        assert!(self.0.is_empty(), "not as in expected.toml:\n{}", self.0);
    }
}
