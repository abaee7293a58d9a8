//! The input of one call to the bytes that are typed.

use shoal_proto::Text;
use shoal_proto::broker_ptyd::{Input, Refusal};

use crate::keys::{self, Modes};

const PASTE_BEGIN: &str = "\x1b[200~";
const PASTE_END: &str = "\x1b[201~";

/// All items in order, or the refusal of the first that cannot be typed.
pub(crate) fn encode(items: &[Input], paste: bool, modes: Modes) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    for item in items {
        match item {
            Input::Text(text) if paste && modes.bracketed_paste => {
                bytes.extend_from_slice(PASTE_BEGIN.as_bytes());
                bytes.extend_from_slice(without_end_marker(text).as_bytes());
                bytes.extend_from_slice(PASTE_END.as_bytes());
            }
            Input::Text(text) => bytes.extend_from_slice(text.as_bytes()),
            Input::Key(name) => {
                bytes.extend(keys::encode(name, modes).ok_or_else(|| Refusal::Key(Text::cut(name)))?);
            }
            Input::Raw(raw) => bytes.extend_from_slice(raw.as_slice()),
        }
    }
    Ok(bytes)
}

/// Text that cannot end its own paste, also not by markers that meet when one between them is taken out.
fn without_end_marker(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    for c in text.chars() {
        kept.push(c);
        if kept.ends_with(PASTE_END) {
            kept.truncate(kept.len().saturating_sub(PASTE_END.len()));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Input {
        Input::Text(Text::new(text).unwrap())
    }

    fn key(name: &str) -> Input {
        Input::Key(Text::new(name).unwrap())
    }

    #[test]
    fn items_are_typed_in_order() {
        let raw = Input::Raw(shoal_proto::Bytes::new([0xff, 0x00]).unwrap());
        let items = [text("ls"), key("Enter"), raw];
        assert_eq!(encode(&items, false, Modes::default()), Ok(b"ls\r\xff\x00".to_vec()));
    }

    #[test]
    fn one_unknown_key_refuses_all() {
        let refused = encode(&[text("ls"), key("Entre")], false, Modes::default());
        assert_eq!(refused, Err(Refusal::Key(Text::new("Entre").unwrap())));
    }

    #[test]
    fn a_paste_is_wrapped_when_the_mode_is_on() {
        let on = Modes { bracketed_paste: true, ..Modes::default() };
        let items = [text("a\nb"), key("Enter")];
        assert_eq!(encode(&items, true, on), Ok(b"\x1b[200~a\nb\x1b[201~\r".to_vec()));
        assert_eq!(encode(&items, true, Modes::default()), Ok(b"a\nb\r".to_vec()));
        assert_eq!(encode(&items, false, on), Ok(b"a\nb\r".to_vec()));
    }

    #[test]
    fn text_cannot_end_its_paste() {
        assert_eq!(without_end_marker("a\x1b[201~rm\n"), "arm\n");
        assert_eq!(without_end_marker("\x1b[20\x1b[201~1~x"), "x");
    }

    proptest::proptest! {
        #[test]
        fn no_marker_is_ever_left(parts in proptest::collection::vec("(\x1b|\\[|20|1|~|x|\x1b\\[201~)", 0..40)) {
            proptest::prop_assert!(!without_end_marker(&parts.concat()).contains(PASTE_END));
        }
    }
}
