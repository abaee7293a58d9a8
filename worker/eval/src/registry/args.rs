//! Binding of arguments to the parameters of a builtin.

use shoal_value::{ErrorValue, Str, Value};

use super::{Method, Need, Param, Types};
use crate::vm::Operands;

/// Arguments as the caller gave them.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Positionals in order.
    pub positional: Vec<Value>,
    /// Named ones in order.
    pub named: Vec<(Str, Value)>,
}

/// Arguments bound to the parameters of a row, in their order: types and counts have been checked.
#[derive(Clone, Debug)]
pub struct Args {
    /// Of the first parameter, on its own: most builtins have no other.
    first: Option<Value>,
    more: Vec<Option<Value>>,
    rest: Vec<Value>,
}

impl Args {
    /// No arguments.
    pub const fn none() -> Self {
        Self { first: None, more: Vec::new(), rest: Vec::new() }
    }

    /// Binds `given` to `params` for the builtin called `what`. `surplus_hint` is the hint of the error for surplus ones.
    pub fn bind(what: &str, params: &[Param], given: Given, surplus_hint: &str) -> Result<Self, ErrorValue> {
        let mut args = Self::none();
        for (name, value) in given.named {
            let at = params.iter().position(|p| *p.name == *name && p.need != Need::Rest);
            let at = at.ok_or_else(|| unknown(what, params, &name))?;
            let value = check(what, &params[at], value)?;
            if args.slot(at).replace(value).is_some() {
                return Err(ErrorValue::arg_error(format!("{what}: argument `{name}` is given twice")));
            }
        }
        let mut next = 0;
        for value in given.positional {
            while params.get(next).is_some_and(|p| p.need != Need::Rest && args.has(next)) {
                next += 1;
            }
            match params.get(next) {
                None => return Err(surplus(what, params, surplus_hint)),
                Some(param) if param.need == Need::Rest => args.rest.push(check(what, param, value)?),
                Some(param) => *args.slot(next) = Some(check(what, param, value)?),
            }
        }
        for (at, param) in params.iter().enumerate() {
            if let (Need::Required(requires), false) = (param.need, args.has(at)) {
                let text = match requires {
                    "" => format!("{what}: missing argument `{}`", param.name),
                    requires => format!("{what} {requires}"),
                };
                return Err(ErrorValue::arg_error(text));
            }
        }
        Ok(args)
    }

    /// Binds the `n` topmost values of the stack, taking them.
    pub(crate) fn from_stack(method: &Method, stack: &mut Operands, n: usize) -> Result<Self, ErrorValue> {
        let params = method.params;
        if n == 0 && params.iter().all(|p| !matches!(p.need, Need::Required(_))) {
            return Ok(Self::none());
        }
        if n == 1
            && let [param] = params
            && param.need != Need::Rest
        {
            let mut args = Self::none();
            let value = stack.pop().unwrap_or(Value::Null);
            args.first = Some(check(method.name, param, value)?);
            return Ok(args);
        }
        let positional = stack.take(n);
        Self::bind(method.name, params, Given { positional, named: Vec::new() }, method.surplus_hint)
    }

    /// The place of the argument of parameter `at`.
    fn slot(&mut self, at: usize) -> &mut Option<Value> {
        let Some(at) = at.checked_sub(1) else { return &mut self.first };
        if at >= self.more.len() {
            self.more.resize(at + 1, None);
        }
        &mut self.more[at]
    }

    /// Takes the argument of parameter `at`; null if it was not given.
    pub fn take(&mut self, at: usize) -> Value {
        match at {
            0 => self.first.take(),
            at => self.more.get_mut(at - 1).and_then(Option::take),
        }
        .unwrap_or(Value::Null)
    }

    /// The argument of parameter `at`, if it was given.
    pub fn peek(&self, at: usize) -> Option<&Value> {
        match at {
            0 => self.first.as_ref(),
            at => self.more.get(at - 1).and_then(Option::as_ref),
        }
    }

    /// Whether parameter `at` was given.
    pub fn has(&self, at: usize) -> bool {
        self.peek(at).is_some()
    }

    /// An argument that is a str.
    pub fn text(&self, at: usize) -> Option<&Str> {
        match self.peek(at) {
            Some(Value::Str(text)) => Some(text),
            _ => None,
        }
    }

    /// An argument that is an int.
    pub fn int(&self, at: usize) -> Option<i64> {
        match self.peek(at) {
            Some(Value::Int(n)) => Some(*n),
            _ => None,
        }
    }

    /// An argument that is a bool; false if it was not given.
    pub fn is_on(&self, at: usize) -> bool {
        matches!(self.peek(at), Some(Value::Bool(true)))
    }

    /// An argument that counts: an int of at least 0. `None` if it was not given, `type_error` if negative.
    pub fn count(&self, at: usize) -> Result<Option<usize>, ErrorValue> {
        match self.int(at) {
            None => Ok(None),
            Some(n) => usize::try_from(n)
                .map(Some)
                .map_err(|_| ErrorValue::type_error(format!("expected a count of at least 0, found {n}"))),
        }
    }

    /// Takes the rest.
    pub fn take_rest(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.rest)
    }
}

fn check(what: &str, param: &Param, value: Value) -> Result<Value, ErrorValue> {
    if param.types.has(&value) {
        return Ok(value);
    }
    // An int is a float that happens to be whole.
    if let (true, Value::Int(n)) = (param.types.meets(Types::FLOAT), &value) {
        #[allow(clippy::cast_precision_loss, reason = "the language converts an int to the nearest float")]
        return Ok(Value::Float(*n as f64));
    }
    let (name, expected, found) = (param.name, param.types.text(), value.type_name());
    Err(ErrorValue::new(param.misfit, format!("{what}: argument `{name}`: expected {expected}, found {found}")))
}

fn unknown(what: &str, params: &[Param], name: &str) -> ErrorValue {
    ErrorValue::arg_error(format!("{what}: unknown argument `{name}`")).with_hint(accepted(what, params))
}

fn surplus(what: &str, params: &[Param], hint: &str) -> ErrorValue {
    let text = match params.len() {
        0 => format!("{what} takes no arguments"),
        1 => format!("{what} takes at most 1 argument"),
        n => format!("{what} takes at most {n} arguments"),
    };
    let hint = if hint.is_empty() { accepted(what, params) } else { hint.to_owned() };
    ErrorValue::arg_error(text).with_hint(hint)
}

/// `NAME(a, b?, ...c)`.
fn accepted(what: &str, params: &[Param]) -> String {
    let params: Vec<_> = params
        .iter()
        .map(|p| match p.need {
            Need::Required(_) => p.name.to_owned(),
            Need::Optional => format!("{}?", p.name),
            Need::Rest => format!("...{}", p.name),
        })
        .collect();
    format!("write {what}({})", params.join(", "))
}
