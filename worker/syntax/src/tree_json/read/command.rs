//! Commands.

use super::{Node, Read, malformed};
use crate::ast::{
    Arg, ArgKind, CmdCall, EnvAssign, FlagValue, Head, JoinedKind, Name, Piece, PieceKind, Redirect, RedirectKind, Span,
};

pub(super) fn call(node: Node<'_>) -> Read<CmdCall> {
    let text: Name = node.name("head")?;
    let path = text.starts_with('~') || ["/", "./", "../"].iter().any(|start| text.starts_with(start));
    let block = match node.member("trailing").is_null() {
        true => None,
        false => Some(node.block("trailing")?),
    };
    Ok(CmdCall {
        env_prefix: node.list("env_prefix", env_assign)?,
        forced: node.flag("forced"),
        head: Head { text, path, span: node.span() },
        args: node.list("args", arg)?,
        redirects: node.list("redirects", redirect)?,
        background: node.flag("background"),
        block,
        span: node.span(),
    })
}

fn env_assign(node: Node<'_>) -> Read<EnvAssign> {
    Ok(EnvAssign { name: node.ident("name")?, value: node.child("value", arg)?, span: node.span() })
}

fn redirect(node: Node<'_>) -> Read<Redirect> {
    let kind = match node.kind()? {
        "in" => RedirectKind::In,
        "out" => RedirectKind::Out,
        "append" => RedirectKind::Append,
        _ => return malformed("in, out or append"),
    };
    Ok(Redirect { kind, target: node.child("target", arg)?, span: node.span() })
}

pub(super) fn word(text: &str, span: Span) -> Arg {
    Arg { kind: ArgKind::Word(text.into()), span }
}

pub(super) fn arg(node: Node<'_>) -> Read<Arg> {
    let kind = match node.kind()? {
        "word" => ArgKind::Word(node.name("text")?),
        "path" => ArgKind::Path(node.name("text")?),
        "glob" => ArgKind::Glob(node.name("pattern")?),
        "str" => ArgKind::Quoted(node.expr("expr")?),
        "expr" => ArgKind::Group(node.expr("expr")?),
        "flag_long" => long_flag(node)?,
        "flag_short" => {
            let letters = node.name("chars")?;
            ArgKind::ShortFlags { raw: format!("-{letters}").into(), letters }
        }
        "dash_dash" => ArgKind::DashDash,
        "dash" => ArgKind::Dash,
        "joined" => joined(node)?,
        _ => return malformed("a kind of argument").map_err(|error: super::Malformed| error.inside("kind")),
    };
    Ok(Arg { kind, span: node.span() })
}

/// An empty word as the value is the flag that takes the next argument, `--name=`.
fn long_flag(node: Node<'_>) -> Read<ArgKind> {
    let name = node.name("name")?;
    let value = match node.optional("value", arg)? {
        None => FlagValue::None,
        Some(Arg { kind: ArgKind::Word(text), .. }) if text.is_empty() => FlagValue::Next,
        Some(value) => FlagValue::Given(Box::new(value)),
    };
    let equals = if value == FlagValue::None { "" } else { "=" };
    Ok(ArgKind::LongFlag { raw: format!("--{name}{equals}").into(), name, value })
}

fn joined(node: Node<'_>) -> Read<ArgKind> {
    let all = [JoinedKind::Word, JoinedKind::Path, JoinedKind::Glob, JoinedKind::Flag];
    let wanted = node.str("as")?;
    let kind = all.into_iter().find(|kind| crate::tree_json::command::joined_kind(*kind) == wanted);
    let Some(kind) = kind else { return malformed("word, path, glob or flag") };
    Ok(ArgKind::Joined { pieces: node.list("pieces", piece)?, kind })
}

fn piece(node: Node<'_>) -> Read<Piece> {
    let kind = match node.kind()? {
        "word" => PieceKind::Bare(node.name("text")?),
        "str" => PieceKind::Quoted(node.expr("expr")?),
        "expr" => PieceKind::Group(node.expr("expr")?),
        _ => return malformed("word, str or expr"),
    };
    Ok(Piece { kind, span: node.span() })
}
