//! Commands.

use shoal_syntax::Names;
use shoal_syntax::ast::{Arg, ArgKind, CmdCall, FlagValue, JoinedKind, PieceKind, RedirectKind};
use shoal_value::{PathValue, Str, Value};

use super::Effect;
use super::derive::Deriver;
use super::known::{Body, Closure, Known};
use crate::registry::{Command, Gives, Touches, Types, Words, standard};

/// The words of a command.
pub(super) struct Given {
    /// Values of those that are no flags.
    pub(super) args: Vec<Known>,
    /// Whether `--help` is among them.
    helped: bool,
    /// What `--root` is given.
    root: Option<Known>,
}

impl Deriver<'_> {
    pub(super) fn command(&mut self, call: &CmdCall) -> Known {
        let unconditional = std::mem::take(&mut self.unconditional);
        if *call.head.text == *"plan" && !call.forced && self.lookup(&call.head.text).is_none() {
            return Known::plain(Types::RECORD);
        }
        let words = self.words(call);
        self.head(call, words, unconditional)
    }

    /// The call of an alias with `args` appended.
    pub(super) fn alias(&mut self, call: &CmdCall, args: Vec<Known>) -> Known {
        let mut words = self.words(call);
        words.args.extend(args);
        // A flag among what is appended comes later, and would count.
        words.root = None;
        self.head(call, words, false)
    }

    /// The effects of the words of a command, and what they are.
    pub(super) fn words(&mut self, call: &CmdCall) -> Given {
        for assign in &call.env_prefix {
            self.arg(&assign.value);
            self.add(Effect::EnvWrite(assign.name.name.clone()));
        }
        let mut helped = false;
        let mut args = Vec::new();
        for arg in &call.args {
            helped |= matches!(&arg.kind, ArgKind::LongFlag { name, .. } if **name == *"help");
            args.extend(self.arg(arg));
        }
        for redirect in &call.redirects {
            let target = self.arg(&redirect.target).pop();
            let path = self.path_of(target.as_ref());
            self.add(if redirect.kind == RedirectKind::In { Effect::Read(path) } else { Effect::Write(path) });
        }
        if let Some(block) = &call.block {
            let body = Body::Block(std::sync::Arc::new(block.clone()));
            let scopes = self.scopes.len();
            args.push(Known { closure: Some(Closure { body, scopes, root: None }), ..Known::any() });
        }
        let root = only_root(&call.args).and_then(|root| self.arg(root).pop());
        Given { args, helped, root }
    }

    fn head(&mut self, call: &CmdCall, given: Given, unconditional: bool) -> Known {
        let Given { args, helped, root } = given;
        let head = &call.head.text;
        if !call.forced
            && !call.head.path
            && let Some(known) = self.lookup(head)
        {
            return match known.closure {
                // Words fall to parameters by flags and types: analysed as unknown.
                Some(closure) if matches!(closure.body, Body::Alias(_)) => self.call(&closure, args),
                Some(closure) => {
                    let args = args.into_iter().map(|arg| Known { value: None, ..arg }).collect();
                    self.call(&closure, args)
                }
                None if call.args.is_empty() && known.kind.is_data() => known,
                None => {
                    self.add(Effect::Opaque);
                    Known::any()
                }
            };
        }
        if !call.head.path
            && let Some(command) = standard().command(head)
        {
            let program = call.forced && call.args.iter().any(is_flag)
                || call.redirects.iter().any(|redirect| redirect.kind == RedirectKind::In);
            if !program {
                if helped && command.name != "echo" {
                    return Known::plain(Types::NULL);
                }
                if matches!(command.name, "cd" | "pushd" | "popd" | "j" | "jump") {
                    self.change_dir(command.name, &args, unconditional);
                }
                if command.touches == Touches::Undo {
                    return self.undo(root.as_ref());
                }
                return self.builtin_command(command, &args);
            }
        }
        if call.head.path && !call.forced && head.ends_with(".shl") {
            return self.script(Some(head.to_string()), true);
        }
        self.program_call(call, &args);
        Known::data()
    }

    /// A command that is a program, whatever builtin has its name.
    pub(super) fn program_call(&mut self, call: &CmdCall, args: &[Known]) {
        let input = call.redirects.iter().find(|redirect| redirect.kind == RedirectKind::In);
        let input = input.and_then(|redirect| self.arg(&redirect.target).pop()).and_then(|known| known.text());
        self.starts(&call.head.text, args, input.as_deref());
        self.add(Effect::Opaque);
    }

    /// The values an argument may become; a flag becomes none.
    fn arg(&mut self, arg: &Arg) -> Vec<Known> {
        match &arg.kind {
            ArgKind::Word(text) | ArgKind::Path(text) => vec![Known::fixed(Value::Str(text.clone()))],
            ArgKind::Glob(text) => {
                let base = self.path(Some(crate::glob::base(text)));
                self.add(Effect::Read(base));
                self.matches(text)
            }
            ArgKind::Quoted(expr) | ArgKind::Group(expr) => {
                let known = self.expr(expr);
                match &known.value {
                    Some(Value::List(list)) => list.iter().map(|item| Known::fixed(item.clone())).collect(),
                    Some(Value::Glob(glob)) => {
                        let pattern = glob.pattern().clone();
                        let base = self.path(Some(crate::glob::base(&pattern)));
                        self.add(Effect::Read(base));
                        self.matches(&pattern)
                    }
                    _ => {
                        if known.kind == super::known::Kind::Glob {
                            self.add(Effect::Read("*".into()));
                        }
                        vec![known]
                    }
                }
            }
            ArgKind::LongFlag { value, .. } => {
                if let FlagValue::Given(value) = value {
                    self.arg(value);
                }
                Vec::new()
            }
            ArgKind::ShortFlags { .. } | ArgKind::DashDash => Vec::new(),
            ArgKind::Dash => vec![Known::fixed(Value::str("-"))],
            ArgKind::Joined { pieces, kind } => {
                let mut text = Some(String::new());
                for piece in pieces {
                    let piece = match &piece.kind {
                        PieceKind::Bare(bare) => Some(bare.to_string()),
                        PieceKind::Quoted(expr) | PieceKind::Group(expr) => {
                            let known = self.expr(expr);
                            known.text().filter(|text| *kind != JoinedKind::Glob || !crate::glob::has_wildcard(text))
                        }
                    };
                    text = text.zip(piece).map(|(text, piece)| text + &piece);
                }
                match (text, kind) {
                    (Some(text), JoinedKind::Glob) => {
                        let base = self.path(Some(crate::glob::base(&text)));
                        self.add(Effect::Read(base));
                        self.matches(&text.into())
                    }
                    (None, JoinedKind::Glob) => {
                        self.add(Effect::Read("*".into()));
                        vec![Known::plain(Types::STR)]
                    }
                    (Some(text), _) => vec![Known::fixed(Value::str(text))],
                    (None, _) => vec![Known::plain(Types::STR)],
                }
            }
        }
    }

    /// What a pattern matches now; unknown if it cannot be told.
    fn matches(&mut self, pattern: &Str) -> Vec<Known> {
        let Some(cwd) = self.cwd.clone() else { return vec![Known::plain(Types::PATH)] };
        let glob = shoal_value::Glob::new(pattern.clone(), cwd, false);
        match self.machine.expand_glob(&glob) {
            Ok(found) => found.into_iter().map(|path| Known::fixed(Value::Path(path))).collect(),
            Err(_) => vec![Known::plain(Types::PATH)],
        }
    }

    /// What an undo touches is not known in advance, but it is bounded by `root` if one is given.
    pub(super) fn undo(&mut self, root: Option<&Known>) -> Known {
        let bound = self.path_of(root);
        self.add(Effect::Journal);
        self.add(Effect::Write(bound.clone()));
        self.add(Effect::Delete(bound));
        Known::plain(Types::RECORD)
    }

    fn change_dir(&mut self, name: &str, args: &[Known], unconditional: bool) {
        let target = match args {
            [one] if name == "cd" && unconditional => self.path_of(Some(one)),
            [] if name == "cd" && unconditional => self.path(Some("~")),
            _ => "*".into(),
        };
        let back = args.first().and_then(Known::text).is_some_and(|text| text == "-");
        self.cwd = (*target != *"*" && !back).then(|| PathValue::from(&*target));
    }

    pub(super) fn builtin_command(&mut self, command: &'static Command, args: &[Known]) -> Known {
        let paths: Vec<Str> = args
            .iter()
            .filter(|arg| arg.closure.is_none())
            .map(|arg| if command.words == Words::Values { "*".into() } else { self.path_of(Some(arg)) })
            .collect();
        match command.touches {
            Touches::Nothing => {}
            Touches::Reads if paths.is_empty() => {
                let here = self.path(Some("."));
                self.add(Effect::Read(here));
            }
            Touches::Reads => self.each(paths.into_iter().take(reads_first(command)), Effect::Read),
            Touches::Writes => self.each(paths.into_iter().take(reads_first(command)), Effect::Write),
            Touches::Deletes => self.each(paths, Effect::Delete),
            Touches::Copies | Touches::Moves => {
                if let Some((last, sources)) = paths.split_last() {
                    self.each(sources.iter().cloned(), Effect::Read);
                    self.add(Effect::Write(last.clone()));
                    if command.touches == Touches::Moves {
                        self.each(sources.iter().cloned(), Effect::Delete);
                    }
                }
            }
            Touches::Links => self.each(paths.into_iter().skip(1), Effect::Write),
            Touches::Env => {
                let name = args.first().map(|arg| arg.text().unwrap_or_else(|| "*".to_owned()));
                self.add(Effect::EnvRead(name.unwrap_or_else(|| "*".to_owned()).into()));
            }
            Touches::SearchPath => self.add(Effect::EnvRead("PATH".into())),
            Touches::Session => self.add(Effect::Session),
            Touches::Journal => self.add(Effect::Journal),
            Touches::Time => self.add(Effect::Time),
            Touches::Undo => return self.undo(None),
            Touches::Opaque if command.name == "source" => {
                return self.script(args.first().and_then(Known::text), false);
            }
            Touches::Opaque if command.name == "run" => {
                let target = args.first().and_then(Known::text).filter(|target| target.ends_with(".shl"));
                return self.script(target, true);
            }
            Touches::Opaque if command.name == "apply" => {
                let id = args.first().and_then(|arg| match &arg.value {
                    Some(Value::Record(record)) => record.get("id").and_then(|id| id.as_str().map(str::to_owned)),
                    _ => arg.text(),
                });
                let plan = id.and_then(|id| self.machine.peek_plan(&id));
                match plan {
                    Some(plan) => plan.effects.into_iter().for_each(|effect| self.add(effect)),
                    None => self.add(Effect::Opaque),
                }
                return Known::any();
            }
            Touches::Closures | Touches::Resource | Touches::ResourceList | Touches::Watch | Touches::Opaque => {
                self.add(Effect::Opaque)
            }
        }
        if command.outcome {
            return Known::plain(Types::OUTCOME);
        }
        match command.gives {
            Gives::Plain(_) if command.name == "pwd" => {
                self.cwd.clone().map_or(Known::plain(Types::PATH), |cwd| Known::fixed(Value::Path(cwd)))
            }
            Gives::Plain(types) => Known::plain(types),
            Gives::Data => Known::data(),
            Gives::Same | Gives::Item | Gives::Items | Gives::Any => Known::any(),
        }
    }

    fn each(&mut self, paths: impl IntoIterator<Item = Str>, effect: fn(Str) -> Effect) {
        paths.into_iter().for_each(|path| self.add(effect(path)));
    }

    pub(super) fn use_file(&mut self, path: &Arg) {
        let known = self.arg(path).pop();
        let text = known.as_ref().and_then(Known::text);
        let file = text.map(|text| {
            let suffixed = format!("{text}.shl");
            if self.read(&suffixed).is_some() { suffixed } else { text }
        });
        self.script(file, true);
    }

    /// A source file: its reading and the effects of its program. `fresh` if it does not see the names around it.
    fn script(&mut self, file: Option<String>, fresh: bool) -> Known {
        let path = self.path(file.as_deref());
        self.add(Effect::Read(path.clone()));
        if *path != *"*" {
            self.leans_on(&path);
        }
        if self.files.iter().any(|open| **open == *path) {
            return Known::any();
        }
        let Some(source) = self.read(&path) else {
            self.add(Effect::Opaque);
            return Known::any();
        };
        let mut names = Names::script();
        names.value.extend(["args".into(), "script".into()]);
        if !fresh {
            let known = self.scopes.iter().flat_map(|scope| scope.keys().cloned());
            names.value.extend(known);
        }
        let parsed = shoal_syntax::parse(&source, &names);
        if !parsed.diags.is_empty() {
            self.add(Effect::Opaque);
            return Known::any();
        }
        self.files.push(path.to_string());
        let before = self.cwd.clone();
        if fresh {
            let hidden = std::mem::take(&mut self.scopes);
            let empty = crate::scope::Root::new(crate::scope::RootKind::Own, crate::scope::Bindings::default());
            let root = std::mem::replace(&mut self.root, empty);
            self.scoped(|this| {
                this.declare(&"args".into(), Known::data());
                this.declare(&"script".into(), Known::plain(Types::PATH));
                this.program(&parsed.program)
            });
            self.root = root;
            self.scopes = hidden;
            self.cwd = before;
        } else {
            self.program(&parsed.program);
        }
        self.files.pop();
        Known::any()
    }

    fn read(&mut self, path: &str) -> Option<Str> {
        self.machine.read_source(&PathValue::from(path)).ok()
    }
}

/// How many leading arguments of a command are paths.
fn reads_first(command: &Command) -> usize {
    if command.words == Words::PathThenValues { 1 } else { usize::MAX }
}

/// The value of `--root`, if it is there once and attached.
fn only_root(args: &[Arg]) -> Option<&Arg> {
    let mut roots = args.iter().filter_map(|arg| match &arg.kind {
        ArgKind::LongFlag { name, value, .. } if **name == *"root" => Some(value),
        _ => None,
    });
    match (roots.next(), roots.next()) {
        (Some(FlagValue::Given(root)), None) => Some(root),
        _ => None,
    }
}

fn is_flag(arg: &Arg) -> bool {
    matches!(arg.kind, ArgKind::LongFlag { .. } | ArgKind::ShortFlags { .. })
}
