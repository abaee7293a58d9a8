//! Lines that canonical mode would cut.
//!
//! While the follower is in canonical mode the system keeps a line until it ends, up to a limit, and drops the rest
//! without a word. Such input is refused whole before any of it is written.

use shoal_sys::pty::LineMode;

/// Length of the line being typed, over the sends of one terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenLine {
    len: usize,
}

/// A line is longer than the terminal keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl OpenLine {
    /// The open line after `bytes`, unless a line on the way is longer than `max`.
    pub(crate) fn after(self, bytes: &[u8], mode: &LineMode, max: usize) -> Result<Self, TooLong> {
        if !mode.canonical {
            return Ok(Self::default());
        }
        let mut len = self.len;
        for byte in bytes {
            if *byte == b'\n'
                || (*byte == b'\r' && mode.cr_ends)
                || mode.ends.contains(byte)
                || mode.drops.contains(byte)
            {
                len = 0;
            } else if mode.erases.contains(byte) {
                len = len.saturating_sub(1);
            } else {
                len = len.saturating_add(1);
                if len > max {
                    return Err(TooLong);
                }
            }
        }
        Ok(Self { len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 10;

    fn canonical() -> LineMode {
        LineMode { canonical: true, cr_ends: true, ends: vec![4], drops: vec![3, 21], erases: vec![127] }
    }

    fn typed(sends: &[&[u8]], mode: &LineMode) -> Result<usize, TooLong> {
        let line = sends.iter().try_fold(OpenLine::default(), |line, bytes| line.after(bytes, mode, MAX))?;
        Ok(line.len)
    }

    #[test]
    fn a_line_of_the_limit_fits_and_one_more_does_not() {
        assert_eq!(typed(&[b"0123456789\n"], &canonical()), Ok(0));
        assert_eq!(typed(&[b"01234567890\n"], &canonical()), Err(TooLong));
        assert_eq!(typed(&[b"0123456789\r0123456789\x040123456789"], &canonical()), Ok(10));
    }

    #[test]
    fn a_line_typed_in_pieces_is_one_line() {
        assert_eq!(typed(&[b"01234", b"56789"], &canonical()), Ok(10));
        assert_eq!(typed(&[b"01234", b"567890"], &canonical()), Err(TooLong));
        assert_eq!(typed(&[b"01234", b"\x15", b"567890"], &canonical()), Ok(6));
        assert_eq!(typed(&[b"0123456789", b"\x7fx"], &canonical()), Ok(10));
    }

    #[test]
    fn a_return_that_is_no_line_end_counts() {
        let mode = LineMode { cr_ends: false, ..canonical() };
        assert_eq!(typed(&[b"01234\r56789"], &mode), Err(TooLong));
    }

    #[test]
    fn raw_mode_has_no_lines() {
        let raw = LineMode { canonical: false, ..canonical() };
        assert_eq!(typed(&[&[b'x'; 100]], &raw), Ok(0));
        assert_eq!(typed(&[b"0123456789"], &canonical()), Ok(10));
    }
}
