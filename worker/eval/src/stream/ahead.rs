//! Sources pulled ahead by threads of their own, so that a consumer can wait for several at once, or only for a time.

use std::collections::VecDeque;

use shoal_value::{ErrorValue, Value, code};

use super::{Source, Taken};
use crate::cancel::{CancelReason, CancelToken};
use crate::machine::Machine;
use crate::stack;
use crate::unwind::{Eval, Unwind};
use crate::wait::Watched;

/// Sources and their threads, which start with the first pull and end with this.
pub(crate) struct Ahead {
    sources: Vec<Taken>,
    room: usize,
    pulled: Watched<Pulled>,
    cancel: Option<CancelToken>,
}

/// What was pulled and not yet taken.
#[derive(Default)]
struct Pulled {
    items: VecDeque<(usize, Value)>,
    /// Threads that still pull.
    pulling: usize,
    failed: Option<Unwind>,
    abandoned: bool,
}

/// What a wait for the next item came to.
pub(crate) enum Next {
    /// An item of the source with this index.
    Item(usize, Value),
    /// All sources have ended.
    End,
    /// The time is over.
    Late,
}

impl Ahead {
    /// At most `room` items are pulled ahead.
    pub(crate) fn new(sources: Vec<Taken>, room: usize) -> Self {
        Self { sources, room: room.max(1), pulled: Watched::new(Pulled::default()), cancel: None }
    }

    /// The next item of any source, or `Late` if the clock reaches `due` before.
    pub(crate) fn next(&mut self, machine: &mut Machine, due: Option<u64>) -> Eval<Next> {
        self.start(machine)?;
        let clock = machine.session.host.clock();
        let next = self.pulled.wait(clock, &machine.run.cancel, due, |pulled| {
            if let Some((source, item)) = pulled.items.pop_front() {
                return Some(Ok(Next::Item(source, item)));
            }
            if let Some(unwind) = pulled.failed.take() {
                return Some(Err(unwind));
            }
            (pulled.pulling == 0).then_some(Ok(Next::End))
        })?;
        // There is room again.
        self.pulled.change(|_| ());
        next.unwrap_or(Ok(Next::Late))
    }

    fn start(&mut self, machine: &Machine) -> Eval<()> {
        if self.cancel.is_some() {
            return Ok(());
        }
        let cancel = machine.run.cancel.child();
        self.cancel = Some(cancel.clone());
        for (index, source) in std::mem::take(&mut self.sources).into_iter().enumerate() {
            let mut child = machine.child();
            child.run.cancel = cancel.clone();
            self.pulled.lock().pulling += 1;
            let pull = Pull { pulled: self.pulled.clone(), index, room: self.room, end: Err(broken()) };
            let started = stack::spawn_evaluator("stream", move || pull.run(source, &mut child));
            started.map_err(|e| ErrorValue::new(code::IO_ERROR, format!("no thread for a stream: {e}")))?;
        }
        Ok(())
    }
}

impl Drop for Ahead {
    /// Nobody takes items any more: the threads are asked to end.
    fn drop(&mut self) {
        self.pulled.change(|pulled| pulled.abandoned = true);
        if let Some(cancel) = &self.cancel {
            cancel.cancel(CancelReason::Cancelled);
        }
    }
}

/// One source on its thread. Its end is told when it is dropped, so also when the thread breaks down.
struct Pull {
    pulled: Watched<Pulled>,
    index: usize,
    room: usize,
    end: Eval<()>,
}

impl Pull {
    fn run(mut self, source: Taken, machine: &mut Machine) {
        self.end = self.all(source, machine);
    }

    fn all(&self, mut source: Taken, machine: &mut Machine) -> Eval<()> {
        while let Some(item) = source.next(machine)? {
            let mut item = Some(item);
            let clock = machine.session.host.clock();
            let put = self.pulled.wait(clock, &machine.run.cancel, None, |pulled| {
                if pulled.abandoned {
                    return Some(false);
                }
                if pulled.items.len() >= self.room {
                    return None;
                }
                pulled.items.extend(item.take().map(|item| (self.index, item)));
                Some(true)
            })?;
            if put == Some(false) {
                break;
            }
            self.pulled.change(|_| ());
        }
        Ok(())
    }
}

impl Drop for Pull {
    fn drop(&mut self) {
        let end = std::mem::replace(&mut self.end, Ok(()));
        self.pulled.change(|pulled| {
            pulled.pulling -= 1;
            if let Err(unwind) = end {
                pulled.failed.get_or_insert(unwind);
            }
        });
    }
}

fn broken() -> Unwind {
    ErrorValue::new(code::CUSTOM, "the evaluator of a stream broke down").into()
}

/// The same items, some of them pulled ahead; of several sources in the order they come.
pub(crate) struct Together(pub(crate) Ahead);

impl Source for Together {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        match self.0.next(machine, None)? {
            Next::Item(_, item) => Ok(Some(item)),
            Next::End | Next::Late => Ok(None),
        }
    }
}

/// Items of the first source until the second one has some.
pub(crate) struct UntilOther(pub(crate) Option<Ahead>);

impl Source for UntilOther {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        let Some(ahead) = &mut self.0 else { return Ok(None) };
        if let Next::Item(0, item) = ahead.next(machine, None)? {
            return Ok(Some(item));
        }
        self.0 = None;
        Ok(None)
    }
}

/// The last item before a quiet interval; at the end the pending one.
pub(crate) struct Quiet {
    pub(crate) ahead: Ahead,
    pub(crate) interval: u64,
}

impl Source for Quiet {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        let (mut last, mut due) = (None, None);
        loop {
            match self.ahead.next(machine, due)? {
                Next::Item(_, item) => {
                    due = Some(machine.session.host.clock().monotonic_ns().saturating_add(self.interval));
                    last = Some(item);
                }
                Next::Late | Next::End => return Ok(last),
            }
        }
    }
}
