//! Loops.

use shoal_syntax::ast::{Block, Expr, Pattern};

use super::function::{LoopScope, Open};
use super::{Compiler, place};
use crate::code::Op;
use crate::scope::BindingKind;
use crate::vm::stray;

impl Compiler {
    pub(super) fn leave_loop(&mut self, word: &'static str) {
        let Some((start, open)) = self.f().loops.last().map(|scope| (scope.start, scope.open)) else {
            return self.raise(stray(word, "a loop"));
        };
        let closing: Vec<Open> = self.f().open[open..].iter().rev().copied().collect();
        for construct in closing {
            self.emit(if construct == Open::With { Op::WithEnd } else { Op::TryEnd });
        }
        self.emit(Op::Cut);
        if word == "continue" {
            self.emit(Op::Loop(start));
            return;
        }
        self.emit(Op::IterDrop);
        let at = self.emit(Op::Jump(0));
        if let Some(scope) = self.f().loops.last_mut() {
            scope.breaks.push(at);
        }
    }

    fn open_loop(&mut self) {
        let start = self.next();
        let f = self.f();
        let open = f.open.len();
        f.loops.push(LoopScope { start, breaks: Vec::new(), open });
    }

    fn close_loop(&mut self) {
        let breaks = self.f().loops.pop().map_or(Vec::new(), |scope| scope.breaks);
        breaks.into_iter().for_each(|at| self.land(at));
    }

    pub(super) fn for_loop(&mut self, pattern: &Pattern, iter: &Expr, body: &Block) {
        self.expr(iter, false);
        self.f().here = place(iter.span);
        self.emit(Op::Iter);
        self.open_loop();
        let start = self.next();
        let exit = self.emit(Op::IterNext(0));
        self.push_scope();
        // Each iteration has its own variables, also when the root scope is around.
        self.bind_pattern(pattern, BindingKind::Let);
        self.block(body, true, false);
        self.pop_scope();
        self.emit(Op::Jump(start));
        self.land(exit);
        self.close_loop();
    }

    pub(super) fn while_loop(&mut self, cond: &Expr, body: &Block) {
        self.emit(Op::Endless);
        self.open_loop();
        let start = self.next();
        self.expr(cond, false);
        self.f().here = place(cond.span);
        let exit = self.emit(Op::JumpUnless(0));
        self.block(body, true, false);
        self.emit(Op::Loop(start));
        self.land(exit);
        self.emit(Op::IterDrop);
        self.close_loop();
    }
}
