//! Terminal methods.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::value::Slice;
use super::{Int, Member, Text, params, words};
use crate::error::{Reason, RpcError};
use crate::limits;

/// A side of a terminal as asked for; it is clamped to 1..=1000 where it is used.
pub type Side = Int<0, 65_535>;

/// The size a terminal gets for what was asked.
pub fn clamp_side(asked: Side) -> u16 {
    u16::try_from(asked.value().clamp(1, limits::PTY_SIDE)).unwrap_or(1)
}

params! {
    /// `pty.open`.
    #[derive(Eq)]
    PtyOpen {
        /// Program.
        req cmd: Text<1, 4096>,
        /// Its arguments.
        def args: Vec<String> = Vec::new(),
        /// Columns.
        def cols: Side = Int::clamped(80),
        /// Rows.
        def rows: Side = Int::clamped(24),
        /// Variables laid over the session's.
        def env: BTreeMap<String, String> = BTreeMap::new(),
    }
}

/// One piece of terminal input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Text as it is; `paste` may wrap it.
    Text(String),
    /// A named key.
    Key(String),
    /// Bytes as they are.
    Bytes(Vec<u8>),
}

/// The input of `pty.send`, flattened in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inputs(pub Vec<Input>);

impl Member for Inputs {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        let mut pieces = Vec::new();
        flatten(param, Value::read(param, text)?, 0, &mut pieces)?;
        Ok(Inputs(pieces))
    }
}

const INPUT: &str = "a string, {\"text\"}, {\"key\"}, {\"bytes\"}, or an array of these";

fn flatten(param: &str, value: Value, depth: usize, pieces: &mut Vec<Input>) -> Result<(), RpcError> {
    match value {
        Value::String(text) => pieces.push(Input::Text(text)),
        Value::Array(_) if depth >= limits::PTY_INPUT_DEPTH => {
            return Err(RpcError::out_of_range(param, "arrays nested at most 4 deep"));
        }
        Value::Array(items) => {
            for (at, item) in items.into_iter().enumerate() {
                flatten(&format!("{param}[{at}]"), item, depth.saturating_add(1), pieces)?;
            }
        }
        Value::Object(members) => pieces.push(piece(param, members)?),
        _ => return Err(RpcError::mistyped(param, INPUT)),
    }
    Ok(())
}

fn piece(param: &str, members: serde_json::Map<String, Value>) -> Result<Input, RpcError> {
    let mut members = members.into_iter();
    match (members.next(), members.next()) {
        (Some((name, Value::String(text))), None) => match name.as_str() {
            "text" => Ok(Input::Text(text)),
            "key" => Ok(Input::Key(text)),
            "bytes" => STANDARD.decode(&text).map(Input::Bytes).map_err(|_| {
                RpcError::invalid(&format!("{param}.bytes"), Reason::Syntax, "`bytes` must be padded base64")
            }),
            other => Err(RpcError::unknown_member(
                &format!("{param}.{other}"),
                crate::nearest::nearest(other, &["text", "key", "bytes"]),
            )),
        },
        _ => Err(RpcError::mistyped(param, INPUT)),
    }
}

params! {
    /// `pty.send`.
    #[derive(Eq)]
    PtySend {
        /// `pty:N`.
        req pty_id: String,
        /// What to type.
        req input: Inputs,
        /// Whether text is a paste.
        def paste: bool = false,
    }
}

params! {
    /// What `pty.read` waits for: any one of its conditions.
    #[derive(Eq)]
    Wait {
        /// Text on the screen.
        opt text: Text<0, 1024>,
        /// Pattern on the screen.
        opt regex: Text<0, 1024>,
        /// No output for this long.
        opt quiet_ms: Int<10, { limits::PTY_WAIT_MS }>,
        /// The child's end.
        def exit: bool = false,
        /// Longest wait.
        req timeout_ms: Int<0, { limits::PTY_WAIT_MS }>,
    }
}

params! {
    /// `pty.read`.
    #[derive(Eq)]
    PtyRead {
        /// `pty:N`.
        req pty_id: String,
        /// Conditions to wait for.
        opt wait: Wait,
        /// Lines of scrollback, `start` up to `end` counted from the oldest kept.
        opt scrollback: Slice,
        /// The screen as escape sequences besides, for a person's own terminal.
        def formatted: bool = false,
    }
}

params! {
    /// `pty.resize`.
    #[derive(Eq)]
    PtyResize {
        /// `pty:N`.
        req pty_id: String,
        /// Columns.
        req cols: Side,
        /// Rows.
        req rows: Side,
    }
}

words! {
    /// What the human does with a terminal.
    PtyAction {
        /// Only the taker may type.
        Take = "take",
        /// Everybody may again.
        Release = "release",
    }
}

params! {
    /// `pty.control`.
    #[derive(Eq)]
    PtyControl {
        /// `pty:N`.
        req pty_id: String,
        /// Take or release.
        req action: PtyAction,
        /// Whether what is typed is kept.
        def record: bool = false,
    }
}

params! {
    /// `pty.close`.
    #[derive(Eq)]
    PtyPick {
        /// `pty:N`.
        req pty_id: String,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_flattened_in_order() {
        let read = Inputs::read("input", r#"["hello",{"key":"Enter"},[[{"bytes":"aGk="}],{"text":"x"}]]"#).unwrap();
        let text = |text: &str| Input::Text(text.to_owned());
        let expected = vec![text("hello"), Input::Key("Enter".into()), Input::Bytes(b"hi".to_vec()), text("x")];
        assert_eq!(read.0, expected);
    }

    #[test]
    fn one_bad_item_fails_the_whole() {
        for bad in ["1", "[1]", "{}", r#"{"text":1}"#, r#"{"text":"a","key":"b"}"#, r#"{"bytes":"%"}"#, "[[[[[]]]]]"] {
            assert_eq!(Inputs::read("input", bad).unwrap_err().code, -32602, "{bad}");
        }
        let nearest = Inputs::read("input", r#"[{"txt":"a"}]"#).unwrap_err().data.unwrap();
        assert_eq!((&nearest["param"], &nearest["nearest"]), (&"input[0].txt".into(), &"text".into()));
    }
}
