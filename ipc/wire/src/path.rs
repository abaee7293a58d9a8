//! Paths that select inside a value, as `value.get` and URIs carry them.
//!
//! Dots only separate, so a leading dot is optional, doubled ones collapse, and `""` and `"."` select the whole value.

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A field, member or column.
    Name(String),
    /// The item, row, character or octet at this index.
    Index(u64),
    /// Those from the first bound up to the second, which is exclusive; both clamp to the length.
    Range(u64, u64),
}

/// A bracket that is not closed or does not hold decimal numbers. The whole path is refused with reason `path`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPath {
    /// Byte offset of the bracket.
    pub at: usize,
}

impl std::fmt::Display for BadPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the bracket at byte {} must be `[N]` or `[N..M]`", self.at)
    }
}

impl std::error::Error for BadPath {}

/// Splits a path into its steps; an empty list selects the whole value.
pub fn parse(path: &str) -> Result<Vec<Step>, BadPath> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            rest = after;
        } else if let Some(after) = rest.strip_prefix('[') {
            let bad = BadPath { at: path.len().saturating_sub(rest.len()) };
            let (inside, tail) = after.split_once(']').ok_or(bad)?;
            steps.push(bracket(inside).ok_or(bad)?);
            rest = tail;
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, tail) = rest.split_at(end);
            steps.push(Step::Name(name.to_owned()));
            rest = tail;
        }
    }
    Ok(steps)
}

fn bracket(inside: &str) -> Option<Step> {
    match inside.split_once("..") {
        Some((from, to)) => Some(Step::Range(decimal(from)?, decimal(to)?)),
        None => decimal(inside).map(Step::Index),
    }
}

/// Digits only. A number too large to count with is an index past every end, which is what clamping makes of it.
fn decimal(digits: &str) -> Option<u64> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// `path` with one more name, as elided members spell their URI.
pub fn join(path: Option<&str>, name: &str) -> String {
    match path.filter(|path| !path.is_empty()) {
        Some(path) => format!("{path}.{name}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(text: &str) -> Step {
        Step::Name(text.to_owned())
    }

    #[test]
    fn dots_only_separate() {
        assert_eq!(parse(""), Ok(vec![]));
        assert_eq!(parse("."), Ok(vec![]));
        assert_eq!(parse(".a..b."), Ok(vec![name("a"), name("b")]));
        assert_eq!(parse(".rows[0].a"), Ok(vec![name("rows"), Step::Index(0), name("a")]));
        assert_eq!(parse("out[0..2][1]"), Ok(vec![name("out"), Step::Range(0, 2), Step::Index(1)]));
        assert_eq!(parse("a b]c"), Ok(vec![name("a b]c")]));
    }

    #[test]
    fn brackets_hold_decimal_numbers() {
        for bad in ["[-1]", "[5..]", "[..5]", "[0", "[]", "[a]", "[+1]", "[1...2]", "[ 1]"] {
            assert_eq!(parse(bad), Err(BadPath { at: 0 }), "{bad}");
        }
        assert_eq!(parse("x.[z]"), Err(BadPath { at: 2 }));
        assert_eq!(parse("[99999999999999999999999]"), Ok(vec![Step::Index(u64::MAX)]));
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        prop::collection::vec(
            prop_oneof![
                "[^.\\[]{1,8}".prop_map(Step::Name),
                any::<u64>().prop_map(Step::Index),
                (any::<u64>(), any::<u64>()).prop_map(|(from, to)| Step::Range(from, to))
            ],
            0..6,
        )
    }

    proptest! {
        #[test]
        fn written_steps_are_read_back(steps in steps()) {
            let mut text = String::new();
            for step in &steps {
                match step {
                    Step::Name(name) => text.push_str(&format!(".{name}")),
                    Step::Index(at) => text.push_str(&format!("[{at}]")),
                    Step::Range(from, to) => text.push_str(&format!("[{from}..{to}]")),
                }
            }
            prop_assert_eq!(parse(&text), Ok(steps));
        }

        #[test]
        fn any_text_is_answered(text in "[.\\[\\]0-9a-z-]{0,30}") {
            drop(parse(&text));
        }
    }
}
