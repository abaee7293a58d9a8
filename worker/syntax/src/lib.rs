//! Syntax of the Shoal language: lexer, parser, tree, diagnostics, formatter, completion.
//!
//! Everything here is a pure function of its arguments. [`parse`] never fails in another way than by diagnostics.
#![forbid(unsafe_code)]

pub mod ast;
mod complete;
mod describe;
mod diag;
mod format;
mod lex;
mod names;
pub mod nesting;
mod parser;
pub mod tree_json;
pub mod vocab;

pub use complete::{Completion, Wanted, complete};
pub use describe::{Description, describe};
pub use diag::{Diag, Note, PARSE_ERROR, TOO_LARGE, line_col};
pub use format::format;
pub use names::{Names, module_name};

use ast::{Program, Span};

/// The longest source text, in bytes.
pub const MAX_SOURCE: usize = 16 * 1024 * 1024;
/// How deep brackets, blocks and expressions may nest.
pub const MAX_NESTING: usize = 500;

/// The result of reading a source text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parsed {
    /// The statements that could be read; complete exactly if there are no diagnostics.
    pub program: Program,
    /// The mistakes, in source order. A program with any must not be run.
    pub diags: Vec<Diag>,
    /// Remarks about valid but doubtful text.
    pub notes: Vec<Note>,
    /// The comments, from `#` to the end of the line.
    pub comments: Vec<Span>,
}

/// Reads a source text with the names that are known before it.
pub fn parse(src: &str, names: &Names) -> Parsed {
    if src.len() > MAX_SOURCE {
        let diag = Diag { code: TOO_LARGE, ..Diag::new(0..src.len(), "source text is larger than 16 MiB") };
        return Parsed { diags: vec![diag], ..Parsed::default() };
    }
    parser::program(src, names)
}

/// Reads a source text given as bytes, as from a file. Bytes that are not UTF-8 are a diagnostic.
pub fn parse_bytes(src: &[u8], names: &Names) -> Parsed {
    match std::str::from_utf8(src) {
        Ok(src) => parse(src, names),
        Err(error) => {
            let start = error.valid_up_to();
            let end = start + error.error_len().unwrap_or(src.len() - start);
            let diag = Diag::new(start..end, "source text is not UTF-8").hint("save the file as UTF-8");
            Parsed { diags: vec![diag], ..Parsed::default() }
        }
    }
}
