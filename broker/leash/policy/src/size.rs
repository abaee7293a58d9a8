//! Sizes as bytes or text with a binary unit: `2gib`.

/// Reads `"2gib"`; units are `b`, `kib`, `mib`, `gib`, `tib` in any case.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim() {
        "b" => 0,
        "kib" => 10,
        "mib" => 20,
        "gib" => 30,
        "tib" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse("2gib"), Some(2 << 30));
        assert_eq!(parse("256 MiB"), Some(256 << 20));
        assert_eq!(parse("7"), None);
        assert_eq!(parse("2gb"), None);
        assert_eq!(parse("99999999999tib"), None);
    }
}
