//! The formatter: one canonical spelling of a tree, with the comments of its source.
//!
//! Literals, patterns and words stay as they were written; blanks, line breaks between statements and indentation are
//! made anew. A list, record, argument list, chain or operator that was broken over lines stays broken. A statement with
//! a comment in a place where a line cannot end is left as it is.

mod expr;
mod stmt;

use crate::ast::{Block, Span, Stmt};
use crate::{Diag, Names, Parsed, parse};

const INDENT: &str = "    ";

/// Formats a source text. The result parses to the same tree, places aside; formatting it again changes nothing.
///
/// # Errors
/// The diagnostics of a source that does not parse.
pub fn format(src: &str, names: &Names) -> Result<String, Vec<Diag>> {
    let parsed = parse(src, names);
    if !parsed.diags.is_empty() {
        return Err(parsed.diags);
    }
    let text = print(src, &parsed);
    // The meaning of a text comes before its looks.
    let same = parse(&text, names);
    let unchanged =
        same.diags.is_empty() && shape(&same) == shape(&parsed) && same.comments.len() == parsed.comments.len();
    Ok(if unchanged { text } else { src.to_owned() })
}

/// The tree without places, for comparing.
fn shape(parsed: &Parsed) -> serde_json::Value {
    let mut value = crate::tree_json::to_json(&parsed.program);
    forget_places(&mut value);
    value
}

fn forget_places(value: &mut serde_json::Value) {
    crate::nesting::with_stack(|| match value {
        serde_json::Value::Object(members) => {
            members.retain(|name, _| name != "span");
            members.values_mut().for_each(forget_places);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(forget_places),
        _ => {}
    });
}

fn print(src: &str, parsed: &Parsed) -> String {
    let mut printer = Printer { src, comments: &parsed.comments, out: String::new(), indent: 0, misplaced: false };
    printer.statements(&parsed.program.stmts, parsed.program.span);
    printer.out
}

struct Printer<'p> {
    src: &'p str,
    /// The comments that are not printed yet.
    comments: &'p [Span],
    out: String,
    indent: usize,
    /// A comment was met where no line can end.
    misplaced: bool,
}

impl<'p> Printer<'p> {
    /// Statements on lines of their own, with the comments between them. Leaves the last line ended.
    fn statements(&mut self, stmts: &[Stmt], within: Span) {
        let mut last_end = within.start;
        for stmt in stmts {
            last_end = self.comments_before(stmt.span.start, last_end);
            self.blank_line(last_end, stmt.span.start, within);
            self.separate_from_comment(stmt);
            self.line_start();
            self.statement(stmt);
            last_end = stmt.span.end;
            self.comment_beside(last_end);
            self.out.push('\n');
        }
        self.comments_before(within.end, last_end);
    }

    /// Prints a statement, or copies it if a comment in it has no place of its own.
    fn statement(&mut self, stmt: &Stmt) {
        let (length, comments, misplaced) = (self.out.len(), self.comments, self.misplaced);
        self.misplaced = false;
        self.stmt(stmt);
        let left = self.comments.first().is_some_and(|comment| comment.start < stmt.span.end);
        if self.misplaced || left {
            self.out.truncate(length);
            self.comments = comments;
            self.verbatim(stmt.span);
        }
        self.misplaced = misplaced;
    }

    /// Comments that stand before a place, on lines of their own. The answer is the end of the last one.
    fn comments_before(&mut self, place: u32, mut last_end: u32) -> u32 {
        while let Some(comment) = self.comments.first().filter(|comment| comment.start < place) {
            self.blank_line(last_end, comment.start, Span { start: last_end, end: place });
            self.line_start();
            self.out.push_str(comment.text(self.src).trim_end());
            self.out.push('\n');
            last_end = comment.end;
            self.comments = &self.comments[1..];
        }
        last_end
    }

    /// The comment at the end of the line on which something ended.
    fn comment_beside(&mut self, end: u32) {
        let Some(comment) = self.comments.first() else { return };
        let between = self.src.get(end as usize..comment.start as usize).unwrap_or("\n");
        if between.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b';' | b',')) {
            self.out.push_str(if self.out.ends_with([' ', '\n']) { "" } else { " " });
            self.out.push_str(comment.text(self.src).trim_end());
            self.comments = &self.comments[1..];
        }
    }

    /// Keeps one blank line where the source has some, but not at the start of a block.
    fn blank_line(&mut self, from: u32, to: u32, within: Span) {
        let between = self.src.get(from as usize..to as usize).unwrap_or("");
        let first = from == within.start && !self.out.ends_with('\n');
        if between.matches('\n').count() > 1 && !first && !self.out.is_empty() && !self.out.ends_with("{\n") {
            self.out.push_str(if self.out.ends_with("\n\n") { "" } else { "\n" });
        }
    }

    /// Comments directly above a function are its text; others are kept apart from it.
    fn separate_from_comment(&mut self, stmt: &Stmt) {
        let crate::ast::StmtKind::Fn(decl) = &stmt.kind else { return };
        let last_line = self.out.trim_end_matches('\n').rsplit('\n').next().unwrap_or("");
        if decl.doc.is_none() && last_line.trim_start().starts_with('#') && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    fn line_start(&mut self) {
        for _ in 0..self.indent {
            self.out.push_str(INDENT);
        }
    }

    fn new_line(&mut self) {
        self.out.push('\n');
        self.line_start();
    }

    /// Copies source text; comments in it are printed with it.
    fn verbatim(&mut self, span: Span) {
        if self.comments.first().is_some_and(|comment| comment.start < span.start) {
            self.misplaced = true;
        }
        self.out.push_str(span.text(self.src));
        while self.comments.first().is_some_and(|comment| comment.start < span.end) {
            self.comments = &self.comments[1..];
        }
    }

    pub(super) fn has_comment_before(&self, place: u32) -> bool {
        self.comments.first().is_some_and(|comment| comment.start < place)
    }

    /// A block: on one line if it was and holds at most one statement, else a statement a line.
    fn block(&mut self, block: &Block) {
        if self.comments.first().is_some_and(|comment| comment.start < block.span.start) {
            self.misplaced = true;
        }
        let commented = self.has_comment_before(block.span.end);
        if block.stmts.is_empty() && !commented {
            self.out.push_str("{ }");
            return;
        }
        if !commented && !block.span.text(self.src).contains('\n') && self.one_line(block) {
            return;
        }
        self.out.push('{');
        self.comment_beside(block.span.start + 1);
        self.out.push('\n');
        self.indent += 1;
        self.statements(&block.stmts, Span { start: block.span.start + 1, end: block.span.end - 1 });
        self.indent -= 1;
        self.line_start();
        self.out.push('}');
    }

    fn one_line(&mut self, block: &Block) -> bool {
        let [stmt] = block.stmts.as_slice() else { return false };
        let length = self.out.len();
        self.out.push_str("{ ");
        self.stmt(stmt);
        self.out.push_str(" }");
        let fits = !self.out[length..].contains('\n');
        if !fits {
            self.out.truncate(length);
        }
        fits
    }

    /// Whether the source breaks the line between two places.
    fn broken(&self, from: u32, to: u32) -> bool {
        self.src.get(from as usize..to as usize).is_some_and(|text| text.contains('\n'))
    }
}

#[cfg(test)]
mod tests;
