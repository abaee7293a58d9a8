//! Running programs: what a host calls.
//!
//! A request runs on a snapshot of the session's state ([`State`]) and gives its own changes back ([`Changes`]), which the
//! host commits in one step with [`State::commit`].

use std::sync::{Arc, Mutex};

use shoal_syntax::Names;
use shoal_syntax::ast::Program;
use shoal_value::{DateTime, ErrorValue, Str, Table, Value};

use crate::cancel::CancelReason;
use crate::channel::Channels;
use crate::code::Unit;
use crate::compile::{self, Options};
use crate::host::{Dir, Host, Run};
use crate::machine::{Machine, Session};
use crate::module::Modules;
use crate::place::Place;
use crate::plan::LocalPlans;
use crate::scope::{Binding, Bindings, Root, RootKind};
use crate::task::Tasks;
use crate::unwind::{Eval, Stop, Unwind};
use crate::vm::Lambda;

/// The results of a session so far, as of a snapshot.
pub trait Transcript: Send + Sync {
    /// The newest value that is not null or an error; null if there is none. Fails if it is stored and cannot be read.
    fn newest(&self) -> Result<Value, ErrorValue>;

    /// The `n`-th value from 1; negative from the newest. Fails if it is stored and cannot be read.
    fn nth(&self, n: i64) -> Result<Option<Value>, ErrorValue>;

    /// `{n, type, ok, src}` of all.
    fn table(&self) -> Result<Table, ErrorValue>;

    /// Whether the names of earlier requests are gone, although their results are here.
    fn lost_its_names(&self) -> bool {
        false
    }
}

/// A session as its evaluators share it: the host, its tasks and its plans.
#[derive(Clone)]
pub struct Evaluators(pub(crate) Arc<Session>);

/// The state of a session at a moment. Cloning is a snapshot and costs little.
#[derive(Clone)]
pub struct State {
    /// Names.
    pub bindings: Bindings,
    /// Working directory and environment.
    pub place: Place,
    /// Modules loaded.
    pub modules: ModuleCache,
    /// Results; `None` in a script, where `it` and `out` mean nothing.
    pub transcript: Option<Arc<dyn Transcript>>,
}

/// Modules by path; cloning shares it.
#[derive(Clone, Default)]
pub struct ModuleCache(pub(crate) Modules);

/// How a program is run.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// Whether the last statement is in statement position, where a failed outcome raises.
    pub statement: bool,
    /// Whether it is a request of a session: its closures use the root scope of whatever request runs them.
    pub session: bool,
}

/// What a request changed.
#[derive(Default)]
pub struct Changes {
    /// Names declared or assigned, taken when they are committed: a task may still change them.
    bindings: Option<Arc<Root>>,
    /// Variables set, or removed.
    pub env: Vec<(Str, Option<Arc<[u8]>>)>,
    /// Where it stands, if it changed directory.
    pub cwd: Option<Directories>,
    /// Modules it loaded.
    pub modules: ModuleCache,
}

/// Working directory, the one before, and the stack.
pub type Directories = (Arc<dyn Dir>, Option<Arc<dyn Dir>>, Vec<Arc<dyn Dir>>);

/// What a task that ended may have changed in the root scope of its request. The host commits it with
/// [`State::commit_task`].
pub struct TaskChanges(pub(crate) Arc<Root>);

/// The end of a request.
pub struct Finish {
    /// Its value, or the error it ended with. Null after `exit`.
    pub result: Result<Value, ErrorValue>,
    /// Status of `exit`, if that ended it.
    pub exit: Option<i64>,
    /// What it changed, whichever way it ended.
    pub changes: Changes,
}

impl Evaluators {
    /// The evaluators of a session over a host. `on_task_end` is called at the end of each task, before those who
    /// wait for it go on.
    pub fn new(host: Arc<dyn Host>, on_task_end: impl Fn(TaskChanges) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Session {
            host,
            tasks: Tasks::new(Box::new(on_task_end)),
            plans: Mutex::new(LocalPlans::default()),
            channels: Channels::default(),
        }))
    }

    /// The program or session is over: asks all unfinished tasks to end, and closes the channels.
    pub fn close(&self) {
        self.0.channels.close();
        self.0.tasks.cancel_all(CancelReason::Cancelled);
    }

    /// Adds an event of the host's bus to the channel of this name. `channel_closed` after [`Self::close`].
    pub fn deliver(&self, channel: &str, payload: Value) -> Result<(), ErrorValue> {
        let clock = self.0.host.clock();
        let ts = DateTime::from(clock.now().to_zoned_datetime(clock.zone()));
        self.0.channels.push(channel, ts, payload)
    }

    /// The tasks of the session.
    pub fn tasks(&self) -> &Tasks {
        &self.0.tasks
    }

    /// Runs a program that was parsed from `source` with [`State::names`]. Must be called on a thread made by
    /// [`crate::stack::spawn_evaluator`].
    pub fn run(&self, program: &Program, source: &str, state: &State, position: Position, run: Run) -> Finish {
        let kind = if position.session { RootKind::Session } else { RootKind::Own };
        let root = Root::new(kind, state.bindings.clone());
        let mut machine = Machine::new(self.0.clone(), run, state.place.clone(), root.clone());
        machine.modules = state.modules.0.clone();
        machine.transcript.clone_from(&state.transcript);
        let unit = Unit::new(source.into());
        let options = Options {
            zone: self.0.host.clock().zone(),
            known: state.bindings.keys().cloned().collect(),
            statement: position.statement,
            top_level: true,
            journaled: self.0.host.journal().is_some() && position.statement,
        };
        let result = machine.run_program(program, unit, options, root.clone());
        if let Err(unwind) = &result {
            machine.statement_end(Some(unwind));
        }
        let (result, exit) = match result {
            Ok(value) => (Ok(value), None),
            Err(Unwind::Raise(error)) => (Err(error), None),
            Err(Unwind::Stop(Stop::Exit(status))) => (Ok(Value::Null), Some(status)),
            Err(Unwind::Stop(stop)) => (stop.error().map_or(Ok(Value::Null), Err), None),
        };
        Finish { result, exit, changes: machine.into_changes() }
    }
}

impl Evaluators {
    /// Derives the effects of a program in a state, without running anything. Files are read only to expand patterns and
    /// to analyse scripts named by static paths.
    pub fn derive(&self, program: &Program, state: &State, run: Run) -> Vec<crate::effects::Effect> {
        self.derived(program, state, run, false).effects
    }

    /// The same, with everything else a plan of the program is bound to.
    pub fn claim(&self, program: &Program, state: &State, run: Run) -> crate::effects::Claimed {
        self.derived(program, state, run, true).into()
    }

    fn derived(&self, program: &Program, state: &State, run: Run, binds: bool) -> crate::effects::Derived {
        let root = Root::new(RootKind::Session, state.bindings.clone());
        let mut machine = Machine::new(self.0.clone(), run, state.place.clone(), root.clone());
        machine.transcript.clone_from(&state.transcript);
        crate::effects::derive(&mut machine, &root, program, binds)
    }
}

impl Machine {
    /// Compiles a program and runs it in `root`.
    pub(crate) fn run_program(
        &mut self,
        program: &Program,
        unit: Arc<Unit>,
        options: Options,
        root: Arc<Root>,
    ) -> Eval<Value> {
        let code = compile::compile(program, unit.clone(), options);
        self.run_code(code, root)
    }

    pub(crate) fn run_code(&mut self, code: Arc<crate::code::Code>, root: Arc<Root>) -> Eval<Value> {
        let linked = crate::vm::Linked::new(root, code.unit.clone());
        let lambda = Arc::new(Lambda { code, captures: Box::default(), linked: Some(linked) });
        let (floor, base) = (self.frames.len(), self.stack.len());
        self.push_frame(lambda, base, None)?;
        self.run(floor)
    }

    pub(crate) fn into_changes(self) -> Changes {
        let env = self.changes.env.iter().map(|name| (name.clone(), self.place.env.get(name).cloned())).collect();
        let Place { cwd, previous, stack, .. } = self.place;
        Changes {
            bindings: Some(self.root.clone()),
            env,
            cwd: self.changes.cwd.then_some((cwd, previous, stack)),
            modules: ModuleCache(self.modules),
        }
    }
}

impl State {
    /// A session or script that begins in `place`.
    pub fn new(place: Place) -> Self {
        Self { bindings: Bindings::default(), place, modules: ModuleCache::default(), transcript: None }
    }

    /// The names a source is to be parsed with.
    pub fn names(&self) -> Names {
        let (value, command): (Vec<_>, Vec<_>) = self.bindings.iter().partition(|(_, b)| b.kind.is_value());
        let names = |bindings: Vec<(&Str, &Binding)>| bindings.into_iter().map(|(name, _)| name.clone()).collect();
        Names { value: names(value), command: names(command), session: self.transcript.is_some() }
    }

    /// Takes over the changes of a request that ended: of each name, variable and directory the last finisher wins.
    pub fn commit(&mut self, changes: Changes) {
        self.commit_bindings(changes.bindings.map_or_else(Vec::new, |root| root.commit()));
        for (name, value) in changes.env {
            match value {
                Some(value) => self.place.env.insert_mut(name, value),
                None => drop(self.place.env.remove_mut(&*name)),
            }
        }
        if let Some((cwd, previous, stack)) = changes.cwd {
            (self.place.cwd, self.place.previous, self.place.stack) = (cwd, previous, stack);
        }
        self.modules.0.merge(&changes.modules.0);
    }

    /// Takes over what a task changed after its request had committed.
    pub fn commit_task(&mut self, task: TaskChanges) {
        self.commit_bindings(task.0.commit_late());
    }

    /// Takes over names.
    pub fn commit_bindings(&mut self, bindings: Vec<(Str, Binding)>) {
        for (name, binding) in bindings {
            self.bindings.insert_mut(name, binding);
        }
    }
}
