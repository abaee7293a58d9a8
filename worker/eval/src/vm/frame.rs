//! Frames, handlers and loops of the machine.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use shoal_value::{Callable, List, Range, Str, Table, Value};

use super::callees::{Body, Callees};
use crate::code::{Code, CodeKind, Unit};
use crate::command::Word;
use crate::place::Place;
use crate::scope::{LocalCell, Root, RootCell};

/// A function with the variables it closes over.
pub(crate) struct Lambda {
    pub(crate) code: Arc<Code>,
    pub(crate) captures: Box<[Arc<LocalCell>]>,
    /// The root scope it keeps; `None` for the root of the running request.
    pub(crate) linked: Option<Arc<Linked>>,
}

impl Callable for Lambda {
    fn repr(&self) -> String {
        let mut params: Vec<String> = self.code.params.iter().map(|p| p.name.to_string()).collect();
        params.extend(self.code.rest.iter().map(|rest| format!("...{}", rest.name)));
        let params = params.join(", ");
        match (&self.code.name, self.code.kind) {
            (Some(name), CodeKind::Function) => format!("fn {name}({params})"),
            _ => format!("closure({params})"),
        }
    }
}

/// A unit's names joined to the cells of a root scope, each on first use.
pub(crate) struct Linked {
    pub(crate) root: Arc<Root>,
    pub(crate) unit: Arc<Unit>,
    cells: Box<[OnceLock<Arc<RootCell>>]>,
}

impl Linked {
    pub(crate) fn new(root: Arc<Root>, unit: Arc<Unit>) -> Arc<Self> {
        let cells = unit.names().iter().map(|_| OnceLock::new()).collect();
        Arc::new(Self { root, unit, cells })
    }

    #[inline]
    pub(crate) fn cell(&self, name: u32) -> &Arc<RootCell> {
        let cell = &self.cells[name as usize];
        cell.get_or_init(|| self.root.cell(self.name(name)))
    }

    pub(crate) fn name(&self, name: u32) -> &Str {
        &self.unit.names()[name as usize]
    }
}

/// Links of the root of the running request, by unit.
#[derive(Default)]
pub(crate) struct Links {
    all: HashMap<usize, Arc<Linked>>,
    /// The one asked for last: calls from a loop over items ask for the same one each time.
    last: Option<Arc<Linked>>,
}

impl Links {
    pub(crate) fn of(&mut self, root: &Arc<Root>, unit: &Arc<Unit>) -> Arc<Linked> {
        if let Some(last) = self.last.as_ref().filter(|last| Arc::ptr_eq(&last.unit, unit)) {
            return last.clone();
        }
        // The link keeps its unit, so that the address cannot be taken by another one.
        let key = Arc::as_ptr(unit) as usize;
        let link = self.all.entry(key).or_insert_with(|| Linked::new(root.clone(), unit.clone())).clone();
        self.last = Some(link.clone());
        link
    }
}

/// A running function.
#[derive(Default)]
pub(crate) struct Frame {
    pub(crate) function: Function,
    /// Its first local on the stack.
    pub(crate) base: usize,
    /// Its first cell.
    pub(crate) cells: usize,
    /// The operation to go on at when the call it waits for returns.
    pub(crate) pc: usize,
    pub(crate) heights: Heights,
    /// What few calls have.
    pub(crate) more: Option<Box<More>>,
}

/// Which function a frame runs.
pub(crate) enum Function {
    Own(Arc<Lambda>),
    /// One of the [`Callees`](super::Callees), by number.
    Callee(usize),
}

impl Default for Function {
    fn default() -> Self {
        Self::Callee(0)
    }
}

/// What few calls have.
#[derive(Default)]
pub(crate) struct More {
    /// Parameters that take their default.
    pub(crate) missing: Vec<u32>,
    /// Words to append to the command of an alias.
    pub(crate) appended: Vec<Word>,
}

/// Where the loop is in the frame it runs.
#[derive(Clone, Copy)]
pub(super) struct Position<'a> {
    /// The function, if it is one that outlives the loop; else the loop owns it.
    pub(super) kept: Option<&'a Body>,
    pub(super) base: usize,
    pub(super) cells: usize,
    /// The next operation.
    pub(super) pc: usize,
}

/// What a loop can go on in by itself.
#[derive(Clone, Copy)]
pub(super) struct Calls<'a> {
    /// Number of its first frame.
    pub(super) floor: usize,
    /// The function of that frame.
    pub(super) first: &'a Body,
    pub(super) callees: &'a Callees,
}

/// Where the loop over operations is.
#[derive(Clone, Copy)]
pub(super) struct Here<'a> {
    pub(super) lambda: &'a Lambda,
    pub(super) linked: &'a Arc<Linked>,
    pub(super) base: usize,
    pub(super) cells: usize,
}

/// Heights of the machine's side stacks.
#[derive(Clone, Copy, Default)]
pub(crate) struct Heights {
    pub(crate) loops: usize,
    pub(crate) places: usize,
    pub(crate) handlers: usize,
}

/// Where an error is caught.
#[derive(Clone, Copy)]
pub(crate) struct Handler {
    /// Index of its frame.
    pub(crate) frame: usize,
    pub(crate) target: usize,
    pub(crate) stack: usize,
    pub(crate) heights: Heights,
}

/// The place before a `with`, to come back to.
pub(crate) struct SavedPlace {
    pub(crate) place: Place,
}

/// A running loop.
pub(crate) struct LoopState {
    pub(crate) items: Loop,
    /// Height of the stack around it.
    pub(crate) stack: usize,
}

/// The items of a `for` that are still to come.
pub(crate) enum Loop {
    /// Of a `while`: none.
    Endless,
    Range(Ints),
    List {
        list: List,
        at: usize,
    },
    Table {
        table: Table,
        at: usize,
    },
    Values(std::vec::IntoIter<Value>),
}

/// Ints of a range that are still to come.
pub(crate) struct Ints {
    next: i64,
    /// How many. A range of all ints has one more than fit here, which no run gets to.
    left: u64,
}

impl Ints {
    pub(super) fn of(range: &Range) -> Self {
        let end = i128::from(range.end) + i128::from(range.inclusive);
        let left = (end - i128::from(range.start)).max(0);
        Self { next: range.start, left: u64::try_from(left).unwrap_or(u64::MAX) }
    }
}

impl Iterator for Ints {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        self.left = self.left.checked_sub(1)?;
        let n = self.next;
        self.next = n.wrapping_add(1);
        Some(n)
    }
}

impl Iterator for Loop {
    type Item = Value;

    #[inline]
    fn next(&mut self) -> Option<Value> {
        match self {
            Self::Range(ints) => ints.next().map(Value::Int),
            Self::List { list, at } => {
                let item = list.get(*at)?.clone();
                *at += 1;
                Some(item)
            }
            Self::Table { table, at } => {
                let row = table.rows().get(*at)?.clone();
                *at += 1;
                Some(Value::Record(row))
            }
            Self::Values(items) => items.next(),
            Self::Endless => None,
        }
    }
}
