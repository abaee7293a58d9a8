//! The lexer. It has no state: the parser asks for the token at a byte, in the expression mode here or in the command
//! mode (`parser::words`), and may ask again in the other mode.

mod number;
mod raw;
mod text;

pub(crate) use number::Number;
pub(crate) use raw::{balanced_end, brace_end, quoted_end};
pub(crate) use text::{Form, Part, dedent, scan, unescape};

use crate::Diag;
use crate::parser::{Reject, teach};

/// A token of the expression mode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: Tok,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Tok {
    Newline,
    Semi,
    Eof,
    Ident,
    Number(Number),
    /// The opening quotes only; the parser reads on.
    Quote(Form),
    /// All of `re"..."`.
    Regex,
    /// All of `t"..."`.
    DateTime,
    Op(&'static str),
}

/// Operators and punctuation; a longer one stands before its prefixes.
const OPERATORS: &[&str] = &[
    "...", "..=", "+=", "-=", "*=", "/=", "->", "=>", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "..", "(", ")",
    "[", "]", "{", "}", ",", ":", "+", "-", "*", "/", "%", "!", "<", ">", "=", "?", ".", "^", "|",
];

pub(crate) fn is_ident_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

pub(crate) fn is_ident(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether the text is an identifier.
pub(crate) fn is_name(text: &str) -> bool {
    text.bytes().next().is_some_and(is_ident_start) && text.bytes().all(is_ident)
}

/// The end of the identifier at `at`; `at` itself if there is none.
pub(crate) fn ident_end(src: &str, at: usize) -> usize {
    let bytes = src.as_bytes();
    match bytes.get(at) {
        Some(&first) if is_ident_start(first) => {
            at + bytes[at..].iter().position(|&b| !is_ident(b)).unwrap_or(bytes.len() - at)
        }
        _ => at,
    }
}

/// The length of a line join (a backslash directly before the end of the line) at `at`, or 0.
pub(crate) fn join_len(src: &str, at: usize) -> usize {
    let rest = &src.as_bytes()[at.min(src.len())..];
    if rest.starts_with(b"\\\n") {
        2
    } else if rest.starts_with(b"\\\r\n") {
        3
    } else {
        0
    }
}

/// The first byte after `at` that is neither blank nor in a comment; with `newlines` line ends are blank too.
/// Calls `comment` with the range of every comment it passes.
pub(crate) fn skip_blank(src: &str, mut at: usize, newlines: bool, mut comment: impl FnMut(usize, usize)) -> usize {
    let bytes = src.as_bytes();
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t' | b'\r' => at += 1,
            b'\n' if newlines => at += 1,
            b'#' => {
                let end = src[at..].find('\n').map_or(src.len(), |offset| at + offset);
                comment(at, end);
                at = end;
            }
            b'\\' if join_len(src, at) > 0 => at += join_len(src, at),
            _ => break,
        }
    }
    at
}

/// The token at `at`, which is no blank.
pub(crate) fn token(src: &str, at: usize) -> Result<Token, Reject> {
    let Some(&byte) = src.as_bytes().get(at) else {
        return Ok(Token { kind: Tok::Eof, start: src.len(), end: src.len() });
    };
    let one = |kind| Ok(Token { kind, start: at, end: at + 1 });
    match byte {
        b'\n' => one(Tok::Newline),
        b';' => one(Tok::Semi),
        b'"' | b'\'' => {
            let form = Form::at(src, at);
            Ok(Token { kind: Tok::Quote(form), start: at, end: at + form.quotes().len() })
        }
        b'0'..=b'9' => {
            let (number, end) = number::read(src, at)?;
            Ok(Token { kind: Tok::Number(number), start: at, end })
        }
        _ if is_ident_start(byte) => word(src, at),
        _ => operator(src, at),
    }
}

fn word(src: &str, at: usize) -> Result<Token, Reject> {
    let end = ident_end(src, at);
    let kind = match &src[at..end] {
        "re" => Tok::Regex,
        "t" => Tok::DateTime,
        _ => Tok::Ident,
    };
    if kind == Tok::Ident || src.as_bytes().get(end) != Some(&b'"') {
        return Ok(Token { kind: Tok::Ident, start: at, end });
    }
    let close = src[end + 1..].find(['"', '\n']).map(|offset| end + 1 + offset);
    match close {
        Some(close) if src.as_bytes()[close] == b'"' => Ok(Token { kind, start: at, end: close + 1 }),
        Some(newline) => Err(Diag::new(at..newline, "unterminated string (newline)")
            .hint("a tagged literal ends at the next `\"` on its line")
            .into()),
        None => Err(Diag::new(at..src.len(), "unterminated string").into()),
    }
}

fn operator(src: &str, at: usize) -> Result<Token, Reject> {
    let rest = &src[at..];
    match OPERATORS.iter().find(|operator| rest.starts_with(**operator)) {
        Some(operator) => Ok(Token { kind: Tok::Op(operator), start: at, end: at + operator.len() }),
        None => Err(teach::bad_character(src, at).into()),
    }
}
