//! Syntax of the Shoal language: lexer, parser, tree, diagnostics, formatter, completion.
#![forbid(unsafe_code)]
