//! `env` and `which`.

use shoal_value::record::Shape;
use shoal_value::{ErrorValue, PathValue, Record, Table, Value, code};

use super::namespaces::env_record;
use super::place::{child, last_part};
use super::reef::Report;
use crate::Ctx;
use crate::host::FileKind;
use crate::methods::rows::{commands, switch};
use crate::reef::providers::{Candidate, candidates as candidates_of};
use crate::reef::scopes::Scopes;
use crate::registry::{Command, CommandArgs, Done};
use crate::unwind::Eval;

pub(super) const COMMANDS: &[Command] = commands! {
    /// The variables of the session as a record, or one of them: a str, or null if it is not set.
    ///
    /// shoal> (env SURELY_UNSET).out
    /// null
    env "env [NAME]": [], Texts, (0, 1), Outcome, Data, Env, env;

    /// The program a name stands for: a record `{name, path}`, or null. With `-a`, all programs of that name on PATH. Where
    /// a manifest wants the name, the record also has `scope`, `constraint`, `version`, `hash8`, `provider` and `chain`.
    ///
    /// shoal> (which surely-no-such-program).out
    /// null
    which "which [-a|--all] NAME": [switch("all", "a")], Texts, (1, 1), Outcome, Data, SearchPath, which;
};

fn env(ctx: &mut Ctx<'_>, args: CommandArgs) -> Eval<Done> {
    let Some(name) = args.args.first() else { return Ok(Value::Record(env_record(ctx)?).into()) };
    let name = word("env", name)?;
    ctx.host().judge_env(false, name)?;
    Ok(match ctx.env().get(name) {
        None => Value::Null,
        Some(bytes) => Value::str(
            std::str::from_utf8(bytes)
                .map_err(|_| ErrorValue::new(code::UTF8_ERROR, format!("the variable {name} is not UTF-8")))?,
        ),
    }
    .into())
}

fn word<'a>(command: &str, value: &'a Value) -> Result<&'a str, ErrorValue> {
    value
        .as_str()
        .ok_or_else(|| ErrorValue::type_error(format!("{command}: NAME: expected str, found {}", value.type_name())))
}

fn which(ctx: &mut Ctx<'_>, args: CommandArgs) -> Eval<Done> {
    let name = args.args.first().map_or(Ok(""), |value| word("which", value))?;
    let all = args.on("all");
    if ctx.host().reads_manifests() && !name.contains('/') {
        let scopes = Scopes::here(ctx.peek())?;
        if all && let Some(demand) = scopes.demand(name)? {
            return Ok(every_candidate(&candidates_of(ctx.peek(), &demand)?, name)?.into());
        }
        if let Some(report) = Report::of(ctx, &scopes, name)? {
            return Ok(Value::Record(report.record()?).into());
        }
    }
    let mut found = Vec::new();
    for path in candidates(ctx, name) {
        ctx.step(1)?;
        let program = ctx.files().meta(ctx.at(&path), true);
        if program.is_ok_and(|meta| meta.kind == FileKind::File && meta.executable) {
            found.push(ctx.absolute(&path));
            if !all {
                break;
            }
        }
    }
    let shape = Shape::new(["name", "path"]);
    let row = |path: PathValue| Record::with_shape(&shape, vec![Value::str(name), Value::Path(path)]);
    let rows = found.into_iter().map(row).collect::<Result<Vec<_>, _>>()?;
    Ok(match rows.into_iter() {
        rows if all => Value::Table(Table::with_columns(["name", "path"], rows.collect())?),
        mut rows => rows.next().map_or(Value::Null, Value::Record),
    }
    .into())
}

/// All programs a wanted name could mean, the best first.
fn every_candidate(found: &[Candidate], name: &str) -> Result<Value, ErrorValue> {
    let rows = found.iter().map(|candidate| {
        Record::new([
            ("name", Value::str(name)),
            ("path", Value::Path(candidate.path.clone())),
            ("version", candidate.version.clone().into()),
            ("provider", Value::str(candidate.provider)),
        ])
    });
    let columns = ["name", "path", "version", "provider"];
    Ok(Value::Table(Table::with_columns(columns, rows.collect::<Result<_, _>>()?)?))
}

/// Where the program may be: the place itself if the name has a slash, else below each directory of PATH; an empty one is the
/// working directory.
fn candidates(ctx: &Ctx<'_>, name: &str) -> Vec<PathValue> {
    if name.contains('/') {
        return vec![PathValue::from(name)];
    }
    // `.` and `..` would name directories.
    if name.is_empty() || last_part(&PathValue::from(name)) != name.as_bytes() {
        return Vec::new();
    }
    let dirs = ctx.env().get("PATH").cloned();
    let dirs = dirs.iter().flat_map(|dirs| dirs.split(|byte| *byte == b':'));
    dirs.map(|dir| child(&PathValue::from(dir), name.as_bytes())).collect()
}
