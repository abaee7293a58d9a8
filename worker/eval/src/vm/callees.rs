//! Functions of root scopes as calls by name find them again: without a lock, and without a shared handle per call.

use std::sync::{Arc, OnceLock};

use shoal_value::Value;

use super::frame::{Lambda, Linked};
use crate::machine::Machine;
use crate::scope::{BindingKind, RootCell};

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
#[derive(Default)]
pub(crate) struct Callees(OnceLock<Box<[OnceLock<Entry>]>>);

struct Entry {
    /// Keeps the cell, so that its address stays its own.
    cell: Arc<RootCell>,
    /// The cell's version the function is of.
    version: u32,
    body: Body,
}

impl Callees {
    /// The function that the name of `cell` means, if it is remembered, and its number.
    #[inline]
    fn find(&self, cell: &Arc<RootCell>) -> Option<(usize, &Body)> {
        let entries = self.0.get()?;
        places(cell).find_map(|at| {
            let entry = entries[at].get()?;
            let is_current = Arc::ptr_eq(&entry.cell, cell) && entry.version == cell.version();
            is_current.then_some((at, &entry.body))
        })
    }

    /// The function of a number that [`Self::find`] gave.
    pub(super) fn body(&self, at: usize) -> &Body {
        let entry = self.0.get().and_then(|entries| entries[at].get());
        &entry.unwrap_or_else(|| unreachable!("numbers are those of entries, and entries stay")).body
    }

    /// Remembers what a name means if that can only change by another declaration and a place is free for it.
    fn remember(&self, cell: &Arc<RootCell>, body: impl FnOnce(Arc<Lambda>) -> Body) -> Option<(usize, &Body)> {
        let entries = self.0.get_or_init(|| (0..ROOM).map(|_| OnceLock::new()).collect());
        let free = places(cell).find(|at| entries[*at].get().is_none())?;
        let (lambda, version) = {
            let slot = cell.lock();
            let binding = slot.binding.as_ref()?;
            let (BindingKind::Fn | BindingKind::Let, Value::Closure(callable)) = (binding.kind, &binding.value) else {
                return None;
            };
            let any: Arc<dyn std::any::Any + Send + Sync> = callable.clone();
            (any.downcast::<Lambda>().ok()?, cell.version())
        };
        let entry = entries[free].get_or_init(|| Entry { cell: cell.clone(), version, body: body(lambda) });
        Some((free, &entry.body))
    }
}

impl Machine {
    /// The function that the name of `cell` means, if it is one that is remembered or can be.
    #[inline]
    pub(super) fn callee<'a>(&mut self, callees: &'a Callees, cell: &Arc<RootCell>) -> Option<(usize, &'a Body)> {
        match callees.find(cell) {
            // Names that were never bound, such as those of builtins, are told without a lock.
            None if cell.version() > 0 => callees.remember(cell, |lambda| self.body(lambda)),
            found => found,
        }
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
