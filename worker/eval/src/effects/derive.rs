//! The derivation: a walk over the tree that runs nothing and fails closed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use shoal_syntax::ast::{Name, Program};
use shoal_value::{PathValue, Str, Value};

use super::Effect;
use super::bound::{Claimed, Reached, Started};
use super::known::{Body, Closure, Kind, Known};
use crate::code::Tree;
use crate::ctx::join_path;
use crate::machine::Machine;
use crate::module::normalise;
use crate::native::NativeFunction;
use crate::registry::Types;
use crate::scope::{Binding, Root};
use crate::vm::Lambda;

/// Calls analysed inside each other; deeper ones are opaque.
const MAX_INLINE: usize = 64;

/// Passes over a program until the kinds of its variables are settled.
const MAX_PASSES: usize = 4;

/// What a derivation found.
pub(crate) struct Derived {
    /// Effects in order of first appearance.
    pub(crate) effects: Vec<Effect>,
    /// Session names the program reaches, with their values.
    pub(crate) reached: Vec<(Str, Binding)>,
    /// Programs its commands start.
    pub(crate) programs: Vec<Started>,
    /// Files that are programs of interpreters.
    pub(crate) scripts: Vec<PathValue>,
}

impl From<Derived> for Claimed {
    fn from(derived: Derived) -> Self {
        let Derived { effects, reached, programs, scripts } = derived;
        let names = reached.into_iter().map(|(name, binding)| Reached::new(name, binding)).collect();
        Self { effects, programs, scripts, names }
    }
}

/// Derives the effects of a program in the state of `machine`. With `binds` programs and scripts are looked for as well.
pub(crate) fn derive(machine: &mut Machine, root: &Arc<Root>, program: &Program, binds: bool) -> Derived {
    let mut vars = HashMap::new();
    for pass in 1.. {
        let mut deriver = Deriver::new(machine, root.clone(), vars);
        deriver.binds = binds;
        deriver.program(program);
        let settled = !deriver.vars_changed;
        if settled || pass == MAX_PASSES {
            if !settled {
                deriver.add(Effect::Opaque);
            }
            let reached = std::mem::take(&mut deriver.reached).into_iter().collect();
            let Deriver { out, programs, scripts, .. } = deriver;
            return Derived { effects: out, reached, programs, scripts };
        }
        vars = deriver.vars;
    }
    Derived { effects: vec![Effect::Opaque], reached: Vec::new(), programs: Vec::new(), scripts: Vec::new() }
}

pub(super) struct Deriver<'m> {
    pub(super) machine: &'m mut Machine,
    pub(super) root: Arc<Root>,
    pub(super) out: Vec<Effect>,
    /// Names of the program by scope.
    pub(super) scopes: Vec<HashMap<Name, Known>>,
    /// Kinds of variables that are assigned, joined over all assignments.
    pub(super) vars: HashMap<Name, Kind>,
    pub(super) vars_changed: bool,
    pub(super) items: Vec<Known>,
    /// Working directory; `None` after a `cd` to somewhere unknown.
    pub(super) cwd: Option<PathValue>,
    /// Bodies being analysed, and whether with unknown arguments already.
    active: Vec<(usize, bool)>,
    reached: BTreeMap<Str, Binding>,
    /// Programs and scripts are looked for.
    pub(super) binds: bool,
    pub(super) programs: Vec<Started>,
    pub(super) scripts: Vec<PathValue>,
    /// Source files being analysed.
    pub(super) files: Vec<String>,
    /// What `return` gives in the body at hand.
    pub(super) returned: Option<Kind>,
    /// Whether the command at hand runs on every path through the program.
    pub(super) unconditional: bool,
}

impl<'m> Deriver<'m> {
    fn new(machine: &'m mut Machine, root: Arc<Root>, vars: HashMap<Name, Kind>) -> Self {
        let cwd = Some(machine.place.cwd.path().clone());
        Self {
            machine,
            root,
            out: Vec::new(),
            scopes: vec![HashMap::new()],
            vars,
            vars_changed: false,
            items: Vec::new(),
            cwd,
            active: Vec::new(),
            reached: BTreeMap::new(),
            binds: false,
            programs: Vec::new(),
            scripts: Vec::new(),
            files: Vec::new(),
            returned: None,
            unconditional: false,
        }
    }

    pub(super) fn add(&mut self, effect: Effect) {
        if !self.out.contains(&effect) {
            self.out.push(effect);
        }
    }

    /// An absolute, normalised path, or `*`.
    pub(super) fn path(&self, path: Option<&str>) -> Str {
        let Some(path) = path else { return "*".into() };
        let path = match path.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => match self.machine.place.var("HOME") {
                Some(home) => format!("{home}{rest}"),
                None => return "*".into(),
            },
            _ => path.to_owned(),
        };
        match &self.cwd {
            _ if path.starts_with('/') => normalise(&PathValue::from(path)).into(),
            Some(cwd) => normalise(&join_path(cwd, &PathValue::from(path))).into(),
            None => "*".into(),
        }
    }

    pub(super) fn path_of(&self, known: Option<&Known>) -> Str {
        let text = known.and_then(Known::text);
        self.path(text.as_deref())
    }

    /// What a name is known to be: a name of the program, or a binding of the session.
    pub(super) fn lookup(&mut self, name: &Name) -> Option<Known> {
        if let Some(known) = self.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            let mut known = known.clone();
            if let Some(kind) = self.vars.get(name) {
                known = Known::kind(known.kind.join(*kind));
            }
            return Some(known);
        }
        let binding = self.root.find(name)?;
        self.reached.insert(name.clone(), binding.clone());
        if let Some(kind) = self.vars.get(name) {
            return Some(Known::kind(Kind::of(&binding.value).join(*kind)));
        }
        Some(known_value(&binding.value))
    }

    pub(super) fn declare(&mut self, name: &Name, known: Known) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.clone(), known);
        }
    }

    /// A variable takes a value of this kind somewhere.
    pub(super) fn assigned(&mut self, name: &Name, kind: Kind) {
        let joined = self.vars.get(name).map_or(kind, |before| before.join(kind));
        if self.vars.insert(name.clone(), joined) != Some(joined) {
            self.vars_changed = true;
        }
    }

    pub(super) fn scoped<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(HashMap::new());
        let result = walk(self);
        self.scopes.pop();
        result
    }

    /// Analyses a call of a known closure.
    pub(super) fn call(&mut self, closure: &Closure, mut args: Vec<Known>) -> Known {
        let address = closure.body.address();
        let seen = self.active.iter().filter(|(at, _)| *at == address).count();
        if seen >= 2 {
            return Known::any();
        }
        if self.active.len() >= MAX_INLINE {
            self.add(Effect::Opaque);
            return Known::any();
        }
        if seen == 1 {
            args = args.iter().map(|_| Known::any()).collect();
        }
        self.active.push((address, seen == 1));
        let hidden = self.scopes.split_off(closure.scopes.min(self.scopes.len()));
        let root = closure.root.clone().map(|root| std::mem::replace(&mut self.root, root));
        let returned = self.returned.take();
        let mut result = self.scoped(|this| this.body(&closure.body, args));
        if let Some(kind) = std::mem::replace(&mut self.returned, returned) {
            result = Known::kind(result.kind.join(kind));
        }
        if let Some(root) = root {
            self.root = root;
        }
        self.scopes.extend(hidden);
        self.active.pop();
        result
    }

    fn body(&mut self, body: &Body, args: Vec<Known>) -> Known {
        match body {
            Body::Function(decl) => {
                let mut args = args.into_iter();
                for param in &decl.params {
                    let given = args.next();
                    let default = param.default.as_ref().map(|default| self.expr(default));
                    let known = match (&param.ty, given, default) {
                        (Some(ty), given, _) if Self::is_plain_type(ty) => {
                            let types = crate::types::named(ty.name.as_str());
                            let value = given.and_then(|known| known.value).and_then(|value| admitted(types, value));
                            value.map_or(Known::plain(types), Known::fixed)
                        }
                        (_, Some(given), _) => given,
                        (_, None, Some(default)) => Known::kind(default.kind.join(Kind::Any)),
                        (_, None, None) => Known::any(),
                    };
                    self.declare(&param.name.name, known);
                }
                if let Some(rest) = &decl.rest {
                    let kind = args.map(|known| known.kind).reduce(Kind::join).unwrap_or(Kind::Data);
                    self.declare(&rest.name.name, if kind.is_data() { Known::data() } else { Known::any() });
                }
                self.block(&decl.body)
            }
            Body::Lambda(lambda) => self.lambda_body(lambda, args),
            Body::Alias(call) => self.alias(call, args),
            Body::Block(block) => self.block(block),
            Body::Builtin(row) => self.builtin_function(row, &args),
        }
    }
}

/// A static value as a parameter of these types takes it; none if it does not fit.
fn admitted(types: Types, value: Value) -> Option<Value> {
    match value {
        Value::Str(text) if types == Types::PATH => Some(Value::Path(PathValue::from(&*text))),
        Value::Path(path) if types == Types::STR => path.to_str().map(Value::str),
        value => types.has(&value).then_some(value),
    }
}

/// What is known of a value of the session.
pub(super) fn known_value(value: &Value) -> Known {
    let mut known = Known::fixed(value.clone());
    known.closure = closure_of(value);
    known
}

/// The body of a closure value; none if it closes over variables, whose values a tree does not tell.
pub(super) fn closure_of(value: &Value) -> Option<Closure> {
    let lambda: &Lambda = match value {
        Value::Closure(callable) => match shoal_value::handle::concrete::<NativeFunction>(&**callable) {
            Some(native) => return Some(Closure { body: Body::Builtin(native.row), scopes: 0, root: None }),
            None => shoal_value::handle::concrete(&**callable)?,
        },
        Value::Command(alias) => &shoal_value::handle::concrete::<crate::command::AliasValue>(&**alias)?.lambda,
        _ => return None,
    };
    if !lambda.captures.is_empty() {
        return None;
    }
    let body = match &lambda.code.tree {
        Tree::Function(decl) => Body::Function(decl.clone()),
        Tree::Lambda(tree) => Body::Lambda(tree.clone()),
        Tree::Alias(call) => Body::Alias(call.clone()),
        Tree::None => return None,
    };
    Some(Closure { body, scopes: 0, root: lambda.linked.as_ref().map(|linked| linked.root.clone()) })
}
