//! `reef`: the tools that manifests want, and their lock.

use shoal_value::{ErrorValue, PathValue, Record, Str, Table, Value, code};

use crate::Ctx;
use crate::host::{At, WriteMode};
use crate::methods::rows::{MANY, commands, switch};
use crate::reef::lock::{self, Locked};
use crate::reef::manifest::NATIVE;
use crate::reef::providers::{Candidate, candidates};
use crate::reef::scopes::{Demand, Scopes};
use crate::reef::{child, edit, file_error, text_of, trouble};
use crate::registry::{Command, CommandArgs, Done};
use crate::unwind::{Eval, Unwind};

pub(super) const COMMANDS: &[Command] = commands! {
    /// The tools that the manifests here want, and what they are: a table. `add` puts one into the manifest and locks it,
    /// `lock` locks what is not locked yet, with `--refresh` everything, `doctor` compares lock and machine, `fetch` lets
    /// mise install a tool. In scripts with SHOAL_REEF=1 only.
    ///
    /// shoal> reef.len()
    /// 0
    /// shoal> "[tools]\nrg = \"14\"".save(".reef.toml"); reef.map(.scope)
    /// ["unresolved: reef_not_found"]
    reef "reef [add TOOL@VERSION | lock [--refresh] | fetch TOOL | doctor]": [switch("refresh", "")], Texts, (0, MANY),
        Outcome, Any, Opaque, reef;
};

fn reef(ctx: &mut Ctx<'_>, args: CommandArgs) -> Eval<Done> {
    if !ctx.host().reads_manifests() {
        return Err(crate::reef::off("reef").into());
    }
    let words: Vec<Str> = args.args.iter().filter_map(|word| word.as_str().map(Str::from)).collect();
    let words: Vec<&str> = words.iter().map(|word| &**word).collect();
    if args.on("refresh") && words != ["lock"] {
        return Err(ErrorValue::arg_error("reef: --refresh belongs to `reef lock`").into());
    }
    match words.as_slice() {
        [] => bindings(ctx),
        ["lock"] => lock_all(ctx, args.on("refresh")),
        ["doctor"] => doctor(ctx),
        ["add", spec] => add(ctx, spec),
        ["fetch", tool] => fetch(ctx, tool),
        ["add" | "fetch", ..] => Err(usage(&format!("{} takes one tool", words[0]))),
        _ => Err(usage(&format!("unknown form `{}`", words.join(" ")))),
    }
    .map(Done::from)
}

fn usage(text: &str) -> Unwind {
    let hint =
        "usage: reef [add TOOL@VERSION | lock [--refresh] | fetch TOOL | doctor]; quote a `*`, or write `latest`";
    ErrorValue::arg_error(format!("reef: {text}")).with_hint(hint).into()
}

/// What a name that scopes mention is here.
pub(super) struct Report {
    name: Str,
    /// `reef`, or `unresolved: CODE`.
    scope: Str,
    constraint: Value,
    version: Value,
    path: Value,
    hash8: Value,
    provider: Value,
    chain: Vec<(Str, Str)>,
}

impl Report {
    /// Looks the name up without raising: trouble stands in its scope. `None` if no scope mentions it.
    pub(super) fn of(ctx: &Ctx<'_>, scopes: &Scopes, name: &str) -> Eval<Option<Self>> {
        let machine = ctx.peek();
        let mut report = Self {
            name: name.into(),
            scope: "reef".into(),
            constraint: Value::Null,
            version: Value::Null,
            path: Value::Null,
            hash8: Value::Null,
            provider: Value::Null,
            chain: scopes.chain(name),
        };
        let demand = match scopes.demand(name) {
            Ok(None) => return Ok(None),
            Ok(Some(demand)) => demand,
            Err(error) => return Ok(Some(report.unresolved(&error.code))),
        };
        report.constraint = demand.constraint.clone().into();
        if let Some(entry) = scopes.locked(machine, &demand)? {
            report.version = entry.version.clone().into();
            report.hash8 = Value::str(entry.hash8());
            report.provider = entry.provider.clone().into();
            report.path = Value::Path(entry.path.clone());
            let intact = lock::intact(machine, &entry)?;
            return Ok(Some(if intact { report } else { report.unresolved(code::REEF_DRIFT) }));
        }
        match candidates(machine, &demand)?.into_iter().next() {
            None => Ok(Some(report.unresolved(code::REEF_NOT_FOUND))),
            Some(candidate) => {
                report.version = candidate.version.into();
                report.provider = Value::str(candidate.provider);
                report.path = Value::Path(candidate.path);
                Ok(Some(report))
            }
        }
    }

    fn unresolved(mut self, code: &str) -> Self {
        self.scope = format!("unresolved: {code}").into();
        self
    }

    fn binding(self) -> Result<Record, ErrorValue> {
        Record::new([
            ("name", self.name.into()),
            ("constraint", self.constraint),
            ("version", self.version),
            ("hash8", self.hash8),
            ("provider", self.provider),
            ("scope", self.scope.into()),
        ])
    }

    /// The full record, as `which` gives it.
    pub(super) fn record(self) -> Result<Record, ErrorValue> {
        let chain = self.chain.into_iter();
        let chain = chain.map(|(scope, constraint)| {
            Record::new([("scope", Value::from(scope)), ("constraint", constraint.into())]).map(Value::Record)
        });
        let chain = Value::list(chain.collect::<Result<Vec<_>, _>>()?)?;
        Record::new([
            ("name", self.name.into()),
            ("scope", self.scope.into()),
            ("constraint", self.constraint),
            ("version", self.version),
            ("path", self.path),
            ("hash8", self.hash8),
            ("provider", self.provider),
            ("chain", chain),
        ])
    }
}

fn bindings(ctx: &mut Ctx<'_>) -> Eval<Value> {
    let scopes = Scopes::here(ctx.peek())?;
    let mut rows = Vec::new();
    for name in scopes.names() {
        if let Some(report) = Report::of(ctx, &scopes, &name)? {
            rows.push(report.binding()?);
        }
    }
    let columns = ["name", "constraint", "version", "hash8", "provider", "scope"];
    Ok(Value::Table(Table::with_columns(columns, rows)?))
}

fn lock_all(ctx: &mut Ctx<'_>, refresh: bool) -> Eval<Value> {
    let scopes = Scopes::here(ctx.peek())?;
    let Some(path) = scopes.lock_path() else {
        let error = ErrorValue::new(code::REEF_NOT_FOUND, "no manifest here or above");
        return Err(error.with_hint("`reef add TOOL@VERSION` starts one").into());
    };
    let known = lock::read(ctx.peek(), &path)?;
    let mut entries = Vec::new();
    for name in scopes.names() {
        let Some(demand) = scopes.demand(&name)? else { continue };
        let kept = known.iter().find(|entry| demand.is_met_by(entry));
        entries.push(match kept.filter(|_| !refresh) {
            Some(entry) => entry.clone(),
            None => choose(ctx, &demand)?,
        });
    }
    lock::write(ctx.peek(), &path, &entries)?;
    let rows = entries.into_iter().map(|entry| {
        let hash8 = Value::str(entry.hash8());
        Record::new([
            ("name", Value::from(entry.name)),
            ("version", entry.version.into()),
            ("provider", entry.provider.into()),
            ("path", Value::Path(entry.path)),
            ("hash8", hash8),
        ])
    });
    let columns = ["name", "version", "provider", "path", "hash8"];
    Ok(Value::Table(Table::with_columns(columns, rows.collect::<Result<_, _>>()?)?))
}

/// The best candidate, with the hash of its bytes.
fn choose(ctx: &Ctx<'_>, demand: &Demand) -> Eval<Locked> {
    let (name, constraint) = (&demand.name, &demand.constraint);
    let missing = |text: String| Unwind::from(ErrorValue::new(code::REEF_NOT_FOUND, text));
    let candidate = candidates(ctx.peek(), demand)?.into_iter().next();
    let Candidate { provider, version, path } =
        candidate.ok_or_else(|| missing(format!("no provider has `{name}` {constraint}")))?;
    let hash = lock::hash(ctx.peek(), &path)?.ok_or_else(|| missing(format!("{}: cannot be read", path.display())))?;
    Ok(Locked {
        name: name.clone(),
        version: version.unwrap_or_else(|| "unknown".into()),
        provider: provider.into(),
        path,
        blake3: hash.into(),
        resolved_at: ctx.clock().now().to_string().into(),
    })
}

fn add(ctx: &mut Ctx<'_>, spec: &str) -> Eval<Value> {
    let Some((tool, version)) = spec.split_once('@').filter(|(tool, version)| !tool.is_empty() && !version.is_empty())
    else {
        return Err(usage(&format!("`{spec}` is not TOOL@VERSION")));
    };
    if version.starts_with(['^', '~', '>', '<', '=']) {
        return Err(usage(&format!(
            "`{version}` is a range: a version is `*`, `latest` or a prefix such as 18 or 3.11"
        )));
    }
    let machine = ctx.peek();
    let here = child(machine.place.cwd.path(), NATIVE);
    let path = match text_of(machine, &here)? {
        Some(_) => here,
        None => nearest_native(ctx)?.unwrap_or(here),
    };
    let machine = ctx.peek();
    let text = text_of(machine, &path)?.unwrap_or_default();
    let text = edit::with_tool(&path, &text, tool, version)?;
    let at = At { dir: &machine.place.cwd, path: path.as_bytes() };
    let files = machine.session.host.files();
    files
        .write(at, WriteMode::Truncate, text.as_bytes(), &machine.run.cancel)
        .map_err(|error| file_error(machine, &error, &path))?;
    lock_added(ctx, tool)
}

/// The nearest native manifest above; other manifests need not be sound for that.
fn nearest_native(ctx: &Ctx<'_>) -> Eval<Option<PathValue>> {
    Ok(Scopes::here(ctx.peek())?.native().cloned())
}

/// Locks a tool that was just added, if a provider has it; its row in the table of bindings.
fn lock_added(ctx: &mut Ctx<'_>, tool: &str) -> Eval<Value> {
    let scopes = Scopes::here(ctx.peek())?;
    if let (Some(path), Ok(Some(demand))) = (scopes.lock_path(), scopes.demand(tool))
        && !candidates(ctx.peek(), &demand)?.is_empty()
    {
        let entry = choose(ctx, &demand)?;
        let mut entries = lock::read(ctx.peek(), &path)?;
        entries.retain(|known| known.name != entry.name);
        entries.push(entry);
        lock::write(ctx.peek(), &path, &entries)?;
    }
    let report = Report::of(ctx, &scopes, tool)?;
    let record = report.map(Report::binding).transpose()?;
    Ok(record.map_or(Value::Null, Value::Record))
}

fn fetch(ctx: &mut Ctx<'_>, tool: &str) -> Eval<Value> {
    let scopes = Scopes::here(ctx.peek())?;
    let Some(demand) = scopes.demand(tool)? else {
        let text = format!("no manifest here mentions `{tool}`");
        let error = ErrorValue::new(code::REEF_NOT_FOUND, text);
        return Err(error.with_hint(format!("`reef add {tool}@VERSION` does")).into());
    };
    if crate::command::on_path(ctx.peek(), "mise").is_none() {
        let error = trouble(format!("fetching `{tool}` needs mise, which is not on PATH"));
        return Err(error.with_hint("install the tool by other means, then `reef lock`").into());
    }
    let wanted = if &*demand.constraint == "*" { "latest" } else { &*demand.constraint };
    let words = ["install".into(), Value::from(format!("{tool}@{wanted}"))];
    let outcome = crate::native::run_program(ctx.machine(), &"mise".into(), words.to_vec())?;
    match &outcome {
        Value::Outcome(outcome) if outcome.ok => lock_added(ctx, tool),
        _ => Err(trouble(format!("mise could not install `{tool}@{wanted}`")).into()),
    }
}

fn doctor(ctx: &mut Ctx<'_>) -> Eval<Value> {
    let machine = ctx.peek();
    let scopes = Scopes::here(machine)?;
    let entries = match scopes.lock_path() {
        Some(path) => lock::read(machine, &path)?,
        None => Vec::new(),
    };
    let wanted = scopes.names();
    let mut rows = Vec::new();
    let mut row = |check: &str, name: &Str, status: &str, path: &PathValue| -> Result<(), ErrorValue> {
        rows.push(Record::new([
            ("check", Value::str(check)),
            ("name", name.clone().into()),
            ("status", Value::str(status)),
            ("path", Value::Path(path.clone())),
        ])?);
        Ok(())
    };
    for entry in &entries {
        let intact = lock::intact(machine, entry)?;
        row("drift", &entry.name, if intact { "ok" } else { "drift" }, &entry.path)?;
    }
    for entry in &entries {
        if let Some(ambient) = crate::command::on_path(machine, &entry.name).filter(|path| *path != entry.path) {
            row("shadowed_ambient", &entry.name, "shadowed", &ambient)?;
        }
    }
    for entry in entries.iter().filter(|entry| !wanted.contains(&entry.name)) {
        row("orphan", &entry.name, "orphan", &entry.path)?;
    }
    Ok(Value::Table(Table::with_columns(["check", "name", "status", "path"], rows)?))
}
