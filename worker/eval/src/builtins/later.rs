//! Names of the language that this build does not have yet. They say so, instead of looking like misspelt programs.

use shoal_value::{ErrorValue, code};

use crate::methods::rows::{MANY, commands, functions, rest};
use crate::registry::{Args, Command, CommandArgs, Done, Function, Namespace, Types};
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

    /// Shows and locks the tools of a directory. Not available in this build.
    ///
    /// shoal> reef
    /// ! custom
    reef "reef [add TOOL@VERSION | lock | fetch TOOL | doctor]": [], Values, (0, MANY), Outcome, Any, Opaque,
        |_, _| Err(unavailable("reef").into());
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
    open: [rest("args", Types::ANY)], Any, Opaque, |_, args| later("open", &args);
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
        get: [rest("args", Types::ANY)], Any, Opaque, |_, args| later("http.get", &args);
        /// A DELETE request. Not available in this build.
        ///
        /// shoal> http.delete("https://example.com")
        /// ! custom
        delete: [rest("args", Types::ANY)], Any, Opaque, |_, args| later("http.delete", &args);
        /// A POST request. Not available in this build.
        ///
        /// shoal> http.post("https://example.com", "x")
        /// ! custom
        post: [rest("args", Types::ANY)], Any, Opaque, |_, args| later("http.post", &args);
        /// A PUT request. Not available in this build.
        ///
        /// shoal> http.put("https://example.com", "x")
        /// ! custom
        put: [rest("args", Types::ANY)], Any, Opaque, |_, args| later("http.put", &args);
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
        get: [rest("args", Types::ANY)], Any, Opaque, |_, args| later("secret.get", &args);
    },
};

fn later(name: &str, _args: &Args) -> Eval<shoal_value::Value> {
    Err(unavailable(name).into())
}

fn unavailable(name: &str) -> ErrorValue {
    ErrorValue::new(code::CUSTOM, format!("{name} is not available in this build"))
}
