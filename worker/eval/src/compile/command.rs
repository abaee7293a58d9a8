//! Commands: their words become forms, whose values are computed first and lie on the stack.

use std::sync::Arc;

use shoal_syntax::ast::{
    Arg, ArgKind, Args, CmdCall, Expr, ExprKind, FlagValue, Name, Piece, PieceKind, Program, RedirectKind, Span, Stmt,
    StmtKind,
};
use shoal_value::Str;

use super::function::Resolved;
use super::{Compiler, place};
use crate::code::{CodeKind, Op, PlanSite, Tree};
use crate::command::{ArgForm, Callee, CommandSite, FeedSite, FlagForm, Language, PieceForm, RedirectForm};

impl Compiler {
    /// A command; leaves its value.
    pub(super) fn command(&mut self, call: &CmdCall, nested: bool) {
        if call.background && !nested {
            self.begin_function(CodeKind::Spawn, call.span);
            self.command(call, true);
            self.emit(Op::Return);
            return self.spawn_code();
        }
        if *call.head.text == *"plan" && !call.forced && !self.is_bound(&call.head.text) {
            return self.plan(call);
        }
        if *call.head.text == *"interact" && !call.forced && !self.is_bound(&call.head.text) {
            // Its words are the command to run on a terminal, not values to make before.
            let bare = CmdCall { args: Vec::new(), block: None, ..call.clone() };
            let site = self.command_site(&bare, true);
            return self.command_op(site, call.span);
        }
        let site = self.command_site(call, true);
        self.command_op(site, call.span);
    }

    /// `plan CMD` and `plan { }`: the program is kept as a tree.
    fn plan(&mut self, call: &CmdCall) {
        let (stmts, span) = match (&call.block, &*call.args) {
            (Some(block), []) => (block.stmts.clone(), block.span),
            (None, [Arg { kind: ArgKind::Group(expr), span }]) => {
                let expr = Expr::clone(expr);
                (vec![Stmt { kind: StmtKind::Expr(expr), span: *span }], *span)
            }
            _ => {
                let error = shoal_value::ErrorValue::arg_error("plan needs the command to plan, or a block");
                self.raise(error.with_hint("write `plan CMD words`, or `plan { ... }`"));
                self.emit(Op::Null);
                return;
            }
        };
        let f = self.f();
        let program = Arc::new(Program { stmts, span });
        f.tables.plans.push(PlanSite { program, place: place(span) });
        let at = f.tables.plans.len() as u32 - 1;
        self.emit(Op::Plan(at));
    }

    fn command_op(&mut self, site: CommandSite, span: Span) {
        let f = self.f();
        f.tables.commands.push(Arc::new(site));
        let at = f.tables.commands.len() as u32 - 1;
        f.here = place(span);
        self.emit(Op::Command(at));
    }

    /// Emits the values of a command's words. A callee that is a variable comes first.
    fn command_site(&mut self, call: &CmdCall, bindings: bool) -> CommandSite {
        let callee =
            if call.forced || call.head.path || !bindings { Callee::None } else { self.callee(&call.head.text) };
        let mut values = 0;
        let env = call.env_prefix.iter().map(|e| (e.name.name.clone(), self.arg(&e.value, &mut values))).collect();
        let args = call.args.iter().map(|arg| self.arg(arg, &mut values)).collect();
        let redirects = call.redirects.iter().map(|redirect| {
            let kind = match redirect.kind {
                RedirectKind::In => RedirectForm::In,
                RedirectKind::Out => RedirectForm::Out,
                RedirectKind::Append => RedirectForm::Append,
            };
            (kind, self.arg(&redirect.target, &mut values))
        });
        let redirects = redirects.collect();
        if let Some(block) = &call.block {
            self.begin_function(CodeKind::Thunk, block.span);
            self.block(block, false, true);
            self.emit(Op::Return);
            let code = self.end_function(None, None);
            self.close(code);
        }
        CommandSite {
            head: call.head.text.clone(),
            path: call.head.path,
            forced: call.forced,
            callee,
            env,
            args,
            redirects,
            block: call.block.is_some(),
            values,
            language: None,
        }
    }

    /// Pushes the variable a head may stand for.
    fn callee(&mut self, head: &Name) -> Callee {
        let (maybe, resolved) = self.resolve(head);
        let root = matches!(resolved, Resolved::Root(_));
        if maybe.is_empty()
            && let Resolved::Root(at) = resolved
        {
            return Callee::Root(at);
        }
        let bound: Vec<usize> = maybe.into_iter().map(|at| self.emit(Op::CapturedOr(at, 0))).collect();
        self.emit(match resolved {
            Resolved::Local(var) => Op::Local(var),
            Resolved::Captured(at, _) => Op::Captured(at),
            Resolved::Root(at) => Op::RootPeek(at),
        });
        bound.into_iter().for_each(|at| self.land(at));
        if root { Callee::Maybe } else { Callee::Value }
    }

    fn arg(&mut self, arg: &Arg, values: &mut u32) -> ArgForm {
        match &arg.kind {
            ArgKind::Word(text) => ArgForm::Word(text.clone()),
            ArgKind::Path(text) => ArgForm::Path(text.clone()),
            ArgKind::Glob(text) => ArgForm::Glob(text.clone()),
            ArgKind::Quoted(expr) => {
                self.push_value(expr, values);
                ArgForm::Quoted
            }
            ArgKind::Group(expr) => {
                self.push_value(expr, values);
                ArgForm::Group
            }
            ArgKind::LongFlag { name, raw, value } => {
                let value = match value {
                    FlagValue::None => FlagForm::None,
                    FlagValue::Next => FlagForm::Next,
                    FlagValue::Given(arg) => FlagForm::Given(Box::new(self.arg(arg, values))),
                };
                ArgForm::Long { name: name.clone(), raw: raw.clone(), value }
            }
            ArgKind::ShortFlags { letters, raw } => ArgForm::Short { letters: letters.clone(), raw: raw.clone() },
            ArgKind::DashDash => ArgForm::DashDash,
            ArgKind::Dash => ArgForm::Word("-".into()),
            ArgKind::Joined { pieces, kind } => {
                let pieces = pieces.iter().map(|piece| self.piece(piece, values)).collect();
                ArgForm::Joined { pieces, kind: *kind }
            }
        }
    }

    fn piece(&mut self, piece: &Piece, values: &mut u32) -> PieceForm {
        match &piece.kind {
            PieceKind::Bare(text) => PieceForm::Bare(text.clone()),
            PieceKind::Quoted(expr) | PieceKind::Group(expr) => {
                self.push_value(expr, values);
                PieceForm::Value
            }
        }
    }

    fn push_value(&mut self, expr: &Expr, values: &mut u32) {
        self.expr(expr, false);
        *values += 1;
    }

    /// Pushes the path of `use`.
    pub(super) fn path_argument(&mut self, arg: &Arg) {
        match &arg.kind {
            ArgKind::Word(text) | ArgKind::Path(text) | ArgKind::Glob(text) => {
                self.constant(shoal_value::Value::Str(text.clone()));
            }
            ArgKind::Quoted(expr) | ArgKind::Group(expr) => self.expr(expr, false),
            _ => self.constant(shoal_value::Value::Null),
        }
    }

    /// The stored call of an alias.
    pub(super) fn alias(&mut self, target: &Arc<CmdCall>) {
        self.begin_function(CodeKind::Alias, target.span);
        self.f().tree = Tree::Alias(target.clone());
        self.command(target, true);
        self.emit(Op::Return);
        let code = self.end_function(Some(target.head.text.clone()), None);
        let f = self.f();
        f.tables.codes.push(Arc::new(code));
        let at = f.tables.codes.len() as u32 - 1;
        self.emit(Op::CloseAlias(at));
    }

    pub(super) fn lang_block(&mut self, tool: &Name, text: &Name, span: Span) {
        let site = language_site(tool, text);
        self.command_op(site, span);
    }

    /// `value.feed(cmd)` and `cmd.feed(value)`. False if it is no feed but a call of a method of that name.
    pub(super) fn feed(&mut self, expr: &Expr, recv: &Expr, args: &Args) -> bool {
        let ([arg], []) = (&*args.pos, &*args.named) else {
            self.raise(shoal_value::ErrorValue::arg_error("feed takes exactly one argument: the command or the value"));
            self.emit(Op::Null);
            return true;
        };
        let mut stages = Vec::new();
        let mut value_last = false;
        let fed;
        if is_stage(arg) {
            fed = self.feed_source(recv, &mut stages);
            self.stage(arg, &mut stages);
        } else if is_stage(recv) || self.is_program_name(recv) {
            self.stage(recv, &mut stages);
            self.expr(arg, false);
            (fed, value_last) = (false, true);
        } else {
            self.raise(
                shoal_value::ErrorValue::type_error("feed needs a command on one side")
                    .with_hint("write the command itself: `value.feed(cmd words)`"),
            );
            self.emit(Op::Null);
            return true;
        }
        let site = FeedSite { stages, fed, value_last, place: place(expr.span) };
        let f = self.f();
        f.tables.feeds.push(Arc::new(site));
        let at = f.tables.feeds.len() as u32 - 1;
        self.f().here = place(expr.span);
        self.emit(Op::Feed(at));
        true
    }

    /// Pushes what is fed. A command written in place becomes a stage; false then, because no value is fed.
    fn feed_source(&mut self, recv: &Expr, stages: &mut Vec<Arc<CommandSite>>) -> bool {
        if is_stage(recv) {
            self.stage(recv, stages);
            return false;
        }
        if let ExprKind::Method { recv: inner, name, args, .. } = &recv.ungrouped().kind
            && *name.name == *"feed"
            && let ([arg], []) = (&*args.pos, &*args.named)
            && is_stage(arg)
        {
            let fed = self.feed_source(inner, stages);
            self.stage(arg, stages);
            return fed;
        }
        self.receiver(recv);
        true
    }

    fn stage(&mut self, expr: &Expr, stages: &mut Vec<Arc<CommandSite>>) {
        let site = match &expr.ungrouped().kind {
            ExprKind::Cmd(call) => self.command_site(call, stages.is_empty()),
            ExprKind::LangBlock { tool, text } => language_site(tool, text),
            ExprKind::Var(name) => CommandSite::bare(name.clone()),
            _ => return,
        };
        stages.push(Arc::new(site));
    }

    fn is_program_name(&mut self, expr: &Expr) -> bool {
        match &expr.ungrouped().kind {
            ExprKind::Var(name) => !self.is_bound(name),
            _ => false,
        }
    }
}

fn is_stage(expr: &Expr) -> bool {
    matches!(expr.ungrouped().kind, ExprKind::Cmd(_) | ExprKind::LangBlock { .. })
}

fn language_site(tool: &Name, text: &Name) -> CommandSite {
    let mut site = CommandSite::bare(tool.clone());
    site.forced = true;
    site.language = Some(Language { tool: tool.clone(), text: text.clone() });
    site
}

/// The name a `use` binds: the stem of a static path, if it is an identifier.
pub(super) fn use_stem(path: &Arg) -> Option<Str> {
    let text = match &path.kind {
        ArgKind::Word(text) | ArgKind::Path(text) => text.clone(),
        ArgKind::Quoted(expr) => match &expr.kind {
            ExprKind::Str(text) => text.clone(),
            _ => return None,
        },
        _ => return None,
    };
    let file = text.rsplit('/').next().unwrap_or(&text);
    let stem = file.strip_suffix(".shl").unwrap_or(file);
    let mut chars = stem.chars();
    let starts = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    (starts && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')).then(|| stem.into())
}
