//! Text of values for readers: the inline form (one line) and the block form.
//!
//! Invariant: no text made here holds a control character of a value, except newline and tab in block text and whatever a
//! str holds in the inline form, which programs compare. Colour is added only when asked for.

mod block;
mod bound;
mod columns;
mod inline;
#[cfg(test)]
mod tests;
mod text;

pub use block::{Style, block, block_within};
pub use bound::{head_lines, tail_lines};
pub use inline::{inline, inline_within, interpolate};
pub use text::escape_controls;

/// The text did not fit its budget; what fitted is kept.
#[derive(Debug)]
struct Full;

/// Text with a budget of bytes. Nothing is added beyond it, and characters stay whole.
struct Budgeted {
    text: String,
    left: usize,
}

impl Budgeted {
    fn new(budget: usize) -> Self {
        Self { text: String::new(), left: budget }
    }

    fn push(&mut self, part: &str) -> Result<(), Full> {
        if part.len() <= self.left {
            self.text.push_str(part);
            self.left -= part.len();
            return Ok(());
        }
        self.text.push_str(&part[..part.floor_char_boundary(self.left)]);
        self.left = 0;
        Err(Full)
    }

    fn push_char(&mut self, c: char) -> Result<(), Full> {
        self.push(c.encode_utf8(&mut [0; 4]))
    }
}
