//! Colours of a line while it is typed: words of the language, numbers, texts, comments. A reading by eye, not a parse:
//! the kernel has the last word, and half a line must have colours too.

use reedline::{Color, Highlighter, StyledText};
use shoal_syntax::vocab;

/// What a piece of a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Keyword,
    Command,
    Number,
    Text,
    Comment,
}

/// The highlighter of the prompt.
pub(crate) struct Colours;

impl Highlighter for Colours {
    fn highlight(&self, line: &str, _cursor: usize) -> StyledText {
        let mut styled = StyledText::new();
        for (kind, piece) in pieces(line) {
            let style = match kind {
                Kind::Plain => Color::Default.normal(),
                Kind::Keyword => Color::Purple.bold(),
                Kind::Command => Color::Green.normal(),
                Kind::Number => Color::Cyan.normal(),
                Kind::Text => Color::Yellow.normal(),
                Kind::Comment => Color::DarkGray.italic(),
            };
            styled.push((style, piece.to_owned()));
        }
        styled
    }
}

/// Cuts a line into pieces; together they are the line.
fn pieces(line: &str) -> Vec<(Kind, &str)> {
    let mut found = Vec::new();
    let mut rest = line;
    let mut at_head = true;
    while let Some(first) = rest.chars().next() {
        let (kind, len) = piece(rest, first, at_head);
        let (piece, after) = rest.split_at(len);
        at_head = match first {
            '\n' | ';' | '{' | '(' | '|' | '=' => true,
            c if c.is_whitespace() => at_head,
            _ => false,
        };
        found.push((kind, piece));
        rest = after;
    }
    found
}

/// The kind and length of the piece at the start of `rest`.
fn piece(rest: &str, first: char, at_head: bool) -> (Kind, usize) {
    let length = |part: fn(char) -> bool| rest.find(|c| !part(c)).unwrap_or(rest.len());
    match first {
        '#' => (Kind::Comment, rest.find('\n').unwrap_or(rest.len())),
        '"' | '\'' => (Kind::Text, quoted(rest, first)),
        c if c.is_ascii_digit() => (Kind::Number, length(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')),
        c if c.is_alphabetic() || c == '_' => {
            let len = length(|c| c.is_alphanumeric() || c == '_');
            let word = rest.get(..len).unwrap_or_default();
            let kind = if vocab::KEYWORDS.contains(&word) {
                Kind::Keyword
            } else if at_head || vocab::FUNCTIONS.contains(&word) {
                Kind::Command
            } else {
                Kind::Plain
            };
            (kind, len)
        }
        c if c.is_whitespace() => (Kind::Plain, length(char::is_whitespace)),
        c => (Kind::Plain, c.len_utf8()),
    }
}

/// The length of a quoted text; an open one goes to the end.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_are_the_line_whatever_it_is() {
        for line in ["", "let x = 1", "\"open", "a # c\nb", "漢字 'é\\'", "^git | {", "\u{202e}\x1b"] {
            assert_eq!(pieces(line).iter().map(|(_, piece)| *piece).collect::<String>(), line);
        }
    }

    #[test]
    fn kinds_are_told_apart() {
        let kinds = |line| {
            let is_space = |piece: &str| piece.trim().is_empty();
            pieces(line).into_iter().filter(|(_, piece)| !is_space(piece)).collect::<Vec<_>>()
        };
        assert_eq!(
            kinds("let n = ls 10kb 'a\\'b' # end"),
            [
                (Kind::Keyword, "let"),
                (Kind::Plain, "n"),
                (Kind::Plain, "="),
                (Kind::Command, "ls"),
                (Kind::Number, "10kb"),
                (Kind::Text, "'a\\'b'"),
                (Kind::Comment, "# end"),
            ]
        );
    }
}
