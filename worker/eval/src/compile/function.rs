//! Building the code of one function: variables, scopes, captures, jumps.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use shoal_syntax::ast::{self, Name};
use shoal_value::Str;

use super::Compiler;
use super::fuse::fuse;
use crate::code::{Capture, Code, CodeKind, Op, Parameter, Pattern, Place, Rest, Tables, Target, Tree};
use crate::scope::BindingKind;
use crate::types::Type;

/// A variable of a function.
pub(super) struct Var {
    pub(super) kind: BindingKind,
    /// Its cell, once a closure captures it.
    cell: Option<u32>,
}

/// Names of a block. A name is entered before its declaration, so that closures above it can see it.
#[derive(Default)]
pub(super) struct Scope {
    names: HashMap<Name, Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    var: u32,
    declared: bool,
}

/// A loop being compiled.
pub(super) struct LoopScope {
    pub(super) start: u32,
    pub(super) breaks: Vec<usize>,
    /// Constructs open around it.
    pub(super) open: usize,
}

/// A construct that has to be closed when control leaves it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Open {
    With,
    Try,
}

pub(super) struct FnBuilder {
    pub(super) kind: CodeKind,
    place: Place,
    pub(super) ops: Vec<Op>,
    places: Vec<Place>,
    pub(super) vars: Vec<Var>,
    cells: u32,
    scopes: Vec<Scope>,
    captures: Vec<Capture>,
    captured: HashMap<(usize, u32), u32>,
    pub(super) tables: Tables,
    pub(super) loops: Vec<LoopScope>,
    pub(super) open: Vec<Open>,
    pub(super) params: Vec<Parameter>,
    pub(super) rest: Option<Rest>,
    pub(super) ret: Option<Type>,
    pub(super) tree: Tree,
    /// Place given to the next operations.
    pub(super) here: Place,
}

/// What a name stands for.
pub(super) enum Resolved {
    Local(u32),
    Captured(u32, BindingKind),
    Root(u32),
}

impl FnBuilder {
    pub(super) fn new(kind: CodeKind, place: Place) -> Self {
        Self {
            kind,
            place,
            ops: Vec::new(),
            places: Vec::new(),
            vars: Vec::new(),
            cells: 0,
            scopes: Vec::new(),
            captures: Vec::new(),
            captured: HashMap::new(),
            tables: Tables::default(),
            loops: Vec::new(),
            open: Vec::new(),
            params: Vec::new(),
            rest: None,
            ret: None,
            tree: Tree::None,
            here: place,
        }
    }

    fn cell(&mut self, var: u32) -> u32 {
        let var = &mut self.vars[var as usize];
        *var.cell.get_or_insert_with(|| {
            self.cells += 1;
            self.cells - 1
        })
    }

    /// Turns variables into locals or cells, drops what became empty, and resolves jumps.
    fn finish(mut self, unit: Arc<crate::code::Unit>, name: Option<Str>, doc: Option<Str>) -> Code {
        let vars = &self.vars;
        let cell = |var: u32| vars[var as usize].cell;
        let ops: Vec<Op> = self.ops.iter().map(|op| rewrite(*op, &cell)).collect();
        for pattern in &mut self.tables.patterns {
            rewrite_pattern(pattern, &cell);
        }
        let (ops, places, computes) = fuse(ops, &self.places, self.params.len());
        let simple = self.rest.is_none() && self.params.iter().all(|p| !p.has_default && p.ty.is_none());
        let leaf = simple && computes && self.cells == 0 && self.kind.is_function();
        Code {
            unit,
            kind: self.kind,
            name,
            doc,
            place: self.place,
            tree: self.tree,
            params: self.params.into(),
            rest: self.rest,
            ret: self.ret,
            ops: ops.into(),
            places: places.into(),
            locals: self.vars.len() as u32,
            cells: self.cells,
            captures: self.captures.into(),
            tables: self.tables,
            exports: Box::default(),
            simple,
            leaf: AtomicBool::new(leaf),
            formula: OnceLock::new(),
        }
    }
}

impl Compiler {
    pub(super) fn f(&mut self) -> &mut FnBuilder {
        self.fns.last_mut().unwrap_or_else(|| unreachable!("a function is being compiled"))
    }

    pub(super) fn end_function(&mut self, name: Option<Str>, doc: Option<Str>) -> Code {
        let built = self.fns.pop().unwrap_or_else(|| unreachable!("a function is being compiled"));
        built.finish(self.unit.clone(), name, doc)
    }

    pub(super) fn emit(&mut self, op: Op) -> usize {
        let f = self.f();
        f.ops.push(op);
        let here = f.here;
        f.places.push(here);
        f.ops.len() - 1
    }

    pub(super) fn next(&mut self) -> u32 {
        self.f().ops.len() as u32
    }

    /// Lets the jump at `at` go to the next operation.
    pub(super) fn land(&mut self, at: usize) {
        let target = self.next();
        let op = &mut self.f().ops[at];
        *op = op.with_target(target);
    }

    pub(super) fn name(&mut self, name: &Str) -> u32 {
        if let Some(at) = self.by_name.get(name) {
            return *at;
        }
        let at = self.names.len() as u32;
        self.names.push(name.clone());
        self.by_name.insert(name.clone(), at);
        at
    }

    /// Whether the current place is the root scope of the program.
    pub(super) fn at_root(&mut self) -> bool {
        self.fns.len() == 1 && self.f().scopes.is_empty()
    }

    pub(super) fn push_scope(&mut self) {
        self.f().scopes.push(Scope::default());
    }

    pub(super) fn pop_scope(&mut self) {
        self.f().scopes.pop();
    }

    /// A variable without a name.
    pub(super) fn hidden(&mut self) -> u32 {
        let f = self.f();
        f.vars.push(Var { kind: BindingKind::Let, cell: None });
        f.vars.len() as u32 - 1
    }

    /// Enters a name into the innermost scope, not yet declared.
    pub(super) fn announce(&mut self, name: &Name, kind: BindingKind) -> u32 {
        let f = self.f();
        if let Some(entry) = f.scopes.last().and_then(|scope| scope.names.get(name)) {
            return entry.var;
        }
        let var = self.hidden();
        let f = self.f();
        f.vars[var as usize].kind = kind;
        if let Some(scope) = f.scopes.last_mut() {
            scope.names.insert(name.clone(), Entry { var, declared: false });
        }
        self.emit(Op::FreshCell(var));
        var
    }

    /// Enters the names of a pattern into the innermost scope, not yet declared.
    pub(super) fn announce_names(&mut self, pattern: &ast::Pattern, kind: BindingKind) {
        let mut names: Vec<Name> = Vec::new();
        pattern.each_name(&mut |name, _| names.push(name.clone()));
        for name in &names {
            self.announce(name, kind);
        }
    }

    /// Declares a name in the innermost scope; gives its variable.
    pub(super) fn declare(&mut self, name: &Name, kind: BindingKind) -> u32 {
        let var = self.announce(name, kind);
        let f = self.f();
        f.vars[var as usize].kind = kind;
        if let Some(entry) = f.scopes.last_mut().and_then(|scope| scope.names.get_mut(name)) {
            entry.declared = true;
        }
        var
    }

    /// Binds a parameter name to its variable.
    pub(super) fn declare_param(&mut self, name: &Name, var: u32) {
        if let Some(scope) = self.f().scopes.last_mut() {
            scope.names.insert(name.clone(), Entry { var, declared: true });
        }
        self.emit(Op::BoxLocal(var, 0));
    }

    /// What `name` stands for here, preceded by captured variables that will stand for it once they are declared.
    pub(super) fn resolve(&mut self, name: &Name) -> (Vec<u32>, Resolved) {
        let top = self.fns.len() - 1;
        let own = self.fns[top].scopes.iter().rev().find_map(|scope| scope.names.get(name).filter(|e| e.declared));
        if let Some(entry) = own {
            return (Vec::new(), Resolved::Local(entry.var));
        }
        let mut maybe = Vec::new();
        for level in (0..top).rev() {
            let entries: Vec<Entry> =
                self.fns[level].scopes.iter().rev().filter_map(|scope| scope.names.get(name).copied()).collect();
            for entry in entries {
                let at = self.capture(level, entry.var);
                if entry.declared {
                    let kind = self.fns[level].vars[entry.var as usize].kind;
                    return (maybe, Resolved::Captured(at, kind));
                }
                maybe.push(at);
            }
        }
        let at = self.name(name);
        (maybe, Resolved::Root(at))
    }

    /// Whether `name` is bound as far as the text tells.
    pub(super) fn is_bound(&mut self, name: &Name) -> bool {
        !matches!(self.resolve(name), (maybe, Resolved::Root(_)) if maybe.is_empty())
            || self.options.known.contains(name)
    }

    /// Captures variable `var` of the function at `level` into the innermost one.
    fn capture(&mut self, level: usize, var: u32) -> u32 {
        let mut from = Capture::Cell(self.fns[level].cell(var));
        let mut at = 0;
        for f in &mut self.fns[level + 1..] {
            at = *f.captured.entry((level, var)).or_insert_with(|| {
                f.captures.push(from);
                f.captures.len() as u32 - 1
            });
            from = Capture::Captured(at);
        }
        at
    }
}

fn rewrite(op: Op, cell: &impl Fn(u32) -> Option<u32>) -> Op {
    match op {
        Op::Local(var) => cell(var).map_or(op, Op::Cell),
        Op::SetLocal(var) => cell(var).map_or(op, Op::SetCell),
        Op::UpdateLocal(var, binary) => cell(var).map_or(op, |at| Op::UpdateCell(at, binary)),
        Op::FreshCell(var) => cell(var).map_or(Op::Nop, Op::FreshCell),
        Op::BoxLocal(var, _) => cell(var).map_or(Op::Nop, |at| Op::BoxLocal(var, at)),
        op => op,
    }
}

fn rewrite_pattern(pattern: &mut Pattern, cell: &impl Fn(u32) -> Option<u32>) {
    let target = |target: &mut Target| {
        if let Target::Local(var) = *target
            && let Some(at) = cell(var)
        {
            *target = Target::Cell(at);
        }
    };
    match pattern {
        Pattern::Bind(t) | Pattern::Type(_, Some(t)) => target(t),
        Pattern::Record(fields) => fields.iter_mut().for_each(|(_, p)| rewrite_pattern(p, cell)),
        Pattern::Either(patterns) => patterns.iter_mut().for_each(|p| rewrite_pattern(p, cell)),
        Pattern::List { items, rest } => {
            items.iter_mut().for_each(|p| rewrite_pattern(p, cell));
            if let Some(Some(t)) = rest {
                target(t);
            }
        }
        Pattern::Any | Pattern::Literal(_) | Pattern::Regex(_) | Pattern::Range { .. } | Pattern::Type(_, None) => {}
    }
}
