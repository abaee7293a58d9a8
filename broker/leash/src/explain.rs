//! Why a verdict fell, and which grant would change it.

use shoal_proto::section::Section;

use crate::effect::Effect;
use crate::judge::{Verdict, judge};

/// A judgement for people: `shoal policy explain` and approval views show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The verdict.
    pub verdict: Verdict,
    /// One line per effect, in order: what it is and what became of it.
    pub lines: Vec<String>,
    /// Lines of `leash.toml` that would change the verdict, without duplicates.
    pub grants: Vec<String>,
}

/// Explains what [`judge`] says of these effects.
pub fn explain(effects: &[Effect], section: Option<&Section>) -> Explanation {
    let judged = judge(effects, section);
    let mut lines = Vec::with_capacity(effects.len() + 1);
    for (index, effect) in effects.iter().enumerate() {
        let refusal = judged.refusals.iter().find(|r| r.effect == Some(index));
        let fate = refusal.map_or_else(|| "granted".to_owned(), |r| r.why.clone());
        lines.push(format!("{}: {fate}", effect.text()));
    }
    lines.extend(judged.refusals.iter().filter(|r| r.effect.is_none()).map(|r| r.why.clone()));
    let mut grants = Vec::new();
    for refusal in &judged.refusals {
        if !grants.contains(&refusal.hint) {
            grants.push(refusal.hint.clone());
        }
    }
    Explanation { verdict: judged.verdict, lines, grants }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_effect_reason_and_grant() {
        let told = explain(&[Effect::Time, Effect::JournalRead], Some(&Section { time: true, ..Section::default() }));
        assert_eq!(told.verdict, Verdict::Deny);
        assert_eq!(told.lines, ["clock: granted", "read journal: journal_read is not granted"]);
        assert_eq!(told.grants, ["grant journal_read = true"]);
    }
}
