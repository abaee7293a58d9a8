//! Sets of value types.

use shoal_value::Value;

/// A set of value types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Types(u32);

macro_rules! types {
    ($($bit:literal $name:ident $variant:ident $text:literal;)*) => {
        impl Types {
            $(#[doc = concat!("Only `", $text, "`.")] pub const $name: Self = Self(1 << $bit);)*

            /// Number of types.
            pub const COUNT: usize = 1 + [$($bit),*].len();

            /// Number of the type of `value`, below [`Self::COUNT`].
            #[inline]
            pub fn index(value: &Value) -> usize {
                match value { $(Value::$variant(..) => $bit,)* Value::Null => 0 }
            }

            /// The type of this name.
            pub fn named(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$name),)* "null" => Some(Self::NULL), _ => None }
            }

            /// Names in order.
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                [(Self::NULL, "null"), $((Self::$name, $text)),*].into_iter().filter(move |(t, _)| self.meets(*t)).map(|(_, n)| n)
            }
        }
    };
}

types! {
    1 BOOL Bool "bool"; 2 INT Int "int"; 3 FLOAT Float "float"; 4 STR Str "str"; 5 PATH Path "path";
    6 GLOB Glob "glob"; 7 REGEX Regex "regex"; 8 SIZE Size "size"; 9 DURATION Duration "duration";
    10 DATETIME DateTime "datetime"; 11 TIME Time "time"; 12 BYTES Bytes "bytes"; 13 LIST List "list";
    14 RECORD Record "record"; 15 TABLE Table "table"; 16 RANGE Range "range"; 17 STREAM Stream "stream";
    18 CHANNEL Channel "channel"; 19 ERROR Error "error"; 20 OUTCOME Outcome "outcome"; 21 TASK Task "task";
    22 CLOSURE Closure "closure"; 23 COMMAND Command "command"; 24 SECRET Secret "secret";
}

impl Types {
    /// Only `null`.
    pub const NULL: Self = Self(1);
    /// Every type.
    pub const ANY: Self = Self((1 << 25) - 1);
    /// No type.
    pub const NONE: Self = Self(0);
    /// `list`, `table`, `range`.
    pub const COLLECTION: Self = Self::LIST.or(Self::TABLE).or(Self::RANGE);
    /// `int`, `float`.
    pub const NUMBER: Self = Self::INT.or(Self::FLOAT);

    /// Both sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The types of this set that `other` lacks.
    #[must_use]
    pub const fn but(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether the sets have a type in common.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The type of `value`.
    #[inline]
    pub fn of(value: &Value) -> Self {
        Self(1 << Self::index(value))
    }

    /// Whether `value` has one of these types.
    #[inline]
    pub fn has(self, value: &Value) -> bool {
        self.0 & (1 << Self::index(value)) != 0
    }

    /// Whether the type with this number is in the set.
    pub const fn has_index(self, index: usize) -> bool {
        self.0 & (1 << index) != 0
    }

    /// `int`, `int or float`, `str, path or glob`: for messages.
    pub fn text(self) -> String {
        if self == Self::ANY {
            return "any".to_owned();
        }
        let names: Vec<_> = self.names().collect();
        match names.split_last() {
            None => "nothing".to_owned(),
            Some((last, [])) => (*last).to_owned(),
            Some((last, init)) => format!("{} or {last}", init.join(", ")),
        }
    }
}
