//! `cat`, `head` and `save`.

use std::io::{BufRead, BufReader};

use shoal_value::{Bytes, ErrorValue, List, MAX_TEXT, PathValue, Value, code, convert};

use super::place::paths;
use crate::Ctx;
use crate::host::{FileError, FileErrorKind, WriteMode};
use crate::methods::any::save_value;
use crate::methods::path::{path_like, read_file};
use crate::methods::rows::{Checked, MANY, PATH_LIKE, commands, functions, need};
use crate::registry::{Command, CommandArgs, Done, Function, Types};
use crate::unwind::Eval;

pub(super) const COMMANDS: &[Command] = commands! {
    /// The contents of all files in order: a str if that is UTF-8, else bytes.
    ///
    /// shoal> "a".save("x.txt"); "b".save("y.txt"); (cat x.txt y.txt).out
    /// "ab"
    /// shoal> cat nope.txt
    /// ! not_found
    cat "cat PATH...": [], Paths, (1, MANY), Outcome, Plain(Types::STR.or(Types::BYTES)), Reads, cat;

    /// The first N lines of a file, 10 if not given. What is not UTF-8 is replaced.
    ///
    /// shoal> "l1\nl2\nl3".save("f.txt"); (head f.txt 2).out
    /// ["l1", "l2"]
    head "head PATH [N = 10]": [], PathThenValues, (1, 2), Outcome, Plain(Types::LIST), Reads, head;

    /// Writes a value to a file, as the method `save` does, and gives the value.
    ///
    /// shoal> save f.txt hello; path("f.txt").read
    /// "hello"
    save "save PATH VALUE": [], PathThenValues, (2, 2), Bare, Any, Writes, |ctx, args| match &*args.args {
        [path, value] => save(ctx, path, value).map(Done::from),
        _ => Err(ErrorValue::arg_error("save needs a path and a value").into()),
    };
};

pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Writes a value to a file, as the method `save` does, and gives the value.
    ///
    /// shoal> save("f.txt", [1]); path("f.txt").read
    /// "[1]"
    save: [need("path", PATH_LIKE), need("value", Types::ANY)], Any, Writes,
        |ctx, args| save(ctx, args.value_at(0), args.value_at(1));
};

fn save(ctx: &Ctx<'_>, path: &Value, value: &Value) -> Eval<Value> {
    save_value(ctx, value, path, WriteMode::Truncate)?;
    Ok(value.clone())
}

fn cat(ctx: &mut Ctx<'_>, args: CommandArgs) -> Eval<Done> {
    let mut contents = Vec::new();
    for path in paths(&args.args)? {
        contents.extend(read_file(ctx, &path)?);
        if contents.len() > MAX_TEXT {
            let msg = format!("the files have more than {} MiB together", MAX_TEXT >> 20);
            return Err(ErrorValue::new(code::TOO_LARGE, msg).into());
        }
    }
    let (out, stdout) = match String::from_utf8(contents) {
        Ok(text) => {
            let stdout = Bytes::from(text.as_bytes());
            (Value::from(text), stdout)
        }
        Err(e) => {
            let bytes = Bytes::from(e.into_bytes());
            (Value::Bytes(bytes.clone()), bytes)
        }
    };
    Ok(Done { out, stdout: Some(stdout) })
}

/// Lines of a file that `head` gives if nothing is said.
const HEAD_LINES: usize = 10;

fn head(ctx: &mut Ctx<'_>, args: CommandArgs) -> Eval<Done> {
    let path = args.args.first().map(path_like).transpose()?.unwrap_or_else(|| PathValue::from(""));
    let wanted = args.args.get(1).map_or(Ok(HEAD_LINES), line_count)?;
    let reader = ctx.files().open(ctx.at(&path), ctx.cancel()).map_err(|e| ctx.file_error(&e, &path))?;
    let mut reader = BufReader::new(reader);
    let (mut lines, mut line) = (Vec::new(), Vec::new());
    while lines.len() < wanted {
        ctx.step(1)?;
        line.clear();
        let mut bounded = std::io::Read::take(&mut reader, MAX_TEXT as u64);
        let read = bounded.read_until(b'\n', &mut line).map_err(|e| read_error(ctx, &e, &path))?;
        if read == 0 {
            break;
        }
        ctx.alloc(read as u64)?;
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        lines.push(String::from_utf8_lossy(text.strip_suffix(b"\r").unwrap_or(text)).into_owned());
    }
    Ok(Value::from(List::leaves(lines)).into())
}

fn line_count(value: &Value) -> Result<usize, ErrorValue> {
    let n = match value {
        Value::Str(word) => convert::parse_int(word)?,
        Value::Int(n) => *n,
        other => return Err(ErrorValue::type_error(format!("head: N: expected int, found {}", other.type_name()))),
    };
    usize::try_from(n).map_err(|_| ErrorValue::type_error(format!("head: N: expected a count from 0, found {n}")))
}

/// A read that failed after the file was opened, such as one of a directory.
fn read_error(ctx: &Ctx<'_>, error: &std::io::Error, path: &PathValue) -> crate::Unwind {
    let kind = match error.kind() {
        std::io::ErrorKind::IsADirectory => FileErrorKind::IsDir,
        std::io::ErrorKind::PermissionDenied => FileErrorKind::Permission,
        _ if ctx.cancel().is_set() => FileErrorKind::Cancelled,
        _ => FileErrorKind::Io,
    };
    ctx.file_error(&FileError::new(kind, error.to_string()), path)
}
