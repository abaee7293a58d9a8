//! From the tree to operations: variables are resolved to places, names of the root scope to links.
//!
//! One pass emits operations that name variables by number. Whether a variable needs a cell is known only when its
//! function has been read to the end; [`function::FnBuilder::finish`] then rewrites the operations on it.

mod call;
mod command;
mod declare;
mod expr;
mod function;
mod fuse;
mod loops;
mod pattern;
mod stmt;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::tz::TimeZone;
use shoal_syntax::ast::{Program, Span, TypeExpr, TypeName};
use shoal_value::Str;

use crate::code::{Code, CodeKind, Place, Unit};
use crate::registry::Types;
use crate::types::Type;
use function::FnBuilder;

/// What a program is compiled for.
pub(crate) struct Options {
    /// Zone of datetime literals without one.
    pub(crate) zone: TimeZone,
    /// Names bound before it.
    pub(crate) known: HashSet<Str>,
    /// Whether its last statement is in statement position.
    pub(crate) statement: bool,
    /// Whether its statements are handed to the sink and to the journal.
    pub(crate) top_level: bool,
    /// Whether statements are entries of the journal.
    pub(crate) journaled: bool,
}

/// Compiles a program.
pub(crate) fn compile(program: &Program, unit: Arc<Unit>, options: Options) -> Arc<Code> {
    let mut compiler =
        Compiler { unit, options, names: Vec::new(), by_name: HashMap::new(), fns: Vec::new(), exports: Vec::new() };
    compiler.fns.push(FnBuilder::new(CodeKind::Program, place(program.span)));
    compiler.program(program);
    let mut code = compiler.end_function(None, None);
    code.exports = std::mem::take(&mut compiler.exports).into();
    compiler.unit.seal(compiler.names);
    Arc::new(code)
}

struct Compiler {
    unit: Arc<Unit>,
    options: Options,
    names: Vec<Str>,
    by_name: HashMap<Str, u32>,
    /// Functions being compiled, innermost last.
    fns: Vec<FnBuilder>,
    exports: Vec<Str>,
}

fn place(span: Span) -> Place {
    Place { start: span.start, end: span.end }
}

fn type_of(ty: &TypeExpr) -> Type {
    let types = named(ty.name);
    let item = if types == Types::LIST { ty.args.first().map(|arg| Box::new(type_of(arg))) } else { None };
    Type { types, item, nullable: ty.optional }
}

fn named(name: TypeName) -> Types {
    crate::types::named(name.as_str())
}
