//! Root scopes: the names of a session, a script or a module.
//!
//! A request works on a snapshot of the session's bindings. Cells are made when a name is first touched, so that taking a
//! snapshot costs nothing; what was declared or assigned is marked and committed when the request ends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shoal_value::{Str, Value};

/// Names and what they stand for; cloning shares it.
pub type Bindings = rpds::HashTrieMapSync<Str, Binding>;

/// How a name was bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingKind {
    /// `let`.
    Let,
    /// `var`: may be assigned.
    Var,
    /// `fn`: command-bound.
    Fn,
    /// `alias`: command-bound.
    Alias,
    /// `use`.
    Use,
}

impl BindingKind {
    /// Whether the parser reads the name as a value (else it starts a command).
    pub fn is_value(self) -> bool {
        matches!(self, Self::Let | Self::Var | Self::Use)
    }
}

/// A bound name's value.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The value.
    pub value: Value,
    /// How it was bound.
    pub kind: BindingKind,
}

/// Whose scope a root is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RootKind {
    /// A request of a session: closures made here use the root of whatever request runs them.
    Session,
    /// A script, module or child evaluator: closures made here keep it.
    Own,
}

/// The outermost scope of a program.
pub(crate) struct Root {
    kind: RootKind,
    snapshot: Bindings,
    cells: Mutex<HashMap<Str, Arc<RootCell>>>,
    /// Whether the request it was made for has committed it. Read and written while `cells` is locked.
    committed: AtomicBool,
}

/// A name of a root scope, bound or not.
#[derive(Default)]
pub(crate) struct RootCell {
    slot: Mutex<RootSlot>,
    /// Bindings so far; written while the slot is locked.
    version: AtomicU32,
}

#[derive(Default)]
pub(crate) struct RootSlot {
    pub(crate) binding: Option<Binding>,
    pub(crate) touched: bool,
}

impl RootCell {
    pub(crate) fn lock(&self) -> MutexGuard<'_, RootSlot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes with each declaration: while it is the same, a name that cannot be assigned means the same. 0 if it never was
    /// bound.
    #[inline]
    pub(crate) fn version(&self) -> u32 {
        self.version.load(Ordering::Acquire)
    }

    /// Its value, if it is bound.
    pub(crate) fn value(&self) -> Option<Value> {
        self.lock().binding.as_ref().map(|b| b.value.clone())
    }

    pub(crate) fn declare(&self, value: Value, kind: BindingKind) {
        let mut slot = self.lock();
        let before = slot.binding.replace(Binding { value, kind });
        slot.touched = true;
        self.version.fetch_add(1, Ordering::Release);
        drop(slot);
        // Dropped outside the lock: a value may own cells of its own.
        drop(before);
    }
}

impl Root {
    pub(crate) fn new(kind: RootKind, snapshot: Bindings) -> Arc<Self> {
        Arc::new(Self { kind, snapshot, cells: Mutex::default(), committed: AtomicBool::new(false) })
    }

    pub(crate) fn kind(&self) -> RootKind {
        self.kind
    }

    /// The cell of `name`; made if it is not there yet.
    pub(crate) fn cell(&self, name: &Str) -> Arc<RootCell> {
        let mut cells = self.cells();
        if let Some(cell) = cells.get(name) {
            return cell.clone();
        }
        let binding = self.snapshot.get(name).cloned();
        let version = AtomicU32::new(binding.is_some().into());
        let cell = Arc::new(RootCell { slot: Mutex::new(RootSlot { binding, touched: false }), version });
        cells.insert(name.clone(), cell.clone());
        cell
    }

    /// The binding of `name`, without making a cell for it.
    pub(crate) fn find(&self, name: &str) -> Option<Binding> {
        let cell = self.cells().get(name).cloned();
        match cell {
            Some(cell) => cell.lock().binding.clone(),
            None => self.snapshot.get(name).cloned(),
        }
    }

    /// All bound names with their kinds, in any order.
    pub(crate) fn names(&self) -> Vec<(Str, BindingKind)> {
        let cells = self.cells();
        let own = cells.iter().filter_map(|(name, cell)| Some((name.clone(), cell.lock().binding.as_ref()?.kind)));
        let kept = self.snapshot.iter().filter(|(name, _)| !cells.contains_key(*name));
        own.chain(kept.map(|(name, binding)| (name.clone(), binding.kind))).collect()
    }

    /// What the request at its end commits: all that was declared or assigned, in the order of names.
    pub(crate) fn commit(&self) -> Vec<(Str, Binding)> {
        let cells = self.cells();
        self.committed.store(true, Ordering::Relaxed);
        changes(&cells)
    }

    /// What a task at its end commits: what was declared or assigned since its request committed. Nothing before that,
    /// because the request's own commit will take it.
    pub(crate) fn commit_late(&self) -> Vec<(Str, Binding)> {
        let cells = self.cells();
        if self.committed.load(Ordering::Relaxed) { changes(&cells) } else { Vec::new() }
    }

    /// Forgets all names, so that closures that keep this root do not keep each other.
    pub(crate) fn clear(&self) {
        let cells = std::mem::take(&mut *self.cells());
        for cell in cells.values() {
            let before = cell.lock().binding.take();
            drop(before);
        }
    }

    fn cells(&self) -> MutexGuard<'_, HashMap<Str, Arc<RootCell>>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the marks of what was declared or assigned.
fn changes(cells: &HashMap<Str, Arc<RootCell>>) -> Vec<(Str, Binding)> {
    let mut changes: Vec<_> = cells
        .iter()
        .filter_map(|(name, cell)| {
            let mut slot = cell.lock();
            if !std::mem::take(&mut slot.touched) {
                return None;
            }
            Some((name.clone(), slot.binding.clone()?))
        })
        .collect();
    changes.sort_by(|a, b| a.0.cmp(&b.0));
    changes
}

/// A variable that closures share. `None` until its declaration has run.
#[derive(Default)]
pub(crate) struct LocalCell(Mutex<Option<Value>>);

impl LocalCell {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LocalCell {
    pub(crate) fn bound(value: Value) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some(value))))
    }
}
