//! Commands.

use serde_json::Value;

use super::stmt::block;
use super::{array, expr, node, object, optional, place, text};
use crate::ast::{Arg, ArgKind, CmdCall, EnvAssign, FlagValue, JoinedKind, Piece, PieceKind, Redirect, RedirectKind};

pub(super) fn call(call: &CmdCall) -> Value {
    object!({
        "head": text(&call.head.text),
        "forced": call.forced,
        "args": array(&call.args, arg),
        "redirects": array(&call.redirects, redirect),
        "env_prefix": array(&call.env_prefix, env_assign),
        "background": call.background,
        "trailing": optional(call.block.as_ref(), block),
        "span": place(call.span),
    })
}

fn redirect(redirect: &Redirect) -> Value {
    let kind = match redirect.kind {
        RedirectKind::In => "in",
        RedirectKind::Out => "out",
        RedirectKind::Append => "append",
    };
    object!({ "kind": kind, "target": arg(&redirect.target), "span": place(redirect.span) })
}

fn env_assign(assign: &EnvAssign) -> Value {
    object!({ "name": text(&assign.name.name), "value": arg(&assign.value), "span": place(assign.span) })
}

pub(super) fn arg(a: &Arg) -> Value {
    let at = a.span;
    match &a.kind {
        ArgKind::Word(word) => node("word", [("text", text(word))], at),
        ArgKind::Path(path) => node("path", [("text", text(path))], at),
        ArgKind::Glob(pattern) => node("glob", [("pattern", text(pattern))], at),
        ArgKind::Quoted(quoted) => node("str", [("expr", expr::expr(quoted))], at),
        ArgKind::Group(group) => node("expr", [("expr", expr::expr(group))], at),
        ArgKind::LongFlag { name, value, .. } => {
            let value = match value {
                FlagValue::None => Value::Null,
                FlagValue::Next => node("word", [("text", text(""))], at),
                FlagValue::Given(value) => arg(value),
            };
            node("flag_long", [("name", text(name)), ("value", value)], at)
        }
        ArgKind::ShortFlags { letters, .. } => node("flag_short", [("chars", text(letters))], at),
        ArgKind::DashDash => node("dash_dash", [], at),
        ArgKind::Dash => node("dash", [], at),
        ArgKind::Joined { pieces, kind } => {
            node("joined", [("pieces", array(pieces, piece)), ("as", text(joined_kind(*kind)))], at)
        }
    }
}

fn piece(piece: &Piece) -> Value {
    match &piece.kind {
        PieceKind::Bare(word) => node("word", [("text", text(word))], piece.span),
        PieceKind::Quoted(quoted) => node("str", [("expr", expr::expr(quoted))], piece.span),
        PieceKind::Group(group) => node("expr", [("expr", expr::expr(group))], piece.span),
    }
}

pub(super) fn joined_kind(kind: JoinedKind) -> &'static str {
    match kind {
        JoinedKind::Word => "word",
        JoinedKind::Path => "path",
        JoinedKind::Glob => "glob",
        JoinedKind::Flag => "flag",
    }
}
