//! Functions of root scopes as calls by name find them again: without a lock, and without a shared handle per call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use shoal_value::Value;

use super::frame::{Lambda, Linked};
use super::short::{ARGS, Arg, Short};
use crate::machine::Machine;
use crate::scope::{BindingKind, RootCell};
use crate::unwind::Eval;

/// A function with the links of its unit: what it takes to run it.
pub(crate) struct Body {
    pub(super) lambda: Arc<Lambda>,
    pub(super) linked: Arc<Linked>,
}

/// Functions an evaluator remembers; names beyond them are looked up at each call.
const ROOM: usize = 64;
/// Places a function may have.
const TRIES: usize = 4;

/// The functions one evaluator has called by name. An entry is never replaced, so that running frames can borrow from it;
/// one whose name has got another meaning is no longer found.
pub(crate) struct Callees([OnceLock<Box<Callee>>; ROOM]);

impl Default for Callees {
    fn default() -> Self {
        Self([const { OnceLock::new() }; ROOM])
    }
}

/// A function that is called by name.
pub(super) struct Callee {
    /// Keeps the cell, so that its address stays its own.
    cell: Arc<RootCell>,
    /// The cell's version the function is of.
    version: u32,
    pub(super) body: Body,
    /// The short way, if it has one.
    pub(super) short: Option<Short>,
    /// Whether the short way is worth a try.
    pub(super) is_short: AtomicBool,
}

impl Callees {
    /// The function that the name of `cell` means, if it is remembered, and its number.
    #[inline]
    fn find(&self, cell: &Arc<RootCell>) -> Option<(usize, &Callee)> {
        places(cell).find_map(|at| {
            let entry = self.0[at].get()?;
            let is_current = Arc::ptr_eq(&entry.cell, cell) && entry.version == cell.version();
            is_current.then_some((at, &**entry))
        })
    }

    /// The function of a number that [`Self::find`] gave.
    pub(super) fn body(&self, at: usize) -> &Body {
        let entry = self.0[at % ROOM].get();
        &entry.unwrap_or_else(|| unreachable!("numbers are those of entries, and entries stay")).body
    }

    /// Remembers what a name means if that can only change by another declaration and a place is free for it.
    fn remember(&self, cell: &Arc<RootCell>, body: impl FnOnce(Arc<Lambda>) -> Body) -> Option<(usize, &Callee)> {
        let free = places(cell).find(|at| self.0[*at].get().is_none())?;
        let (lambda, version) = {
            let slot = cell.lock();
            let binding = slot.binding.as_ref()?;
            let (BindingKind::Fn | BindingKind::Let, Value::Closure(callable)) = (binding.kind, &binding.value) else {
                return None;
            };
            let any: Arc<dyn std::any::Any + Send + Sync> = callable.clone();
            (any.downcast::<Lambda>().ok()?, cell.version())
        };
        let entry = self.0[free].get_or_init(|| {
            let body = body(lambda);
            let short = Short::of_callee(&body);
            let is_short = AtomicBool::new(short.is_some());
            Box::new(Callee { cell: cell.clone(), version, is_short, body, short })
        });
        Some((free, &**entry))
    }
}

impl Machine {
    /// The function that the name of `cell` means, if it is one that is remembered or can be.
    #[inline]
    pub(super) fn callee<'a>(&mut self, callees: &'a Callees, cell: &Arc<RootCell>) -> Option<(usize, &'a Callee)> {
        match callees.find(cell) {
            // Names that were never bound, such as those of builtins, are told without a lock.
            None if cell.version() > 0 => callees.remember(cell, |lambda| self.body(lambda)),
            found => found,
        }
    }
}

impl Machine {
    /// Calls a function with the `n` topmost values, which it takes, the short way; false, and nothing done, if that is none
    /// for ints.
    #[inline]
    pub(super) fn call_shortly(&mut self, callees: &Callees, callee: &Callee, n: usize) -> Eval<bool> {
        let short = match &callee.short {
            Some(short) if short.params == n && callee.is_short.load(Ordering::Relaxed) && self.has_room_for(0) => {
                short
            }
            _ => return Ok(false),
        };
        let from = self.stack.len() - n;
        let mut args = [Arg::Int(0); ARGS];
        for (at, arg) in args.iter_mut().take(n).enumerate() {
            let Value::Int(n) = self.stack[from + at] else { return Ok(false) };
            *arg = Arg::Int(n);
        }
        let mut made = Value::Null;
        if short.on(&callee.body, callees, &args[..n]).value(self, &mut made).is_none() {
            callee.is_short.store(false, Ordering::Relaxed);
            return Ok(false);
        }
        self.step(1)?;
        self.stack.truncate(from);
        match made {
            Value::Int(n) => self.stack.push_int(n),
            other => self.stack.push(other),
        }
        Ok(true)
    }
}

/// Where the function of a cell may be remembered.
#[inline]
fn places(cell: &Arc<RootCell>) -> impl Iterator<Item = usize> {
    const { assert!(ROOM == 1 << 6) };
    // The high bits of a product depend on all bits of the address.
    let mixed = (Arc::as_ptr(cell) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let first = (mixed >> (64 - 6)) as usize;
    (first..first + TRIES).map(|at| at % ROOM)
}
