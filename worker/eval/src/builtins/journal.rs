//! `journal`, `history` and `undo`. The journal belongs to the host; without one the tables are empty.

use shoal_value::record::Shape;
use shoal_value::{DateTime, ErrorValue, List, Record, Str, Table, Value, code, convert};

use crate::Ctx;
use crate::host::{JournalQuery, JournalRow};
use crate::methods::rows::{commands, setting};
use crate::registry::{Command, CommandArgs, Done, Types};
use crate::unwind::Eval;

pub(super) const COMMANDS: &[Command] = commands! {
    /// What was run, newest first: a table `{id, ts, principal, src, ok, status, effects}`. It is empty without a journal.
    ///
    /// shoal> journal.len()
    /// 0
    journal "journal [--head=W] [--principal=P] [--limit=N]":
        [setting("head", Types::STR), setting("principal", Types::STR), setting("limit", Types::INT)],
        Values, (0, 0), Bare, Plain(Types::TABLE), Journal, |ctx, args| table(ctx, &args, false);

    /// What was run in this session, as `journal` shows it.
    ///
    /// shoal> history.columns()
    /// ["id", "ts", "principal", "src", "ok", "status", "effects"]
    history "history [--head=W] [--limit=N]": [setting("head", Types::STR), setting("limit", Types::INT)],
        Values, (0, 0), Bare, Plain(Types::TABLE), Journal, |ctx, args| table(ctx, &args, true);

    /// Takes back the file changes of a journal entry, of the newest one that has any if ID is not given: a record
    /// `{entry, undone, actions}`. With `--root` nothing is undone unless all of it lies below that directory.
    ///
    /// shoal> undo
    /// ! custom
    undo "undo [ID] [--root=DIR]": [setting("root", Types::STR.or(Types::PATH))], Texts, (0, 1), Bare, Plain(Types::RECORD), Undo, undo;
};

const COLUMNS: [&str; 7] = ["id", "ts", "principal", "src", "ok", "status", "effects"];

fn table(ctx: &mut Ctx<'_>, args: &CommandArgs, this_session: bool) -> Eval<Done> {
    let text = |name: &str| match args.flag(name) {
        Some(Value::Str(text)) => Some(text.clone()),
        _ => None,
    };
    let limit = args.flag("limit").map(limit).transpose()?;
    let query = JournalQuery { this_session, head: text("head"), principal: text("principal"), limit };
    let host = ctx.host_handle();
    let entries = match host.journal() {
        Some(journal) => journal.query(&query, ctx.cancel())?,
        None => Vec::new(),
    };
    let shape = Shape::new(COLUMNS);
    let rows = entries.into_iter().map(|entry| Record::with_shape(&shape, cells(ctx, entry)));
    Ok(Value::from(Table::with_columns(COLUMNS, rows.collect::<Result<_, _>>()?)?).into())
}

fn limit(value: &Value) -> Result<u64, ErrorValue> {
    let n = match value {
        Value::Str(word) => convert::parse_int(word)?,
        Value::Int(n) => *n,
        other => return Err(ErrorValue::type_error(format!("--limit: expected int, found {}", other.type_name()))),
    };
    u64::try_from(n).map_err(|_| ErrorValue::type_error(format!("--limit: expected a count from 0, found {n}")))
}

fn cells(ctx: &Ctx<'_>, entry: JournalRow) -> Vec<Value> {
    vec![
        entry.id.into(),
        DateTime::from(entry.ts.to_zoned_datetime(ctx.clock().zone())).into(),
        entry.principal.into(),
        entry.src.into(),
        entry.ok.into(),
        entry.status.into(),
        List::leaves(entry.effects).into(),
    ]
}

fn undo(ctx: &mut Ctx<'_>, args: CommandArgs) -> Eval<Done> {
    let entry = args.args.first().map(entry_id).transpose()?;
    let host = ctx.host_handle();
    let Some(journal) = host.journal() else {
        return Err(ErrorValue::new(code::CUSTOM, "undo: there is no journal here").into());
    };
    let root = match args.flag("root") {
        Some(Value::Path(path)) => Some(path.clone()),
        Some(Value::Str(text)) => Some(shoal_value::PathValue::from(&**text)),
        _ => None,
    };
    let root = root.map(|root| crate::ctx::join_path(ctx.cwd().path(), &root));
    let report = journal.undo(entry.as_deref(), root.as_ref().map(|root| root.as_bytes()), ctx.cancel())?;
    let record = [
        ("entry", report.entry.into()),
        ("undone", report.undone.into()),
        ("actions", List::leaves(report.actions).into()),
    ];
    Ok(Value::record(record)?.into())
}

/// An entry as a word, or as the value that `journal` shows.
fn entry_id(value: &Value) -> Result<Str, ErrorValue> {
    match value {
        Value::Str(id) => Ok(id.clone()),
        Value::Int(id) => Ok(id.to_string().into()),
        other => Err(ErrorValue::type_error(format!("undo: ID: expected str, found {}", other.type_name()))),
    }
}
