//! Compiled policy of a Shoal kernel: sections, judgement and explanation.
#![forbid(unsafe_code)]
