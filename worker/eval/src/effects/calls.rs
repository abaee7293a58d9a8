//! Fields, methods and calls.

use shoal_syntax::ast::{Args, Expr, ExprKind, Name};
use shoal_value::Value;

use super::Effect;
use super::derive::{Deriver, closure_of};
use super::known::{Closure, Kind, Known};
use crate::registry::{Function, Gives, Method, Touches, Types, standard};

impl Deriver<'_> {
    pub(super) fn field(&mut self, recv: &Expr, name: &Name) -> Known {
        if let ExprKind::Var(var) = &recv.kind
            && **var == *"env"
            && self.lookup(var).is_none()
        {
            self.add(Effect::EnvRead(name.clone()));
            return Known::plain(Types::STR.or(Types::NULL));
        }
        if let Some(function) = self.member(recv, name) {
            return Known { closure: Some(function), ..Known::any() };
        }
        let recv = self.receiver(recv);
        self.field_of(recv, name)
    }

    fn field_of(&mut self, recv: Known, name: &Name) -> Known {
        if let Some(Value::Record(record)) = &recv.value {
            return match record.get(name) {
                Some(value) => super::derive::known_value(value),
                None => Known::any(),
            };
        }
        match recv.kind {
            Kind::Any => {
                // A field of a record of unknown contents runs nothing; a method of that name may.
                let acts = standard().methods(name).is_some_and(|row| {
                    (0..Types::COUNT).any(|t| row.of(t).is_some_and(|m| m.touches != Touches::Nothing))
                });
                if acts {
                    self.add(Effect::Opaque);
                }
                Known::any()
            }
            Kind::Plain(types) if types == Types::DURATION && matches!(&**name, "ago" | "from_now") => {
                self.add(Effect::Time);
                Known::plain(Types::DATETIME)
            }
            Kind::Plain(Types::RECORD) => Known::data(),
            Kind::Glob if **name == *"pattern" => Known::plain(Types::STR),
            Kind::Plain(_) | Kind::Data if self.rows(recv.kind, name).is_empty() => {
                // A field, which runs nothing, or an error.
                if recv.kind == Kind::Data && matches!(&**name, "ago" | "from_now") {
                    self.add(Effect::Time);
                }
                Known::data()
            }
            _ => self.method_on(&recv, name, &[], &[]),
        }
    }

    /// A function of a namespace, as a value.
    fn member(&mut self, recv: &Expr, name: &Name) -> Option<Closure> {
        let ExprKind::Var(var) = &recv.kind else { return None };
        if self.lookup(var).is_some() {
            return None;
        }
        let row = standard().namespace(var)?.functions.iter().find(|row| *row.name == **name)?;
        Some(Closure { body: super::known::Body::Builtin(row), scopes: 0, root: None })
    }

    fn args(&mut self, args: &Args) -> (Vec<Known>, Vec<(Name, Known)>) {
        let positional = args.pos.iter().map(|arg| self.expr(arg)).collect();
        let named = args.named.iter().map(|arg| (arg.name.name.clone(), self.expr(&arg.value))).collect();
        (positional, named)
    }

    pub(super) fn method(&mut self, recv: &Expr, name: &Name, args: &Args) -> Known {
        if **name == *"feed" {
            self.receiver(recv);
            for arg in &args.pos {
                // The stage itself is a program, whatever builtin has its name.
                match &arg.ungrouped().kind {
                    ExprKind::Cmd(call) => {
                        let args = self.words(call).args;
                        self.program_call(call, &args);
                    }
                    _ => drop(self.expr(arg)),
                }
            }
            self.add(Effect::Opaque);
            return Known::data();
        }
        if let Some(function) = self.member(recv, name) {
            let (mut positional, named) = self.args(args);
            positional.extend(named.into_iter().map(|(_, known)| known));
            return self.call(&function, positional);
        }
        let namespace = match &recv.kind {
            ExprKind::Var(var) => self.lookup(var).is_none() && standard().namespace(var).is_some(),
            _ => false,
        };
        if namespace {
            // No such member: the call fails, but its arguments are evaluated first.
            self.args(args);
            return Known::any();
        }
        let recv = self.receiver(recv);
        let (positional, named) = self.args(args);
        if let (Some(Value::Path(base)), "join", [part]) = (&recv.value, &**name, &*positional)
            && let Some(part) = part.text()
        {
            let joined = crate::ctx::join_path(base, &part.as_str().into());
            return Known::fixed(Value::Path(joined));
        }
        let member = match &recv.value {
            Some(Value::Record(record)) => record.get(name).and_then(closure_of),
            _ => None,
        };
        if let Some(closure) = member {
            return self.call(&closure, positional);
        }
        self.method_on(&recv, name, &positional, &named)
    }

    fn method_on(&mut self, recv: &Known, name: &Name, positional: &[Known], named: &[(Name, Known)]) -> Known {
        let args: Vec<&Known> = positional.iter().chain(named.iter().map(|(_, known)| known)).collect();
        let rows = self.rows(recv.kind, name);
        if recv.kind == Kind::Any || rows.is_empty() && recv.kind != Kind::Glob {
            if recv.kind == Kind::Any || standard().methods(name).is_none() {
                self.add(Effect::Opaque);
            }
            // A name no receiver of this type has fails; closures given to it are not called.
            return Known::any();
        }
        if recv.kind == Kind::Glob && !(**name == *"pattern" && args.is_empty()) {
            let base = match &recv.value {
                Some(Value::Glob(glob)) => self.path(Some(crate::glob::base(glob.pattern()))),
                _ => "*".into(),
            };
            self.add(Effect::Read(base));
        }
        let item = Known::kind(recv.kind.item());
        let mut called = self.call_closures(&rows, recv, &item, &args);
        if args.iter().any(|arg| arg.kind == Kind::Stream { data: false }) {
            called = Some(Kind::Any);
        }
        let mut result = None;
        for row in &rows {
            self.touch(row.touches, Some(recv), &args);
            let gives = self.given(row.gives, recv.kind, called);
            result = Some(result.map_or(gives, |before: Kind| before.join(gives)));
        }
        Known::kind(result.unwrap_or(Kind::Any))
    }

    /// Rows a call may mean.
    fn rows(&self, kind: Kind, name: &str) -> Vec<&'static Method> {
        let Some(row) = standard().methods(name) else { return Vec::new() };
        let types = match kind {
            Kind::Plain(types) => types,
            // What a stream has no way of its own for is done on the list of its items.
            Kind::Stream { .. } if row.of(STREAM).is_some() => Types::STREAM,
            Kind::Stream { .. } => Types::LIST,
            Kind::Task => Types::TASK,
            Kind::Channel => Types::CHANNEL,
            Kind::Glob => Types::GLOB.or(Types::LIST),
            Kind::Data => DATA,
            Kind::Any => Types::ANY,
        };
        // What an outcome holds answers for it.
        let types = if types.meets(Types::OUTCOME) { types.or(DATA) } else { types };
        let mut rows: Vec<&'static Method> = Vec::new();
        for index in (0..Types::COUNT).filter(|index| types.has_index(*index)) {
            if let Some(method) = row.of(index)
                && !rows.iter().any(|known| std::ptr::eq(*known, method))
            {
                rows.push(method);
            }
        }
        rows
    }

    /// Analyses the closures a method is given; the join of what they give.
    fn call_closures(&mut self, rows: &[&Method], recv: &Known, item: &Known, args: &[&Known]) -> Option<Kind> {
        if rows.iter().all(|row| row.touches == Touches::Nothing && row.params.iter().all(|p| p.types == Types::ANY)) {
            return None;
        }
        let mut result: Option<Kind> = None;
        for arg in args {
            if let Some(closure) = &arg.closure {
                let of = if recv.kind.is_data() && !is_collection(recv.kind) { recv } else { item };
                let given = self.call(closure, vec![of.clone(), item.clone()]);
                result = Some(result.map_or(given.kind, |before| before.join(given.kind)));
            } else if matches!(arg.kind, Kind::Any) && rows.iter().any(|row| row.touches == Touches::Closures) {
                self.add(Effect::Opaque);
                result = Some(Kind::Any);
            }
        }
        result
    }

    /// The kind of a result; `called` is what the closures gave.
    fn given(&self, gives: Gives, recv: Kind, called: Option<Kind>) -> Kind {
        let live = called.is_some_and(|kind| !kind.is_data() && kind != Kind::Stream { data: true });
        match gives {
            Gives::Plain(types) if types == Types::STREAM => Kind::Stream { data: !live && holds_data(recv) },
            Gives::Items if !live && holds_data(recv) => Kind::Plain(Types::LIST),
            Gives::Plain(types) if types == Types::GLOB => Kind::Glob,
            Gives::Plain(types) if types == Types::CHANNEL => Kind::Channel,
            Gives::Plain(types) if types == Types::TASK => Kind::Task,
            Gives::Plain(types) if !(live && types.meets(Types::LIST.or(Types::RECORD).or(Types::TABLE))) => {
                Kind::Plain(types)
            }
            Gives::Same if recv == Kind::Glob => Kind::Plain(Types::LIST),
            Gives::Same if recv == Kind::Stream { data: true } => Kind::Plain(Types::LIST),
            Gives::Same if recv == Kind::Stream { data: false } => Kind::Any,
            Gives::Same => recv,
            Gives::Item => recv.item(),
            Gives::Data if !live && (recv.is_data() || matches!(recv, Kind::Glob | Kind::Channel)) => Kind::Data,
            Gives::Plain(_) | Gives::Data | Gives::Items | Gives::Any => {
                if called.is_some() && !live && recv.is_data() { Kind::Data } else { Kind::Any }
            }
        }
    }

    pub(super) fn call_expr(&mut self, callee: &Expr, args: &Args) -> Known {
        if let ExprKind::Var(name) = &callee.kind {
            let known = self.lookup(name);
            let (mut positional, named) = self.args(args);
            if let Some(known) = known {
                return self.call_known(&known, positional, named);
            }
            if let Some(row) = standard().function(name) {
                if named.is_empty() {
                    return self.builtin_function(row, &positional);
                }
                let at = |name: &Name| row.params.iter().position(|p| *p.name == **name);
                for (name, known) in named {
                    let at = at(&name).unwrap_or(positional.len());
                    if at >= positional.len() {
                        positional.resize(at + 1, Known::plain(Types::NULL));
                    }
                    positional[at] = known;
                }
                return self.builtin_function(row, &positional);
            }
            if let Some(command) = standard().command(name) {
                if command.touches == Touches::Undo {
                    let root = named.iter().find(|(name, _)| **name == *"root").map(|(_, root)| root);
                    return self.undo(root);
                }
                return self.builtin_command(command, &positional);
            }
            self.starts(name, &positional, None);
            self.add(Effect::Opaque);
            return Known::data();
        }
        let known = self.expr(callee);
        let (positional, named) = self.args(args);
        self.call_known(&known, positional, named)
    }

    fn call_known(&mut self, known: &Known, positional: Vec<Known>, named: Vec<(Name, Known)>) -> Known {
        let Some(closure) = known.closure.clone() else {
            self.add(Effect::Opaque);
            return Known::any();
        };
        if named.is_empty() {
            return self.call(&closure, positional);
        }
        // Named arguments may fall to any parameter: analysed as unknown.
        let n = positional.len() + named.len();
        let args = vec![Known::any(); n.max(16)];
        self.call(&closure, args)
    }

    pub(super) fn builtin_function(&mut self, row: &'static Function, args: &[Known]) -> Known {
        let mut called: Option<Kind> = None;
        let calls = row.touches != Touches::Nothing;
        for arg in args.iter().filter(|_| calls) {
            if let Some(closure) = &arg.closure {
                let given = self.call(closure, Vec::new());
                called = Some(called.map_or(given.kind, |before| before.join(given.kind)));
            } else if row.touches == Touches::Closures && arg.kind == Kind::Any {
                self.add(Effect::Opaque);
                called = Some(Kind::Any);
            }
        }
        let refs: Vec<&Known> = args.iter().collect();
        self.touch(row.touches, None, &refs);
        if let (Some(first), []) = (args.first().filter(|_| args.len() == 1), &[] as &[()])
            && let Some(value) = self.constructed(row.name, first)
        {
            return value;
        }
        let kind = match row.gives {
            Gives::Any if called.is_some_and(Kind::is_data) => Kind::Data,
            gives => self.given(gives, Kind::Data, called),
        };
        Known::kind(kind)
    }

    /// `path(...)` and `glob(...)` of static text are static.
    fn constructed(&self, name: &str, arg: &Known) -> Option<Known> {
        let text = arg.text()?;
        match name {
            "path" => Some(Known::fixed(Value::Path(text.as_str().into()))),
            "glob" => {
                let cwd = self.cwd.clone()?;
                let glob = shoal_value::Glob::new(text, cwd, false);
                Some(Known { kind: Kind::Glob, ..Known::fixed(Value::Glob(glob)) })
            }
            _ => None,
        }
    }

    /// Adds the effects of a method or function.
    fn touch(&mut self, touches: Touches, recv: Option<&Known>, args: &[&Known]) {
        match touches {
            Touches::Nothing | Touches::Closures => {}
            Touches::Time => self.add(Effect::Time),
            Touches::Reads => match recv.or(args.first().copied()) {
                Some(known) if matches!(known.kind, Kind::Plain(types) if !types.meets(Types::PATH.or(Types::STR))) => {
                }
                Some(known) if known.kind == Kind::Glob => {}
                known => {
                    let path = self.path_of(known);
                    self.add(Effect::Read(path));
                }
            },
            Touches::Writes => {
                let path = self.path_of(args.first().copied());
                self.add(Effect::Write(path));
            }
            Touches::Deletes => {
                let path = self.path_of(args.first().copied());
                self.add(Effect::Delete(path));
            }
            Touches::Env => {
                let name = args.first().and_then(|known| known.text());
                self.add(Effect::EnvRead(name.map_or_else(|| "*".into(), Into::into)));
            }
            Touches::SearchPath => self.add(Effect::EnvRead("PATH".into())),
            Touches::Session => self.add(Effect::Session),
            Touches::Journal => self.add(Effect::Journal),
            Touches::ResourceList => {
                if self.machine.session.host.resources().is_some_and(crate::host::Resources::has_servers) {
                    self.add(Effect::Opaque);
                }
            }
            Touches::Resource => self.resource(args.first().copied()),
            Touches::Watch => {
                self.resource(args.get(1).copied());
                self.add(Effect::Session);
            }
            Touches::Copies | Touches::Moves | Touches::Links | Touches::Undo | Touches::Opaque => {
                self.add(Effect::Opaque);
            }
        }
    }

    fn resource(&mut self, uri: Option<&Known>) {
        match uri.and_then(Known::text) {
            Some(uri) if uri == "shoal://journal" || uri == "shoal://events/journal" => self.add(Effect::Journal),
            Some(uri) if uri == "shoal://session/env" => self.add(Effect::EnvRead("*".into())),
            Some(uri) if uri.starts_with("shoal://") => {}
            _ => self.add(Effect::Opaque),
        }
    }
}

/// Types of values that run nothing and hold nothing that does.
const DATA: Types = Types::ANY
    .but(Types::CLOSURE.or(Types::COMMAND).or(Types::STREAM).or(Types::TASK))
    .but(Types::GLOB.or(Types::CHANNEL).or(Types::SECRET));

/// Number of the type `stream`.
const STREAM: usize = 17;

/// Whether what a stream over this takes its items from holds nothing that runs.
fn holds_data(recv: Kind) -> bool {
    recv.is_data() || matches!(recv, Kind::Stream { data: true } | Kind::Channel | Kind::Glob)
}

fn is_collection(kind: Kind) -> bool {
    matches!(kind, Kind::Data | Kind::Plain(_))
        && !matches!(kind, Kind::Plain(types) if !types.meets(Types::COLLECTION.or(Types::RECORD)))
}
