//! What can be said about a program from its tree alone.

use crate::ast::{ArgKind, Expr, ExprKind, Name, Program, Stmt, StmtKind};
use crate::names::module_name;

/// A short description of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Description {
    /// The word the first statement runs or calls: a command's head, an interpreter, a called name.
    pub head: Option<Name>,
    /// Whether the last statement has a value of its own: an expression or a command.
    pub ends_in_expression: bool,
    /// The names that start expressions and are declared at top level, in order: `let`, `var`, `use`.
    pub values: Vec<Name>,
    /// The names that start commands and are declared at top level, in order: `fn`, `alias`.
    pub commands: Vec<Name>,
}

/// Describes a program.
pub fn describe(program: &Program) -> Description {
    let mut description = Description {
        head: program.stmts.first().and_then(stmt_head),
        ends_in_expression: program.stmts.last().is_some_and(|stmt| matches!(stmt.kind, StmtKind::Expr(_))),
        ..Description::default()
    };
    for stmt in &program.stmts {
        declared(stmt, &mut description);
    }
    description
}

fn declared(stmt: &Stmt, description: &mut Description) {
    match &stmt.kind {
        StmtKind::Let { pattern, .. } => pattern.each_name(&mut |name, _| description.values.push(name.clone())),
        StmtKind::Fn(decl) => description.commands.push(decl.name.name.clone()),
        StmtKind::Alias { name, .. } => description.commands.push(name.name.clone()),
        StmtKind::Use { alias: Some(alias), .. } => description.values.push(alias.name.clone()),
        StmtKind::Use { path, alias: None } => {
            let fixed = match &path.kind {
                ArgKind::Word(path) | ArgKind::Path(path) => Some(path),
                ArgKind::Quoted(quoted) => match &quoted.kind {
                    ExprKind::Str(path) => Some(path),
                    _ => None,
                },
                _ => None,
            };
            description.values.extend(fixed.and_then(|path| module_name(path)));
        }
        _ => {}
    }
}

fn stmt_head(stmt: &Stmt) -> Option<Name> {
    match &stmt.kind {
        StmtKind::Expr(expr) | StmtKind::Let { init: expr, .. } | StmtKind::Assign { value: expr, .. } => head(expr),
        StmtKind::Alias { target, .. } => Some(target.head.text.clone()),
        StmtKind::Return(Some(expr)) => head(expr),
        _ => None,
    }
}

/// The head of what is evaluated first.
fn head(expr: &Expr) -> Option<Name> {
    let mut expr = expr;
    loop {
        expr = match &expr.kind {
            ExprKind::Cmd(call) => return Some(call.head.text.clone()),
            ExprKind::LangBlock { tool, .. } => return Some(tool.clone()),
            ExprKind::Call { callee, .. } => match &callee.kind {
                ExprKind::Var(name) => return Some(name.clone()),
                _ => callee,
            },
            ExprKind::Group(inner) => inner,
            ExprKind::Field { recv, .. } | ExprKind::Index { recv, .. } | ExprKind::Method { recv, .. } => recv,
            ExprKind::Binary { left, .. } => left,
            ExprKind::Catch { expr, .. } => expr,
            _ => return None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Names, parse};

    #[test]
    fn a_program_is_described_by_its_ends_and_its_names() {
        let of = |src: &str| describe(&parse(src, &Names::script()).program);
        assert_eq!(of("(git log).feed(wc -l)").head.as_deref(), Some("git"));
        assert_eq!(of("let x = (ls .).len()").head.as_deref(), Some("ls"));
        assert_eq!(of("sh { x }.out").head.as_deref(), Some("sh"));
        assert_eq!(of("retry(3) { 1 }").head.as_deref(), Some("retry"));
        assert_eq!(of("1 + 2").head, None);
        let all = of("let [a, ...b] = xs; fn f() { let c = 1 }\nalias g = ls -a\nuse ./lib/deploy\nuse x as y");
        assert_eq!(all.values.iter().map(|name| &**name).collect::<Vec<_>>(), ["a", "b", "deploy", "y"]);
        assert_eq!(all.commands.iter().map(|name| &**name).collect::<Vec<_>>(), ["f", "g"]);
        assert!(!all.ends_in_expression && of("ls").ends_in_expression);
    }
}
