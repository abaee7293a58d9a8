//! Tasks: evaluators that run beside the one that started them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use shoal_value::handle::concrete;
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

/// Finished tasks kept for `jobs`; the oldest go first.
const KEPT: usize = 256;

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
        if all.tasks.len() > KEPT
            && let Some(id) = all.tasks.iter().find(|(_, task)| task.is_done()).map(|(id, _)| *id)
        {
            all.tasks.remove(&id);
        }
        task
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
