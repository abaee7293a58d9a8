//! Functions and their parameters.

use std::sync::Arc;

use shoal_syntax::ast::{Expr, FnDecl, Name};

use super::{Compiler, type_of};
use crate::code::{CodeKind, Op, Parameter, Rest, Tree};
use crate::scope::BindingKind;

impl Compiler {
    pub(super) fn function(&mut self, decl: &Arc<FnDecl>) {
        let name = &decl.name;
        // Declared before its body is read, so that it can call itself.
        let var = if self.at_root() {
            self.options.known.insert(name.name.clone());
            None
        } else {
            Some(self.declare(&name.name, BindingKind::Fn))
        };
        self.begin_function(CodeKind::Function, decl.span);
        self.f().tree = Tree::Function(decl.clone());
        self.reserve(decl.params.len() + usize::from(decl.rest.is_some()));
        for (at, param) in decl.params.iter().enumerate() {
            self.param(at as u32, &param.name.name, param.ty.as_ref().map(type_of), param.default.as_ref());
        }
        if let Some(rest) = &decl.rest {
            self.rest_param(&rest.name.name, rest.ty.as_ref().map(type_of));
        }
        self.f().ret = decl.ret.as_ref().map(type_of);
        self.block(&decl.body, false, true);
        self.emit(Op::Return);
        let code = self.end_function(Some(name.name.clone()), decl.doc.clone());
        self.close(code);
        match var {
            Some(var) => drop(self.emit(Op::SetLocal(var))),
            None => {
                let at = self.name(&name.name);
                self.emit(Op::DeclareRoot(at, BindingKind::Fn));
            }
        }
        if decl.exported {
            self.exports.push(name.name.clone());
        }
    }

    fn param(&mut self, at: u32, name: &Name, ty: Option<crate::types::Type>, default: Option<&Expr>) {
        self.f().params.push(Parameter { name: name.clone(), ty, has_default: default.is_some() });
        if let Some(default) = default {
            let given = self.emit(Op::Given(at, 0));
            self.expr(default, false);
            self.emit(Op::SetParam(at));
            self.land(given);
        }
        self.declare_param(name, at);
    }

    fn rest_param(&mut self, name: &Name, ty: Option<crate::types::Type>) {
        let at = self.f().params.len() as u32;
        // `...xs: list<T>` and `...xs: T` both type the items.
        let item = ty.map(|ty| match ty.item {
            Some(item) => *item,
            None if ty.types == crate::registry::Types::LIST => crate::types::Type::any(),
            None => ty,
        });
        self.f().rest = Some(Rest { name: name.clone(), item });
        self.declare_param(name, at);
    }
}
