//! Parameters of every method: one struct each, decoded strictly.
//!
//! A member a method does not define is refused and the nearest known name given; a member of another type or outside
//! its range is refused with what is expected. `null` counts as absence. Decoding reads each member from its own text,
//! so nothing is built for members that are refused.

pub mod admin;
pub mod event;
pub mod exec;
pub mod journal;
mod member;
pub mod plan;
pub mod pty;
pub mod session;
pub mod task;
pub mod value;
pub mod watch;

use std::borrow::Cow;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

pub use member::{Hash, Int, Member, SessionName, Text, WatchName};

use crate::error::{Reason, RpcError};
use crate::nearest::nearest;

/// Parameters of one method, or an object inside them.
pub trait Params: Sized {
    /// Every member there can be.
    const MEMBERS: &'static [&'static str];

    /// Takes its members out of `members`; what is left over is unknown.
    fn take(members: &mut Members<'_>) -> Result<Self, RpcError>;
}

/// Decodes the parameters of a request; `None` equals `{}`.
pub fn decode<P: Params>(params: Option<&RawValue>) -> Result<P, RpcError> {
    decode_object("params", "", params.map(RawValue::get))
}

/// Decodes an object whose members are named `prefix` + name in errors.
fn decode_object<P: Params>(name: &str, prefix: &str, text: Option<&str>) -> Result<P, RpcError> {
    let members = match text {
        None => Vec::new(),
        Some(text) => serde_json::from_str::<Object<'_>>(text).map_err(|_| RpcError::mistyped(name, "an object"))?.0,
    };
    let mut members = Members { prefix, members };
    if let Some((unknown, _)) = members.members.iter().find(|(name, _)| !P::MEMBERS.contains(&name.as_ref())) {
        return Err(RpcError::unknown_member(&format!("{prefix}{unknown}"), nearest(unknown, P::MEMBERS)));
    }
    P::take(&mut members)
}

/// The members of an object, still as text.
pub struct Members<'a> {
    prefix: &'a str,
    members: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Members<'a> {
    fn find(&self, name: &str) -> Option<&'a str> {
        // Of a repeated member the last one counts, as in every common JSON reader.
        let found = self.members.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, text)| text.get()).filter(|text| *text != "null")
    }

    /// A member that must be there.
    pub fn required<T: Member>(&mut self, name: &str) -> Result<T, RpcError> {
        self.optional(name)?.ok_or_else(|| RpcError::missing(&format!("{}{name}", self.prefix)))
    }

    /// A member that may be absent or `null`.
    pub fn optional<T: Member>(&mut self, name: &str) -> Result<Option<T>, RpcError> {
        self.find(name).map(|text| T::read(&format!("{}{name}", self.prefix), text)).transpose()
    }

    /// A member that must be there and may be `null`, as it was written.
    pub fn verbatim(&mut self, name: &str) -> Result<Box<RawValue>, RpcError> {
        let found = self.members.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| RpcError::missing(&format!("{}{name}", self.prefix)))
    }

    /// A member that stands for the same thing as another one; different values of the two conflict.
    pub fn aliased<T: Member + PartialEq>(&mut self, name: &str, alias: &str) -> Result<Option<T>, RpcError> {
        let (first, second) = (self.optional::<T>(name)?, self.optional::<T>(alias)?);
        if first.is_some() && second.is_some() && first != second {
            let message = format!("`{name}` and `{alias}` are one member and have different values");
            return Err(RpcError::invalid(alias, Reason::Conflict, message));
        }
        Ok(first.or(second))
    }
}

struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Seen;
        impl<'de> Visitor<'de> for Seen {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(name) = map.next_key::<Name<'de>>()? {
                    members.push((name.0, map.next_value()?));
                }
                Ok(members)
            }
        }
        input.deserialize_map(Seen).map(Object)
    }
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Defines a parameter struct: `req` members must be there, `opt` ones may be, `def` ones have a default.
macro_rules! params {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $need:ident $field:ident : $ty:ty $(= $default:expr)?,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $($(#[$doc])* pub $field: $crate::params::params!(@type $need $ty),)* }

        impl $crate::params::Params for $name {
            const MEMBERS: &'static [&'static str] = &[$($crate::params::member_name(stringify!($field))),*];

            fn take(
                #[allow(unused_variables, reason = "a method without members takes none")]
                members: &mut $crate::params::Members<'_>,
            ) -> Result<Self, $crate::error::RpcError> {
                Ok(Self { $($field: $crate::params::params!(@take $need members $field $ty $(= $default)?),)* })
            }
        }

        impl $crate::params::Member for $name {
            fn read(param: &str, text: &str) -> Result<Self, $crate::error::RpcError> {
                $crate::params::decode_nested(param, text)
            }
        }
    };
    (@type req $ty:ty) => { $ty };
    (@type opt $ty:ty) => { Option<$ty> };
    (@type def $ty:ty) => { $ty };
    (@take req $members:ident $field:ident $ty:ty) => { $members.required::<$ty>($crate::params::member_name(stringify!($field)))? };
    (@take opt $members:ident $field:ident $ty:ty) => { $members.optional::<$ty>($crate::params::member_name(stringify!($field)))? };
    (@take def $members:ident $field:ident $ty:ty = $default:expr) => {
        $members.optional::<$ty>($crate::params::member_name(stringify!($field)))?.unwrap_or_else(|| $default)
    };
}

/// Defines an enum whose members are words on the wire.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// The word on the wire.
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }

        impl $crate::params::Member for $name {
            fn read(param: &str, text: &str) -> Result<Self, $crate::error::RpcError> {
                let word = <String as $crate::params::Member>::read(param, text)?;
                match word.as_str() {
                    $($word => Ok($name::$variant),)*
                    _ => Err($crate::params::no_such_word(param, &word, &[$($word),*])),
                }
            }
        }
    };
}

pub(crate) use {params, words};

/// The wire name of a field: `ref_` stands for `ref`, which is no field name in Rust.
pub(crate) const fn member_name(field: &'static str) -> &'static str {
    match field.as_bytes().split_last() {
        Some((b'_', _)) => field.split_at(field.len().saturating_sub(1)).0,
        _ => field,
    }
}

/// Decodes an object that is itself a member.
pub(crate) fn decode_nested<P: Params>(param: &str, text: &str) -> Result<P, RpcError> {
    decode_object(param, &format!("{param}."), Some(text))
}

pub(crate) fn no_such_word(param: &str, given: &str, words: &[&str]) -> RpcError {
    let expected = format!("one of {}", words.join(", "));
    let error = RpcError::out_of_range(param, &expected);
    match nearest(given, words) {
        Some(word) => error.and("nearest", word),
        None => error,
    }
}

params! {
    /// No members.
    #[derive(Eq)]
    Empty {}
}

#[cfg(test)]
mod tests {
    use super::exec::{Exec, Mode, Position};
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read<P: Params>(value: serde_json::Value) -> Result<P, RpcError> {
        let raw = RawValue::from_string(value.to_string()).unwrap();
        decode(Some(&raw))
    }

    fn refused(value: serde_json::Value) -> serde_json::Value {
        let error = read::<Exec>(value).unwrap_err();
        assert_eq!(error.code, -32602);
        error.data.unwrap()
    }

    #[test]
    fn exec_defaults() {
        let exec: Exec = read(json!({"src": "6*7", "timeout_ms": null})).unwrap();
        assert_eq!((exec.mode, exec.position, exec.background), (Mode::Run, Position::Stmt, false));
        assert_eq!(exec.timeout_ms, None);
    }

    #[test]
    fn refusals_say_what_and_what_is_valid() {
        assert_eq!(
            refused(json!({"src": "1", "timeout": 5})),
            json!({"param": "timeout", "reason": "unknown_member", "nearest": "timeout_ms"})
        );
        assert_eq!(refused(json!({})), json!({"param": "src", "reason": "missing"}));
        assert_eq!(refused(json!({"src": 1}))["reason"], "type");
        assert_eq!(refused(json!({"src": "1", "position": "val"}))["nearest"], "value");
        assert_eq!(refused(json!({"src": "1", "timeout_ms": -1}))["reason"], "range");
        assert_eq!(refused(json!({"src": "1", "timeout_ms": 1.5}))["reason"], "type");
        assert_eq!(refused(json!({"src": "1", "deadline_ms": 0}))["expected"], "an integer from 1 to 86400000");
        assert_eq!(refused(json!({"src": "1", "key": ""}))["reason"], "range");
        assert_eq!(refused(json!({"src": "1", "async": true, "background": false}))["reason"], "conflict");
        assert_eq!(
            refused(json!({"src": "1", "elide": {"max_row": 1}})),
            json!({"param": "elide.max_row", "reason": "unknown_member", "nearest": "max_rows"})
        );
        assert_eq!(refused(json!([]))["param"], "params");
    }

    #[test]
    fn absent_params_equal_an_empty_object() {
        assert_eq!(decode::<Empty>(None), Ok(Empty {}));
        assert_eq!(read::<Empty>(json!({})), Ok(Empty {}));
        assert!(read::<Empty>(json!({"x": 1})).is_err());
    }

    proptest! {
        #[test]
        fn unknown_members_are_always_refused(name in "[a-z_]{1,12}") {
            prop_assume!(!Exec::MEMBERS.contains(&name.as_str()));
            let refusal = refused(json!({"src": "1", name.as_str(): null}));
            prop_assert_eq!(&refusal["param"], &json!(name));
        }
    }
}
