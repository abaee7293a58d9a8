//! Tasks: evaluators that run beside the one that started them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use shoal_value::handle::concrete;
use shoal_value::weight::weigh;
use shoal_value::{DateTime, ErrorValue, Str, TaskHandle, Value, code};

use crate::cancel::{CancelReason, CancelToken};
use crate::host::Clock;
use crate::machine::Machine;
use crate::request::TaskChanges;
use crate::stack;
use crate::unwind::{Eval, Stop, Unwind};
use crate::vm::Lambda;
use crate::wait::Watched;

/// First characters of a task's source shown by `jobs`.
const DESC_CHARS: usize = 200;

/// A running or finished task.
pub struct Task {
    id: u64,
    desc: Str,
    started: DateTime,
    cancel: CancelToken,
    suspended: AtomicBool,
    end: Watched<Option<End>>,
    /// Bytes of its result, about.
    weight: AtomicUsize,
}

#[derive(Clone)]
enum End {
    Value(Value),
    Failed(ErrorValue),
    Cancelled,
}

/// The tasks of a session.
pub struct Tasks {
    all: Mutex<Known>,
    on_end: OnTaskEnd,
}

/// What the host does at the end of a task.
pub(crate) type OnTaskEnd = Box<dyn Fn(TaskChanges) + Send + Sync>;

/// Tasks by number, and the last number given.
#[derive(Default)]
struct Known {
    last: u64,
    tasks: BTreeMap<u64, Arc<Task>>,
}

/// Tasks kept for `jobs`; the oldest finished ones go first.
const KEPT: usize = 256;
/// Bytes of the results of all of them. A task that a name or a result holds keeps its own for as long.
const HELD: usize = 8 * 1024 * 1024;
/// A result up to this is not worth forgetting its task for.
const SMALL: usize = 4 * 1024;

impl Tasks {
    pub(crate) fn new(on_end: OnTaskEnd) -> Self {
        Self { all: Mutex::default(), on_end }
    }

    fn all(&self) -> MutexGuard<'_, Known> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, make: impl FnOnce(u64) -> Task) -> Arc<Task> {
        let mut all = self.all();
        all.last += 1;
        let task = Arc::new(make(all.last));
        all.tasks.insert(task.id, task.clone());
        let dropped = all.trim();
        drop(all);
        drop(dropped);
        task
    }

    /// A task has ended: what the finished ones hold is bounded.
    fn ended(&self) {
        // Large results are freed without the lock.
        let dropped = self.all().trim();
        drop(dropped);
    }

    /// All tasks that are still known, by number.
    pub fn list(&self) -> Vec<Arc<Task>> {
        self.all().tasks.values().cloned().collect()
    }

    /// Asks all to end.
    pub fn cancel_all(&self, reason: CancelReason) {
        self.list().iter().for_each(|task| task.cancel.cancel(reason));
    }
}

impl Known {
    /// Takes out the oldest finished tasks beyond the bounds; never the newest of all.
    fn trim(&mut self) -> Vec<Arc<Task>> {
        let mut held: usize = self.tasks.values().map(|task| task.weight.load(Ordering::Relaxed)).sum();
        let mut surplus = self.tasks.len().saturating_sub(KEPT);
        let mut dropped = Vec::new();
        for task in self.tasks.values().filter(|task| task.is_done() && task.id != self.last) {
            if surplus == 0 && held <= HELD {
                break;
            }
            let weight = task.weight.load(Ordering::Relaxed);
            if surplus > 0 || weight > SMALL {
                held = held.saturating_sub(weight);
                surplus = surplus.saturating_sub(1);
                dropped.push(task.clone());
            }
        }
        dropped.iter().for_each(|task| drop(self.tasks.remove(&task.id)));
        dropped
    }
}

impl Task {
    /// First characters of its source.
    pub fn desc(&self) -> &Str {
        &self.desc
    }

    /// When it started.
    pub fn started(&self) -> &DateTime {
        &self.started
    }

    /// `running`, `suspended`, `done`, `failed` or `cancelled`.
    pub fn state(&self) -> &'static str {
        match &*self.end.lock() {
            None if self.is_suspended() => "suspended",
            None => "running",
            Some(End::Value(Value::Outcome(outcome))) if !outcome.ok => "failed",
            Some(End::Value(_)) => "done",
            Some(End::Failed(_)) => "failed",
            Some(End::Cancelled) => "cancelled",
        }
    }

    /// Asks it to end.
    pub fn cancel(&self) {
        self.cancel.cancel(CancelReason::Cancelled);
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.suspended.load(Ordering::Relaxed)
    }

    pub(crate) fn set_suspended(&self, suspended: bool) {
        self.suspended.store(suspended, Ordering::Relaxed);
    }

    fn finish(&self, end: End) {
        let weight = match &end {
            End::Value(value) => weigh(value).bytes,
            End::Failed(error) => weigh(&Value::Error(error.clone())).bytes,
            End::Cancelled => 0,
        };
        self.weight.store(weight, Ordering::Relaxed);
        self.end.change(|state| *state = Some(end));
    }

    /// Waits for its end, or until `cancel` is set.
    pub(crate) fn wait(&self, clock: &dyn Clock, cancel: &CancelToken) -> Eval<Value> {
        match self.end.wait(clock, cancel, None, |end| end.clone())? {
            Some(End::Value(value)) => Ok(value),
            Some(End::Failed(error)) => Err(error.into()),
            Some(End::Cancelled) | None => {
                Err(ErrorValue::new(code::CANCELLED, format!("task {} was cancelled", self.id)).into())
            }
        }
    }
}

impl TaskHandle for Task {
    fn id(&self) -> u64 {
        self.id
    }

    fn is_done(&self) -> bool {
        self.end.lock().is_some()
    }
}

/// A running thunk of `parallel`.
pub(crate) struct Thunk {
    end: Arc<(Mutex<Option<Eval<Value>>>, Condvar)>,
    cancel: CancelToken,
}

impl Drop for Thunk {
    /// A thunk nobody waits for any more is asked to end.
    fn drop(&mut self) {
        self.cancel.cancel(CancelReason::Cancelled);
    }
}

/// The task behind a shared handle.
pub(crate) fn task_of(handle: &Arc<dyn TaskHandle>) -> Result<Arc<Task>, ErrorValue> {
    if concrete::<Task>(&**handle).is_none() {
        return Err(ErrorValue::type_error("task of another evaluator"));
    }
    let any: Arc<dyn std::any::Any + Send + Sync> = handle.clone();
    any.downcast().map_err(|_| ErrorValue::type_error("task of another evaluator"))
}

impl Machine {
    /// Starts a closure without parameters as a task.
    pub(crate) fn spawn(&mut self, body: Arc<Lambda>) -> Eval<Value> {
        let text = body.code.unit.text(body.code.place);
        let desc: Str = text.chars().take(DESC_CHARS).collect::<String>().into();
        let task = self.start_task(desc, move |machine| machine.run_body(body))?;
        Ok(Value::Task(task))
    }

    /// Starts a thunk of `parallel`.
    pub(crate) fn start_thunk(&mut self, body: Arc<Lambda>) -> Eval<Thunk> {
        let mut machine = self.child();
        let end = Arc::new((Mutex::new(None), Condvar::new()));
        let (cancel, running) = (machine.run.cancel.clone(), end.clone());
        let started = stack::spawn_evaluator("parallel", move || {
            let mut last = OnEnd(Some(move |result| {
                *running.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                running.1.notify_all();
            }));
            let result = machine.run_body(body);
            drop(machine);
            last.end(result);
        });
        match started {
            Ok(_detached) => Ok(Thunk { end, cancel }),
            Err(error) => Err(ErrorValue::new(code::IO_ERROR, format!("no thread for a thunk: {error}")).into()),
        }
    }

    /// Waits for a thunk. A run that is cancelled still waits: the thunk sees the same token and ends by itself.
    pub(crate) fn join_thunk(&mut self, thunk: &Thunk) -> Eval<Value> {
        let mut end = thunk.end.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(result) = end.take() {
                return match result {
                    Err(Unwind::Stop(Stop::Exit(_))) => Ok(Value::Null),
                    result => result,
                };
            }
            end = thunk.end.1.wait(end).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Starts something as a task, with a description for `jobs`.
    pub(crate) fn start_task(
        &mut self,
        desc: Str,
        body: impl FnOnce(&mut Self) -> Eval<Value> + Send + 'static,
    ) -> Eval<Arc<Task>> {
        let mut machine = self.child();
        let clock = self.session.host.clock();
        let started = DateTime::from(clock.now().to_zoned_datetime(clock.zone()));
        let cancel = machine.run.cancel.clone();
        let task = self.session.tasks.add(|id| Task {
            id,
            desc,
            started,
            cancel,
            suspended: AtomicBool::new(false),
            end: Watched::new(None),
            weight: AtomicUsize::new(0),
        });
        machine.task = task.id;
        let running = task.clone();
        let started = stack::spawn_evaluator(&format!("task-{}", task.id), move || {
            let mut last = OnEnd(Some(move |result| running.finish(end_of(result))));
            let result = body(&mut machine);
            let (session, root) = (machine.session.clone(), machine.root.clone());
            drop(machine);
            (session.tasks.on_end)(TaskChanges(root));
            last.end(result);
            session.tasks.ended();
        });
        match started {
            Ok(_detached) => Ok(task),
            Err(error) => {
                let error = ErrorValue::new(code::IO_ERROR, format!("no thread for a task: {error}"));
                task.finish(End::Failed(error.clone()));
                Err(error.into())
            }
        }
    }
}

fn end_of(result: Eval<Value>) -> End {
    match result {
        Ok(value) => End::Value(value),
        Err(Unwind::Raise(error)) => End::Failed(error),
        Err(Unwind::Stop(Stop::Exit(_))) => End::Value(Value::Null),
        Err(Unwind::Stop(Stop::Cancelled(_))) => End::Cancelled,
        Err(Unwind::Stop(stop @ Stop::Budget(_))) => stop.error().map_or(End::Cancelled, End::Failed),
    }
}

/// Tells the waiters how a thread ended, also when it ends by a panic: nobody waits for ever.
struct OnEnd<F: FnOnce(Eval<Value>)>(Option<F>);

impl<F: FnOnce(Eval<Value>)> OnEnd<F> {
    fn end(&mut self, result: Eval<Value>) {
        if let Some(tell) = self.0.take() {
            tell(result);
        }
    }
}

impl<F: FnOnce(Eval<Value>)> Drop for OnEnd<F> {
    fn drop(&mut self) {
        self.end(Err(ErrorValue::new(code::CUSTOM, "the evaluator of a task broke down").into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(tasks: &Tasks, end: Option<Value>) -> Arc<Task> {
        let task = tasks.add(|id| Task {
            id,
            desc: "".into(),
            started: DateTime::from_unix_nanos(0).expect("the epoch"),
            cancel: CancelToken::new(),
            suspended: AtomicBool::new(false),
            end: Watched::new(None),
            weight: AtomicUsize::new(0),
        });
        if let Some(value) = end {
            task.finish(End::Value(value));
            tasks.ended();
        }
        task
    }

    fn numbers(tasks: &Tasks) -> Vec<u64> {
        tasks.list().iter().map(|task| task.id).collect()
    }

    #[test]
    fn finished_tasks_are_bounded_in_number_and_running_ones_stay() {
        let tasks = Tasks::new(Box::new(|_| {}));
        let running = task(&tasks, None);
        for _ in 0..KEPT + 20 {
            task(&tasks, Some(Value::Null));
        }
        let known = numbers(&tasks);
        assert_eq!((known.len(), known[0], known[1]), (KEPT, running.id, 23), "the running one is one of them");
    }

    #[test]
    fn the_results_of_finished_tasks_are_bounded_together() {
        let tasks = Tasks::new(Box::new(|_| {}));
        let small = task(&tasks, Some(Value::Int(1)));
        let held = task(&tasks, Some(Value::str("x".repeat(HELD / 2))));
        task(&tasks, Some(Value::str("y".repeat(HELD / 3))));
        task(&tasks, Some(Value::str("z".repeat(HELD / 3))));
        assert_eq!(numbers(&tasks), [small.id, 3, 4], "the oldest large one goes");
        assert!(held.is_done(), "whoever holds it has its result");
        task(&tasks, Some(Value::str("w".repeat(3 * HELD))));
        assert_eq!(numbers(&tasks), [small.id, 5], "the newest stays whatever its size");
    }
}
