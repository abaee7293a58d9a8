//! Modules, sourced files and scripts.

use shoal_syntax::Names;
use shoal_value::{Bytes, ErrorValue, PathValue, Record, Str, Value, code};

use crate::Ctx;
use crate::code::{Unit, UseSite};
use crate::compile::{self, Options};
use crate::ctx::join_path;
use crate::host::At;
use crate::machine::Machine;
use crate::scope::{Binding, BindingKind, Bindings, Root, RootKind};
use crate::unwind::{Eval, Stop, Unwind};

/// Largest source file.
const MAX_SOURCE: u64 = shoal_syntax::MAX_SOURCE as u64;

/// Modules loaded by path, and those being loaded, outermost first.
#[derive(Clone, Default)]
pub(crate) struct Modules {
    loaded: rpds::HashTrieMapSync<Str, Value>,
    loading: Vec<Str>,
}

impl Modules {
    /// Takes over the modules of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (path, module) in other.loaded.iter() {
            self.loaded.insert_mut(path.clone(), module.clone());
        }
    }
}

impl Machine {
    /// The record of a module's exports; its path is on top of the stack.
    pub(crate) fn use_module(&mut self, site: &UseSite) -> Eval<Value> {
        let given = match self.stack.pop() {
            Some(Value::Str(text)) => PathValue::from(&*self.expand_home(&text)?),
            Some(Value::Path(path)) => path,
            other => {
                let found = other.as_ref().map_or("null", Value::type_name);
                return Err(ErrorValue::type_error(format!("use: expected a path, found {found}")).into());
            }
        };
        if site.name.is_none() {
            let text = format!("use {}: its stem is no name", given.display());
            return Err(ErrorValue::arg_error(text).with_hint("write `use PATH as NAME`").into());
        }
        let (path, source) = self.module_source(&given)?;
        let key: Str = normalise(&path).into();
        if let Some(module) = self.modules.loaded.get(&key) {
            return Ok(module.clone());
        }
        if let Some(at) = self.modules.loading.iter().position(|loading| *loading == key) {
            let chain: Vec<&str> = self.modules.loading[at..].iter().map(|s| &**s).chain([&*key]).collect();
            return Err(ErrorValue::new(code::CUSTOM, format!("modules use each other: {}", chain.join(" -> "))).into());
        }
        let module = self.load_module(&key, &source)?;
        self.modules.loaded.insert_mut(key, module.clone());
        Ok(module)
    }

    /// Path and text of a module: `PATH.shl`, or the exact path.
    fn module_source(&mut self, given: &PathValue) -> Eval<(PathValue, Str)> {
        let with_suffix = PathValue::from([given.as_bytes(), b".shl"].concat());
        for path in [&with_suffix, given] {
            let at = At { dir: &self.place.cwd, path: path.as_bytes() };
            if self.session.host.files().meta(at, true).is_ok_and(|m| m.kind == crate::host::FileKind::File) {
                let source = self.read_source(path)?;
                return Ok((join_path(self.place.cwd.path(), path), source));
            }
        }
        let text = format!("module not found: {}", given.display());
        Err(ErrorValue::new(code::NOT_FOUND, text).into())
    }

    fn load_module(&mut self, key: &Str, source: &Str) -> Eval<Value> {
        let root = Root::new(RootKind::Own, Bindings::default());
        let mut machine = self.child();
        machine.root = root.clone();
        machine.modules.loading.push(key.clone());
        let parent = key.rsplit_once('/').map_or("/", |(dir, _)| if dir.is_empty() { "/" } else { dir });
        machine.place.cwd = self.open_dir(&PathValue::from(parent))?;
        let unit = Unit::new(source.clone());
        let program = parse(source, &Names::script(), Some(key))?;
        let options = self.options(Vec::new());
        let code = compile::compile(&program, unit, options);
        let exports = code.exports.clone();
        let result = machine.run_code(code, root.clone());
        self.modules.merge(&machine.modules);
        result?;
        let members = exports.iter().filter_map(|name| Some((name.clone(), root.find(name)?.value)));
        Ok(Value::Record(Record::new(members)?))
    }

    fn options(&self, known: Vec<Str>) -> Options {
        Options {
            zone: self.session.host.clock().zone(),
            known: known.into_iter().collect(),
            statement: false,
            top_level: true,
            journaled: false,
        }
    }

    pub(crate) fn read_source(&self, path: &PathValue) -> Eval<Str> {
        let at = At { dir: &self.place.cwd, path: path.as_bytes() };
        let bytes = self.session.host.files().read(at, MAX_SOURCE, &self.run.cancel);
        let bytes = bytes.map_err(|e| e.about(path.as_bytes()))?;
        String::from_utf8(bytes).map(Str::from).map_err(|_| {
            ErrorValue::new(code::UTF8_ERROR, format!("{}: the source is not UTF-8", path.display())).into()
        })
    }

    /// `source FILE`: runs a file in the root scope of the running program.
    pub(crate) fn source_file(&mut self, path: &PathValue) -> Eval<Value> {
        let source = self.read_source(path)?;
        let root = self.root_here();
        let mut names = Names::script();
        names.session = self.transcript.is_some();
        for (name, kind) in root.names() {
            if kind.is_value() {
                names.value.insert(name)
            } else {
                names.command.insert(name)
            };
        }
        let shown: Str = path.display().into();
        let program = parse(&source, &names, Some(&shown)).map_err(|error| {
            if shown.ends_with(".shl") {
                return error;
            }
            error.with_hint(format!("source runs Shoal code; use sh {{ . {shown}; ... }}"))
        })?;
        let options = self.options(root.names().into_iter().map(|(name, _)| name).collect());
        self.run_program(&program, Unit::new(source), options, root)
    }

    /// Runs a script in a child evaluator with a fresh scope; its last value.
    pub(crate) fn run_script(&mut self, path: &PathValue, args: Vec<Value>) -> Eval<Value> {
        let source = self.read_source(path)?;
        let shown: Str = path.display().into();
        let mut names = Names::script();
        names.value.extend(["args".into(), "script".into()]);
        let program = parse(&source, &names, Some(&shown))?;
        let bound = |value| Binding { value, kind: BindingKind::Let };
        let mut bindings = Bindings::default();
        bindings.insert_mut("args".into(), bound(Value::list(args)?));
        bindings.insert_mut("script".into(), bound(Value::Path(path.clone())));
        let root = Root::new(RootKind::Own, bindings);
        let mut machine = self.child();
        machine.root = root.clone();
        machine.transcript = None;
        let options = self.options(vec!["args".into(), "script".into()]);
        let result = machine.run_program(&program, Unit::new(source), options, root.clone());
        self.modules.merge(&machine.modules);
        match result {
            Err(Unwind::Stop(Stop::Exit(_))) => Ok(Value::Null),
            Ok(value) => {
                if !holds_closures(&value) {
                    root.clear();
                }
                Ok(value)
            }
            Err(unwind) => Err(unwind),
        }
    }
}

/// Whether a value may keep the scope it came from.
fn holds_closures(value: &Value) -> bool {
    match value {
        Value::Closure(_) | Value::Command(_) | Value::Stream(_) | Value::Task(_) => true,
        Value::List(list) => list.iter().any(holds_closures),
        Value::Record(record) => record.values().iter().any(holds_closures),
        Value::Table(table) => table.rows().iter().any(|row| row.values().iter().any(holds_closures)),
        _ => false,
    }
}

/// Parses a source; the first mistake is the error, with the file it is in.
pub(crate) fn parse(source: &str, names: &Names, file: Option<&str>) -> Result<shoal_syntax::ast::Program, ErrorValue> {
    let parsed = shoal_syntax::parse(source, names);
    let Some(diag) = parsed.diags.first() else { return Ok(parsed.program) };
    let text = match file {
        Some(file) => format!("{file}: {}", diag.message()),
        None => diag.message(),
    };
    let place = crate::code::Place { start: diag.at.start as u32, end: diag.at.end as u32 };
    let error = ErrorValue::new(diag.code, text).or_span(Unit::new(source.into()).span(place));
    Err(match &diag.hint {
        Some(hint) => error.with_hint(hint.as_str()),
        None => error,
    })
}

/// The path without `.`, `..` and doubled slashes.
pub(crate) fn normalise(path: &PathValue) -> String {
    let text = path.display();
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// The arguments of a script as given: strings or paths.
pub(crate) fn script_args(ctx: &mut Ctx<'_>, values: Vec<Value>) -> Eval<Vec<Value>> {
    let _ = ctx;
    let mut args = Vec::new();
    for value in values {
        match value {
            Value::Str(_) | Value::Path(_) => args.push(value),
            Value::List(list) => args.extend(list.iter().cloned()),
            Value::Bytes(Bytes::Held(held)) => args.push(Value::Path(PathValue::from(&*held))),
            other => args.push(Value::Str(crate::command::argument_text(&other)?)),
        }
    }
    Ok(args)
}
