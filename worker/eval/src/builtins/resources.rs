//! Resources of the host and watches on them. Only sessions have them.

use std::sync::Arc;

use shoal_value::{ErrorValue, Record, Str, Value, code};

use crate::Ctx;
use crate::host::{Host, Resources, WatchStart};
use crate::methods::rows::{Checked, functions, need, optional};
use crate::registry::{Args, Function, Types};
use crate::unwind::Eval;

pub(super) const FUNCTIONS: &[Function] = functions! {
    /// What the host offers to read, as a table `{uri, template, name, description, example, mime_type, server,
    /// subscribable}`.
    ///
    /// shoal> list_resources()
    /// ! custom
    list_resources: [], Plain(Types::TABLE), ResourceList, |ctx, _| {
        let host = ctx.host_handle();
        Ok(resources(&host)?.list(ctx.cancel())?.into())
    };

    /// The contents of a resource: JSON text as its value, other text as a str, anything else as bytes.
    ///
    /// shoal> read_resource("shoal://session/cwd")
    /// ! custom
    read_resource: [need("uri", Types::STR)], Data, Resource, |ctx, args| {
        let host = ctx.host_handle();
        Ok(resources(&host)?.read(args.str_at(0), ctx.cancel())?)
    };

    /// Starts a watch of a resource and gives `{name, uri, shape}`. `on_event` is source text that is run for each event.
    ///
    /// shoal> watch_start("w", "shoal://events/journal", x => x)
    /// ! arg_error
    watch_start: [
        need("name", Types::STR), need("uri", Types::STR), optional("on_event", Types::ANY),
        optional("lang", Types::STR), optional("persist", Types::BOOL),
    ], Plain(Types::RECORD), Watch, |ctx, args| {
        let watch = watch(&args)?;
        let host = ctx.host_handle();
        Ok(resources(&host)?.watch_start(watch, ctx.cancel())?.into())
    };

    /// Stops a watch: whether there was one.
    ///
    /// shoal> watch_stop("w")
    /// ! custom
    watch_stop: [need("name", Types::STR)], Plain(Types::BOOL), Session, |ctx, args| {
        let host = ctx.host_handle();
        Ok(Value::Bool(resources(&host)?.watch_stop(args.str_at(0))?))
    };

    /// The watches of the session as a table.
    ///
    /// shoal> watch_list()
    /// ! custom
    watch_list: [], Plain(Types::TABLE), Nothing, |ctx, _| {
        let host = ctx.host_handle();
        Ok(resources(&host)?.watch_list()?.into())
    };

    /// Calls a tool of a configured server. Only filters of watches may, and only tools marked as reading.
    ///
    /// shoal> call_tool("server", "tool")
    /// ! custom
    call_tool: [need("server", Types::STR), need("tool", Types::STR), optional("args", Types::RECORD)], Data, Opaque,
        |ctx, args| call_tool(ctx, &args);
};

fn resources(host: &Arc<dyn Host>) -> Result<&dyn Resources, ErrorValue> {
    host.resources().ok_or_else(|| {
        ErrorValue::new(code::CUSTOM, "there are no resources here").with_hint("resources and watches need a session")
    })
}

/// Most characters of a watch's name.
const MAX_NAME: usize = 64;

/// Name under which the host reports the watches it starts again.
const RESERVED: &str = "restore";

/// The arguments of `watch_start`, as far as they can be checked without the host.
fn watch(args: &Args) -> Result<WatchStart, ErrorValue> {
    let name = args.str_at(0);
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    if name.is_empty() || name.len() > MAX_NAME || !plain || name == RESERVED {
        let msg = format!("watch_start: invalid name \"{name}\"");
        let hint = format!("1 to {MAX_NAME} letters, digits, `.`, `_` and `-`; `{RESERVED}` is taken");
        return Err(ErrorValue::arg_error(msg).with_hint(hint));
    }
    let lang = args.text(3).cloned().unwrap_or_else(|| Str::from("shoal"));
    if !matches!(&*lang, "shoal" | "python") {
        let msg = format!("watch_start: unknown lang \"{lang}\"");
        return Err(ErrorValue::arg_error(msg).with_hint("lang is \"shoal\" or \"python\""));
    }
    Ok(WatchStart {
        name: name.into(),
        uri: args.str_at(1).into(),
        on_event: on_event(args.value_at(2))?,
        lang,
        persist: !matches!(args.peek(4), Some(Value::Bool(false))),
    })
}

/// A filter outlives the scope of the request, so it is text and not a closure.
fn on_event(value: &Value) -> Result<Option<Str>, ErrorValue> {
    match value {
        Value::Null => Ok(None),
        Value::Str(source) => Ok(Some(source.clone())),
        other => {
            let msg = format!("watch_start: on_event must be source text, found {}", other.type_name());
            Err(ErrorValue::arg_error(msg).with_hint("write it as a str: on_event: '\"{event.type}\"'"))
        }
    }
}

fn call_tool(ctx: &mut Ctx<'_>, args: &Args) -> Eval<Value> {
    let empty = Record::empty();
    let input = match args.value_at(2) {
        Value::Record(record) => record,
        _ => &empty,
    };
    let host = ctx.host_handle();
    Ok(resources(&host)?.call_tool(args.str_at(0), args.str_at(1), input, ctx.cancel())?)
}
