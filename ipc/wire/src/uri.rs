//! The grammar of `shoal://` URIs.

use crate::limits::URI_BYTES;

/// What every URI of ours begins with.
pub const SCHEME: &str = "shoal://";

/// A parsed URI: the root, its segments, and its query in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    /// First segment, e.g. `out`.
    pub root: String,
    /// The rest, decoded, without empty ones.
    pub segments: Vec<String>,
    /// Keys as written, values decoded; of a repeated key the last remains.
    pub query: Vec<(String, String)>,
}

/// A text that is no URI of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadUri(pub String);

impl std::fmt::Display for BadUri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadUri {}

impl Uri {
    /// Parses `text`.
    pub fn parse(text: &str) -> Result<Uri, BadUri> {
        if text.len() > URI_BYTES {
            return Err(BadUri(format!("a URI has at most {URI_BYTES} bytes")));
        }
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| BadUri(format!("a URI here begins with `{SCHEME}`")))?;
        let (place, query) = match rest.split_once('?') {
            Some((place, query)) => (place, query),
            None => (rest, ""),
        };
        let mut segments =
            place.split('/').filter(|segment| !segment.is_empty()).map(unescape).collect::<Result<Vec<_>, _>>()?;
        if segments.is_empty() {
            return Err(BadUri(format!("`{SCHEME}` alone names nothing")));
        }
        let root = segments.remove(0);
        let mut pairs: Vec<(String, String)> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            pairs.retain(|(known, _)| known != key);
            pairs.push((key.to_owned(), unescape(value)?));
        }
        Ok(Uri { root, segments, query: pairs })
    }

    /// The value of a query key.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Escapes what a query value or segment cannot carry as it is.
    pub fn escape(text: &str) -> String {
        const HEX: &[u8; 16] = b"0123456789ABCDEF";
        let mut out = String::with_capacity(text.len());
        for byte in text.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~:,[]@!$'()*;".contains(&byte) {
                out.push(char::from(byte));
            } else {
                out.push('%');
                for nibble in [byte >> 4, byte & 0xf] {
                    out.push(char::from(HEX.get(usize::from(nibble)).copied().unwrap_or(b'0')));
                }
            }
        }
        out
    }
}

fn unescape(text: &str) -> Result<String, BadUri> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let pair = bytes.next().and_then(hex).zip(bytes.next().and_then(hex));
        let (high, low) = pair.ok_or_else(|| BadUri(format!("bad percent escape in `{text}`")))?;
        out.push((high << 4) | low);
    }
    String::from_utf8(out).map_err(|_| BadUri(format!("`{text}` does not decode to UTF-8")))
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn segments_and_query() {
        let uri = Uri::parse("shoal://task//7/log?stream=stderr&offset=-5&stream=both&x").unwrap();
        assert_eq!(
            (uri.root.as_str(), uri.segments.as_slice()),
            ("task", ["7".to_owned(), "log".to_owned()].as_slice())
        );
        assert_eq!(uri.value("stream"), Some("both"));
        assert_eq!(uri.value("offset"), Some("-5"));
        assert_eq!(uri.value("x"), Some(""));
        assert_eq!(uri.value("max"), None);
    }

    #[test]
    fn refuses_what_is_not_ours() {
        for bad in ["http://x", "shoal:/x", "shoal://", "shoal:///", "shoal://a%zz", "shoal://a?p=%ff", "shoal://a%2"] {
            assert!(Uri::parse(bad).is_err(), "{bad}");
        }
        assert!(Uri::parse(&format!("shoal://{}", "a".repeat(URI_BYTES))).is_err());
    }

    proptest! {
        #[test]
        fn escaped_values_are_read_back(value in ".{0,60}") {
            let uri = Uri::parse(&format!("shoal://out/1?path={}", Uri::escape(&value))).unwrap();
            prop_assert_eq!(uri.value("path"), Some(value.as_str()));
        }

        #[test]
        fn any_text_is_answered(text in "(shoal://)?[%a-z0-9/?&=]{0,40}") {
            drop(Uri::parse(&text));
        }
    }
}
