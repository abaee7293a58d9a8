//! Names of the language that this build does not have yet. They say so, instead of looking like misspelt programs.

use shoal_value::{ErrorValue, code};

use crate::methods::rows::{MANY, commands, functions, optional, rest};
use crate::registry::{Command, CommandArgs, Done, Function, Namespace, Types};
use crate::unwind::Eval;

pub(super) const COMMANDS: &[Command] = commands! {
    /// Goes to a directory that was visited often. Not available in this build.
    ///
    /// shoal> j
    /// ! custom
    j "j [QUERY]": [], Texts, (0, MANY), Bare, Plain(Types::PATH), Session, |ctx, args| jump(ctx, &args, "j");

    /// Goes to a directory that was visited often. Not available in this build.
    ///
    /// shoal> jump a b
    /// ! arg_error
    jump "jump [QUERY]": [], Texts, (0, MANY), Bare, Plain(Types::PATH), Session, |ctx, args| jump(ctx, &args, "jump");

    /// Runs a program on the terminal. Not available in this build.
    ///
    /// shoal> interact
    /// ! custom
    interact "interact CMD...": [], Values, (0, MANY), Bare, Any, Opaque, |_, _| Err(unavailable("interact").into());

    /// Hands a file to the desktop. Not available in this build.
    ///
    /// shoal> open f.txt
    /// ! custom
    open "open PATH": [], Values, (0, MANY), Bare, Any, Opaque, |_, _| Err(unavailable("open").into());
};

fn jump(ctx: &mut crate::Ctx<'_>, args: &CommandArgs, name: &str) -> Eval<Done> {
    ctx.top_level(name)?;
    if args.args.len() > 1 {
        return Err(ErrorValue::arg_error(format!("{name} takes at most one query, got {}", args.args.len())).into());
    }
    Err(unavailable(name).into())
}

pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Hands a file to the desktop. Not available in this build.
    ///
    /// shoal> open("f.txt")
    /// ! custom
    open: [rest("args", Types::ANY)], Any, Opaque, |_, _| Err(unavailable("open").into());

    /// A stream of changes of files. Not available in this build.
    ///
    /// shoal> watch("src")
    /// ! custom
    watch: [rest("args", Types::ANY), optional("recursive", Types::BOOL)], Any, Reads, |_, _| {
        Err(unavailable("watch").into())
    };

    /// A stream of lines appended to a file. Not available in this build.
    ///
    /// shoal> tail("app.log")
    /// ! custom
    tail: [rest("args", Types::ANY), optional("from_start", Types::BOOL)], Any, Reads, |_, _| {
        Err(unavailable("tail").into())
    };
};

/// `http`: requests.
pub(super) static HTTP: Namespace = Namespace {
    name: "http",
    doc: "HTTP requests. Not available in this build.",
    constants: &[],
    dynamic: None,
    functions: functions! {
        /// A GET request. Not available in this build.
        ///
        /// shoal> http.get("https://example.com")
        /// ! custom
        get: [rest("args", Types::ANY)], Any, Opaque, |_, _| later("http.get");
        /// A DELETE request. Not available in this build.
        ///
        /// shoal> http.delete("https://example.com")
        /// ! custom
        delete: [rest("args", Types::ANY)], Any, Opaque, |_, _| later("http.delete");
        /// A POST request. Not available in this build.
        ///
        /// shoal> http.post("https://example.com", "x")
        /// ! custom
        post: [rest("args", Types::ANY)], Any, Opaque, |_, _| later("http.post");
        /// A PUT request. Not available in this build.
        ///
        /// shoal> http.put("https://example.com", "x")
        /// ! custom
        put: [rest("args", Types::ANY)], Any, Opaque, |_, _| later("http.put");
    },
};

/// `secret`: named secrets.
pub(super) static SECRET: Namespace = Namespace {
    name: "secret",
    doc: "Named secrets. Not available in this build.",
    constants: &[],
    dynamic: None,
    functions: functions! {
        /// A secret by name. Not available in this build.
        ///
        /// shoal> secret.get("token")
        /// ! custom
        get: [rest("args", Types::ANY)], Any, Opaque, |_, _| later("secret.get");
    },
};

fn later(name: &str) -> Eval<shoal_value::Value> {
    Err(unavailable(name).into())
}

/// The error of a name that is not there yet, with what does the work today.
fn unavailable(name: &str) -> ErrorValue {
    let instead = match name {
        "j" | "jump" => "use `cd PATH`; `dirs`, `pushd` and `popd` keep a stack of directories",
        "interact" => "run the program without a terminal, or open a terminal of the session from the client",
        "open" => "a file is read by `path(\"f\").read()`, JSON by `json.parse` of that; run the program that shows it",
        "watch" => {
            "compare `.modified` in `every(1s).map(t => path(p).modified).dedupe()`, or run a program that watches"
        }
        "tail" => {
            "`path(p).lines` reads what is there; `every(1s).map(t => path(p).size).dedupe()` tells when it grows"
        }
        "secret.get" => "read a variable with `env.NAME`, or a file with `path(p).read`",
        _ => "run `curl`: `(curl -fsS URL).out` parses JSON by itself",
    };
    ErrorValue::new(code::CUSTOM, format!("{name} is not available in this build")).with_hint(instead)
}
