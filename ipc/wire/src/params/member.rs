//! The types members can have, each reading itself from its JSON text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::{Reason, RpcError};
use crate::refs::is_hex;

/// A type that a member of parameters can have.
pub trait Member: Sized {
    /// Reads `text`, which is one JSON value and not `null`; `param` names it in errors.
    fn read(param: &str, text: &str) -> Result<Self, RpcError>;
}

fn plain<'a, T: Deserialize<'a>>(param: &str, text: &'a str, expected: &str) -> Result<T, RpcError> {
    serde_json::from_str(text).map_err(|_| RpcError::mistyped(param, expected))
}

impl Member for String {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        plain(param, text, "a string")
    }
}

impl Member for bool {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        plain(param, text, "true or false")
    }
}

impl Member for Value {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        plain(param, text, "JSON")
    }
}

impl Member for Box<RawValue> {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        plain(param, text, "JSON")
    }
}

/// An integer as written: no fraction, no exponent.
fn integer(param: &str, text: &str, expected: &str) -> Result<i128, RpcError> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(RpcError::mistyped(param, expected));
    }
    text.parse().map_err(|_| RpcError::out_of_range(param, expected))
}

impl Member for i64 {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        let expected = "an integer";
        integer(param, text, expected)?.try_into().map_err(|_| RpcError::out_of_range(param, expected))
    }
}

impl Member for u64 {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        let expected = "an integer of at least 0";
        integer(param, text, expected)?.try_into().map_err(|_| RpcError::out_of_range(param, expected))
    }
}

/// An integer from `LOW` to `HIGH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Int<const LOW: i64, const HIGH: i64>(i64);

impl<const LOW: i64, const HIGH: i64> Int<LOW, HIGH> {
    /// The number, clamped into the range.
    pub fn clamped(number: i64) -> Self {
        Int(number.clamp(LOW, HIGH))
    }

    /// The number.
    pub fn value(self) -> i64 {
        self.0
    }

    /// The number where the range holds no negative one.
    pub fn unsigned(self) -> u64 {
        self.0.unsigned_abs()
    }
}

impl<const LOW: i64, const HIGH: i64> Member for Int<LOW, HIGH> {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        let between = || format!("an integer from {LOW} to {HIGH}");
        let expected = if HIGH == i64::MAX { format!("an integer of at least {LOW}") } else { between() };
        let number = integer(param, text, &expected)?;
        match i64::try_from(number) {
            Ok(number) if (LOW..=HIGH).contains(&number) => Ok(Int(number)),
            Ok(_) => Err(RpcError::out_of_range(param, &expected)),
            // Only a number beyond every range is told where the range ends.
            Err(_) => Err(RpcError::out_of_range(param, &between())),
        }
    }
}

/// A string of `LOW` to `HIGH` bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<const LOW: usize, const HIGH: usize>(String);

impl<const LOW: usize, const HIGH: usize> Text<LOW, HIGH> {
    /// The string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The string itself.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl<const LOW: usize, const HIGH: usize> Member for Text<LOW, HIGH> {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        let text = String::read(param, text)?;
        if (LOW..=HIGH).contains(&text.len()) {
            return Ok(Text(text));
        }
        let expected = match LOW {
            0 => format!("a string of at most {HIGH} bytes"),
            _ => format!("a string of {LOW} to {HIGH} bytes"),
        };
        Err(RpcError::out_of_range(param, &expected))
    }
}

/// A session name, as [`shoal_place::is_session_name`] takes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct SessionName(String);

impl SessionName {
    /// Checks a name.
    pub fn new(name: impl Into<String>) -> Option<SessionName> {
        let name = name.into();
        shoal_place::is_session_name(&name).then_some(SessionName(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Member for SessionName {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        SessionName::new(String::read(param, text)?)
            .ok_or_else(|| RpcError::out_of_range(param, shoal_place::NAME_RULE))
    }
}

/// A watch name: 1 to 64 characters of `[A-Za-z0-9._-]`; `restore` is reserved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WatchName(String);

impl WatchName {
    /// Checks a name.
    pub fn new(name: impl Into<String>) -> Option<WatchName> {
        let name = name.into();
        let good = (1..=64).contains(&name.len())
            && name != "restore"
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        good.then_some(WatchName(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Member for WatchName {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        WatchName::new(String::read(param, text)?)
            .ok_or_else(|| RpcError::out_of_range(param, "1 to 64 characters of A-Z a-z 0-9 . _ - and not `restore`"))
    }
}

/// A BLAKE3 digest: 64 lowercase hex digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Hash(String);

impl Hash {
    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Member for Hash {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        let digits = String::read(param, text)?;
        if is_hex(&digits, 64) {
            return Ok(Hash(digits));
        }
        Err(RpcError::invalid(param, Reason::Syntax, format!("`{param}` must be 64 lowercase hex digits"))
            .and("expected", "64 lowercase hex digits"))
    }
}

impl<T: Member> Member for Vec<T> {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        let items: Vec<&RawValue> = plain(param, text, "an array")?;
        items.iter().enumerate().map(|(at, item)| T::read(&format!("{param}[{at}]"), item.get())).collect()
    }
}

impl Member for BTreeMap<String, String> {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        plain(param, text, "an object of strings")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_whole_and_within_range() {
        assert_eq!(i64::read("p", "-5"), Ok(-5));
        assert_eq!(u64::read("p", "18446744073709551615"), Ok(u64::MAX));
        for (text, reason) in [("-1", "range"), ("1e3", "type"), ("1.0", "type"), ("\"1\"", "type")] {
            assert_eq!(u64::read("p", text).unwrap_err().reason(), Some(reason), "{text}");
        }
        let huge = "9".repeat(100);
        assert_eq!(i64::read("p", &huge).unwrap_err().reason(), Some("range"));
        assert!(Int::<1, 5>::read("p", "6").is_err());
        let beyond = Int::<0, { i64::MAX }>::read("p", "18446744073709551615").unwrap_err();
        assert_eq!(beyond.message, "`p` must be an integer from 0 to 9223372036854775807");
        assert_eq!(Int::<1, 5>::read("p", "5").map(Int::value), Ok(5));
    }

    #[test]
    fn names() {
        assert!(SessionName::new("déjà vu").is_some());
        for bad in ["", ".x", "a/b", "a\nb", "a\u{202e}b"] {
            assert!(SessionName::new(bad).is_none(), "{bad:?}");
        }
        assert!(SessionName::new("x".repeat(65)).is_none());
        assert!(WatchName::new("a.b-c_9").is_some());
        assert!(WatchName::new("restore").is_none() && WatchName::new("a b").is_none());
    }

    #[test]
    fn items_are_named_by_their_place() {
        let error = Vec::<String>::read("args", "[\"a\", 1]").unwrap_err();
        assert_eq!(error.data.unwrap()["param"], "args[1]");
    }
}
