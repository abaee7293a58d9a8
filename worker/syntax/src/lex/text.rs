//! String literals: where they end, their holes, escapes and indentation.

use std::ops::Range;

use crate::Diag;
use crate::parser::Reject;

/// How a string is quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `"..."`
    Plain,
    /// `'...'`
    Raw,
    /// `"""..."""`
    TriplePlain,
    /// `'''...'''`
    TripleRaw,
}

impl Form {
    /// The form of the quotes at `at`.
    pub(crate) fn at(src: &str, at: usize) -> Self {
        let rest = &src[at..];
        if rest.starts_with("\"\"\"") {
            Self::TriplePlain
        } else if rest.starts_with("'''") {
            Self::TripleRaw
        } else if rest.starts_with('"') {
            Self::Plain
        } else {
            Self::Raw
        }
    }

    pub(crate) fn quotes(self) -> &'static str {
        match self {
            Self::Plain => "\"",
            Self::Raw => "'",
            Self::TriplePlain => "\"\"\"",
            Self::TripleRaw => "'''",
        }
    }

    pub(crate) fn interpolates(self) -> bool {
        matches!(self, Self::Plain | Self::TriplePlain)
    }

    fn triple(self) -> bool {
        matches!(self, Self::TriplePlain | Self::TripleRaw)
    }
}

/// One part of a literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Source text, escapes not resolved.
    Text(Range<usize>),
    /// The source between `{` and `}`.
    Hole(Range<usize>),
}

/// A scanned literal: parts in order, and the end of the closing quotes. For the triple forms indentation is removed.
#[derive(Debug)]
pub(crate) struct Literal {
    pub(crate) parts: Vec<Part>,
    pub(crate) end: usize,
}

/// Scans the literal whose opening quotes are at `at`.
pub(crate) fn scan(src: &str, at: usize) -> Result<Literal, Reject> {
    let form = Form::at(src, at);
    let bytes = src.as_bytes();
    let mut parts = Vec::new();
    let mut i = at + form.quotes().len();
    let mut text = i;
    loop {
        if src.as_bytes()[i.min(src.len())..].starts_with(form.quotes().as_bytes()) {
            parts.push(Part::Text(text..i));
            let parts = if form.triple() { dedent(src, parts) } else { parts };
            return Ok(Literal { parts, end: i + form.quotes().len() });
        }
        match bytes.get(i) {
            None => return Err(open_string(src, at)),
            Some(b'\n') if !form.triple() => return Err(broken_string(at, i)),
            // The brace of \u{...} is no hole.
            Some(b'\\') if form.interpolates() && bytes[i..].starts_with(b"\\u{") => i += 3,
            Some(b'\\') if form.interpolates() && bytes.get(i + 1) != Some(&b'\n') => i += 2,
            Some(b'{') if form.interpolates() => {
                let end = hole_end(src, i, form)?;
                parts.push(Part::Text(text..i));
                parts.push(Part::Hole(i + 1..end - 1));
                i = end;
                text = end;
            }
            Some(_) => i += 1,
        }
    }
}

fn hole_end(src: &str, open: usize, form: Form) -> Result<usize, Reject> {
    let end = super::brace_end(src, open);
    let line_end = src[open..].find('\n').map_or(src.len(), |offset| open + offset);
    match end {
        Some(end) if form.triple() || end <= line_end => Ok(end),
        _ => {
            let stop = if form.triple() { src.len() } else { line_end };
            Err(Diag::new(open..stop, "unterminated interpolation")
                .hint("close the hole with `}`; for a literal brace write `\\{` or quote the text with '...'")
                .into())
        }
    }
}

fn open_string(src: &str, at: usize) -> Reject {
    Diag::new(at..src.len(), "unterminated string").hint("close it with the quotes it was opened with").into()
}

fn broken_string(at: usize, newline: usize) -> Reject {
    Diag::new(at..newline, "unterminated string (newline)")
        .hint("write \\n in \"...\", or use triple quotes for text over several lines")
        .into()
}

/// Removes the common indentation of a triple-quoted text: the first line break, a last line of blanks with its break,
/// and from every line the smallest indentation of the lines that are not blank.
pub(crate) fn dedent(src: &str, parts: Vec<Part>) -> Vec<Part> {
    let mut lines = lines_of(src, parts);
    if lines.len() > 1 && line_is(src, &lines[0], |text| matches!(text, "" | "\r")) {
        lines.remove(0);
        if lines.len() == 1 && line_is(src, &lines[0], only_blanks) {
            return Vec::new();
        }
    }
    if lines.len() > 1 && lines.last().is_some_and(|line| line_is(src, line, only_blanks)) {
        lines.pop();
    }
    let indent = lines.iter().filter_map(|line| indentation(src, line)).min().unwrap_or(0);
    let mut parts = Vec::new();
    for (number, mut line) in lines.into_iter().enumerate() {
        if let Some(Part::Text(text)) = line.first_mut() {
            text.start += blanks(&src[text.clone()]).min(indent);
        }
        if number > 0 {
            parts.push(Part::Text(newline_before(src, &line)));
        }
        parts.extend(line);
    }
    parts
}

/// Splits at line breaks. Every line starts with a text part, and the breaks themselves are left out.
fn lines_of(src: &str, parts: Vec<Part>) -> Vec<Vec<Part>> {
    let mut lines = vec![Vec::new()];
    for part in parts {
        let Part::Text(range) = part else {
            lines.last_mut().expect("there is a first line").push(part);
            continue;
        };
        let mut start = range.start;
        while let Some(offset) = src[start..range.end].find('\n') {
            lines.last_mut().expect("there is a first line").push(Part::Text(start..start + offset));
            lines.push(Vec::new());
            start += offset + 1;
        }
        lines.last_mut().expect("there is a first line").push(Part::Text(start..range.end));
    }
    lines
}

/// The source range of a line break that stands before the line. The line's first text part may have lost its
/// indentation, so the break is looked for backwards.
fn newline_before(src: &str, line: &[Part]) -> Range<usize> {
    let at = match line.first() {
        Some(Part::Text(text)) => text.start,
        _ => 0,
    };
    match src[..at].rfind('\n') {
        Some(newline) => newline..newline + 1,
        None => at..at,
    }
}

fn line_is(src: &str, line: &[Part], test: impl Fn(&str) -> bool) -> bool {
    matches!(line, [Part::Text(text)] if test(&src[text.clone()]))
}

fn only_blanks(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

fn blanks(text: &str) -> usize {
    text.bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

fn indentation(src: &str, line: &[Part]) -> Option<usize> {
    match line {
        [Part::Text(text)] if only_blanks(&src[text.clone()]) => None,
        [Part::Text(text), ..] => Some(blanks(&src[text.clone()])),
        _ => Some(0),
    }
}

/// Resolves the escapes of a text part.
pub(crate) fn unescape(src: &str, range: Range<usize>) -> Result<String, Reject> {
    let mut out = String::with_capacity(range.len());
    let mut rest = range.clone();
    while let Some(offset) = src[rest.clone()].find('\\') {
        let at = rest.start + offset;
        out.push_str(&src[rest.start..at]);
        let (ch, end) = escape(src, at, range.end)?;
        out.push(ch);
        rest.start = end;
    }
    out.push_str(&src[rest]);
    Ok(out)
}

fn escape(src: &str, at: usize, limit: usize) -> Result<(char, usize), Reject> {
    let mut chars = src[at + 1..limit].chars();
    let ch = match chars.next() {
        Some('n') => '\n',
        Some('t') => '\t',
        Some('r') => '\r',
        Some('0') => '\0',
        Some(same @ ('\\' | '"' | '{' | '}')) => same,
        Some('u') => return unicode_escape(src, at, limit),
        Some(other) => return Err(unknown_escape(src, at..at + 1 + other.len_utf8())),
        None => return Err(unknown_escape(src, at..limit)),
    };
    Ok((ch, at + 2))
}

fn unicode_escape(src: &str, at: usize, limit: usize) -> Result<(char, usize), Reject> {
    let body = &src[at + 2..limit];
    let close = body.find('}').filter(|_| body.starts_with('{'));
    let value = close.map(|close| &body[1..close]).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
    let ch = value.and_then(|hex| u32::from_str_radix(hex, 16).ok()).and_then(char::from_u32);
    match (ch, close) {
        (Some(ch), Some(close)) => Ok((ch, at + 2 + close + 1)),
        _ => Err(unknown_escape(src, at..close.map_or(at + 2, |close| at + 2 + close + 1))),
    }
}

fn unknown_escape(src: &str, at: Range<usize>) -> Reject {
    Diag::new(at.clone(), format!("unknown escape `{}`", &src[at]))
        .hint("escapes are \\n \\t \\r \\0 \\\\ \\\" \\{ \\} \\u{HEX}; for text as it stands use '...'")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn text(src: &str) -> String {
        let literal = scan(src, 0).map_err(|reject| reject.diag).unwrap();
        assert_eq!(literal.end, src.len());
        literal
            .parts
            .into_iter()
            .map(|part| match part {
                Part::Text(range) => src[range].to_owned(),
                Part::Hole(range) => format!("<{}>", &src[range]),
            })
            .collect()
    }

    #[test]
    fn triple_quotes_lose_their_common_indentation() {
        assert_eq!(text("'''\n    a\n      b\n    '''"), "a\n  b");
        assert_eq!(text("'''\n  a\n\n  b'''"), "a\n\nb");
        assert_eq!(text("'''a\n  b'''"), "a\n  b");
        assert_eq!(text("'''\n   '''"), "");
        assert_eq!(text("\"\"\"\n  {x}\n    y\n\"\"\""), "<x>\n  y");
        assert_eq!(text("\"\"\"\n  x\n\"\"\""), "x");
    }

    #[test]
    fn holes_skip_nested_braces_and_strings() {
        assert_eq!(text(r#""x{"y}"}z""#), r#"x<"y}">z"#);
        assert_eq!(text(r#""{ {a: 1}.a }""#), "< {a: 1}.a >");
        assert_eq!(text(r#""\{a\}""#), r"\{a\}");
    }

    #[test]
    fn escapes() {
        let src = r#"\n\u{1F600}\\\""#;
        assert_eq!(unescape(src, 0..src.len()).map_err(|r| r.diag).unwrap(), "\n😀\\\"");
        for bad in [r"\q", r"\u{}", r"\u{110000}", r"\u12", r"\é"] {
            let diag = unescape(bad, 0..bad.len()).map_err(|r| r.diag).unwrap_err();
            assert!(diag.message().contains("unknown escape"), "{diag}");
        }
    }
}
