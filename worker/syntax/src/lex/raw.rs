//! Looking ahead over raw text: where a quoted string, a group or a raw block ends. Only quotes and brackets count.

/// The end of the quoted string whose opening quote is at `at`. `"` has backslash escapes, `'` has none; both may span
/// lines here. None if it does not end.
pub(crate) fn quoted_end(src: &str, at: usize) -> Option<usize> {
    let bytes = src.as_bytes();
    let quote = *bytes.get(at)?;
    let mut i = at + 1;
    while let Some(&byte) = bytes.get(i) {
        match byte {
            b'\\' if quote == b'"' => i += 2,
            _ if byte == quote => return Some(i + 1),
            _ => i += 1,
        }
    }
    None
}

/// The end of the braces whose opening `{` is at `at`, quoted strings skipped. None if they do not balance.
pub(crate) fn brace_end(src: &str, at: usize) -> Option<usize> {
    end(src, at, |byte| match byte {
        b'{' => 1,
        b'}' => -1,
        _ => 0,
    })
}

/// The end of the brackets of any kind whose opening one is at `at`, quoted strings skipped. None if they do not
/// balance.
pub(crate) fn balanced_end(src: &str, at: usize) -> Option<usize> {
    end(src, at, |byte| match byte {
        b'{' | b'(' | b'[' => 1,
        b'}' | b')' | b']' => -1,
        _ => 0,
    })
}

fn end(src: &str, at: usize, step: impl Fn(u8) -> i64) -> Option<usize> {
    let bytes = src.as_bytes();
    let mut open = 0;
    let mut i = at;
    while let Some(&byte) = bytes.get(i) {
        if matches!(byte, b'"' | b'\'') {
            i = quoted_end(src, i)?;
            continue;
        }
        open += step(byte);
        i += 1;
        if open == 0 {
            return Some(i);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_quotes_do_not_count() {
        assert_eq!(brace_end("{ \"}\" '}' }x", 0), Some(11));
        assert_eq!(balanced_end("(a[b] '(')x", 0), Some(10));
        assert_eq!(quoted_end(r#""a\"b"c"#, 0), Some(6));
    }

    #[test]
    fn open_text_has_no_end() {
        assert_eq!(brace_end("{ { }", 0), None);
        assert_eq!(brace_end("{ ' }", 0), None);
        assert_eq!(quoted_end("\"abc\\", 0), None);
    }
}
