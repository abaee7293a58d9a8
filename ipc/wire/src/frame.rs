//! Cutting a byte stream into frames: lines that end in LF, counted while they are read.
//!
//! The reader holds at most one unfinished frame and never more than its cap. What passes the cap is reported once and
//! then dropped up to the end of its line, so a caller may hang up (the kernel) or go on (the facade).

use memchr::memchr;

/// What a feed brought.
#[derive(Debug, PartialEq, Eq)]
pub enum Fed {
    /// A whole frame, without its LF and without one CR before it.
    Frame(Vec<u8>),
    /// The frame in progress passed the cap; reported once per frame.
    TooLong,
    /// All input is taken and no frame is complete.
    NeedMore,
}

/// An incremental frame reader. Feed it slices in order; it takes from the front of each.
#[derive(Debug)]
pub struct FrameReader {
    cap: usize,
    held: Vec<u8>,
    dropping: bool,
}

impl FrameReader {
    /// A reader of frames of at most `cap` bytes including the LF.
    pub fn new(cap: usize) -> FrameReader {
        FrameReader { cap, held: Vec::new(), dropping: false }
    }

    /// Takes bytes from the front of `input` until a frame is complete or `input` is empty.
    pub fn feed(&mut self, input: &mut &[u8]) -> Fed {
        loop {
            let newline = memchr(b'\n', input);
            let (part, rest) = match newline.and_then(|at| input.split_at_checked(at)) {
                Some((part, rest)) => (part, rest.get(1..)),
                None => (*input, None),
            };
            *input = rest.unwrap_or_default();
            let ended = rest.is_some();
            if self.dropping {
                self.dropping = !ended;
                if ended {
                    continue;
                }
                return Fed::NeedMore;
            }
            if self.held.len().saturating_add(part.len()).saturating_add(usize::from(ended)) > self.cap {
                self.held = Vec::new();
                self.dropping = !ended;
                return Fed::TooLong;
            }
            self.held.extend_from_slice(part);
            if ended {
                return Fed::Frame(trim_cr(std::mem::take(&mut self.held)));
            }
            return Fed::NeedMore;
        }
    }

    /// Whether a frame has been started and not finished.
    pub fn is_partial(&self) -> bool {
        self.dropping || !self.held.is_empty()
    }

    /// At the end of the stream: a last line that had no LF.
    pub fn finish(&mut self) -> Option<Vec<u8>> {
        let held = std::mem::take(&mut self.held);
        (!held.is_empty() && !self.dropping).then(|| trim_cr(held))
    }
}

fn trim_cr(mut frame: Vec<u8>) -> Vec<u8> {
    if frame.last() == Some(&b'\r') {
        frame.pop();
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(reader: &mut FrameReader, mut input: &[u8]) -> Vec<Fed> {
        let mut fed = Vec::new();
        loop {
            match reader.feed(&mut input) {
                Fed::NeedMore => return fed,
                other => fed.push(other),
            }
        }
    }

    fn frame(text: &str) -> Fed {
        Fed::Frame(text.as_bytes().to_vec())
    }

    #[test]
    fn cap_counts_the_newline() {
        let mut reader = FrameReader::new(4);
        assert_eq!(all(&mut reader, b"abc\n"), [frame("abc")]);
        assert_eq!(all(&mut reader, b"abcd\nx\n"), [Fed::TooLong, frame("x")]);
        assert_eq!(all(&mut reader, b"abcde"), [Fed::TooLong]);
        assert!(reader.is_partial());
        assert_eq!(all(&mut reader, b"fgh\r\nok\r\n"), [frame("ok")]);
    }

    #[test]
    fn the_last_line_may_lack_its_newline() {
        let mut reader = FrameReader::new(100);
        assert_eq!(all(&mut reader, b"a\nlast\r"), [frame("a")]);
        assert_eq!(reader.finish(), Some(b"last".to_vec()));
        assert_eq!(reader.finish(), None);
    }

    proptest! {
        #[test]
        fn splits_do_not_matter(lines in prop::collection::vec("[a-z\r]{0,12}", 0..8), cut in 1usize..7) {
            let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            let whole = all(&mut FrameReader::new(10), text.as_bytes());
            let mut reader = FrameReader::new(10);
            let pieces: Vec<Fed> = text.as_bytes().chunks(cut).flat_map(|piece| all(&mut reader, piece)).collect();
            prop_assert_eq!(whole, pieces);
        }

        #[test]
        fn never_holds_more_than_the_cap(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20)) {
            let mut reader = FrameReader::new(64);
            for chunk in &chunks {
                all(&mut reader, chunk);
                prop_assert!(reader.held.len() <= 64);
            }
        }
    }
}
