//! Annotations: what a parameter, variable or function accepts.

use shoal_value::{List, PathValue, Value};

use crate::registry::Types;

/// An annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Type {
    pub(crate) types: Types,
    /// Type of the items of a `list<T>`.
    pub(crate) item: Option<Box<Type>>,
    pub(crate) nullable: bool,
}

impl Type {
    pub(crate) fn any() -> Self {
        Self { types: Types::ANY, item: None, nullable: true }
    }

    pub(crate) fn is_any(&self) -> bool {
        self.types == Types::ANY
    }

    /// Name of the type a word is coerced to.
    pub(crate) fn word_type(&self) -> &'static str {
        if self.is_any() { "any" } else { self.types.names().next().unwrap_or("any") }
    }

    /// `list<int>?`, as written.
    pub(crate) fn text(&self) -> String {
        let mut text = if self.is_any() { "any".to_owned() } else { self.types.text() };
        if let Some(item) = &self.item {
            text = format!("{text}<{}>", item.text());
        }
        if self.nullable && !self.is_any() {
            text.push('?');
        }
        text
    }

    /// The value as this type: unchanged, or converted where the language accepts a difference. `Err` is the value that
    /// does not fit, or the error of a conversion.
    pub(crate) fn admit(&self, value: Value) -> Result<Value, Misfit> {
        if self.is_any() || value.is_null() && self.nullable {
            return Ok(value);
        }
        if self.types.has(&value) {
            return match (&self.item, value) {
                (Some(item), Value::List(list)) => admit_items(item, list),
                (_, value) => Ok(value),
            };
        }
        if let Value::Table(table) = &value
            && self.types.meets(Types::LIST)
        {
            return match &self.item {
                Some(item) => admit_items(item, table.to_list()),
                None => Ok(Value::List(table.to_list())),
            };
        }
        match value {
            #[allow(clippy::cast_precision_loss, reason = "the language converts an int to the nearest float")]
            Value::Int(n) if self.types.meets(Types::FLOAT) => Ok(Value::Float(n as f64)),
            Value::Str(text) if self.types.meets(Types::PATH) => Ok(Value::Path(PathValue::from(&*text))),
            Value::Path(path) if self.types.meets(Types::STR) => {
                shoal_value::convert::to_str(&Value::Path(path)).map(Value::Str).map_err(Misfit::Error)
            }
            other => Err(Misfit::Value { expected: self.text(), found: other.type_name() }),
        }
    }
}

/// Why a value is not of a type.
#[derive(Debug)]
pub(crate) enum Misfit {
    /// Another type.
    Value { expected: String, found: &'static str },
    /// A conversion failed.
    Error(shoal_value::ErrorValue),
}

fn admit_items(item: &Type, list: List) -> Result<Value, Misfit> {
    if item.is_any() {
        return Ok(Value::List(list));
    }
    let items = list.into_items().into_iter().map(|v| item.admit(v)).collect::<Result<Vec<_>, _>>()?;
    Value::list(items).map_err(Misfit::Error)
}

/// The types a name stands for.
pub(crate) fn named(name: &str) -> Types {
    if name == "any" { Types::ANY } else { Types::named(name).unwrap_or(Types::NONE) }
}
