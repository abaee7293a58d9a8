//! The reference as Markdown.

use std::fmt::Write;

use crate::rows::{Row, all};

const PREFACE: &str = "# Builtins

Commands, functions, namespaces and methods of the language, made from the tables in `worker/eval/src/builtins` and
`worker/eval/src/methods`. Every line after a `shoal>` prompt is run as a test; the line below it is the value in inline
form, or `!` and the code of the error. Prompts without a result between them are one program, and so is what stands on
one line with `;`.

A parameter with `?` may be left out, and one with `...` takes all arguments that are left.
";

/// The whole reference.
pub(crate) fn reference() -> String {
    let mut text = PREFACE.to_owned();
    let mut section = String::new();
    for row in all() {
        if row.section != section {
            section.clone_from(&row.section);
            text.push_str(&format!("\n## {section}\n"));
        }
        text.push_str(&row_text(&row));
    }
    text
}

fn row_text(row: &Row) -> String {
    let mut text = format!("\n### `{}`\n\n{}\n", row.usage, row.doc.text);
    if row.doc.examples.is_empty() {
        return text;
    }
    text.push_str("\n```\n");
    for example in &row.doc.examples {
        for line in example.source.lines() {
            writeln!(text, "shoal> {line}").expect("a String takes all text");
        }
        writeln!(text, "{}", example.gives).expect("a String takes all text");
    }
    text.push_str("```\n");
    text
}
