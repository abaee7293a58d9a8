//! The state of one evaluator.

use std::sync::{Arc, Mutex};

use shoal_value::{ErrorValue, Str, Value, code, error::Span};

use crate::code::{Place as SourcePlace, Unit};
use crate::host::{Dir, Host, Run};
use crate::module::Modules;
use crate::place::{Place, PlaceChanges};
use crate::request::Transcript;
use crate::scope::{LocalCell, Root};
use crate::task::Tasks;
use crate::unwind::{Eval, Stop};
use crate::vm::{Callees, Frames, Handler, Lambda, Linked, Links, LoopState, Operands, SavedPlace};

/// What all evaluators of a session share.
pub(crate) struct Session {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) tasks: Tasks,
    pub(crate) plans: Mutex<crate::plan::LocalPlans>,
    pub(crate) channels: crate::channel::Channels,
}

/// Steps between two looks at the token and the meter.
const STEPS_PER_CHECK: u32 = 64;
/// Bytes of a variable's name and value together. With `=` and NUL that is 128 KiB, and no system gives a program more.
const MAX_VARIABLE: usize = 128 * 1024 - 2;

/// An evaluator. There is one constructor besides [`Machine::child`], which makes every child.
pub(crate) struct Machine {
    pub(crate) session: Arc<Session>,
    pub(crate) run: Run,
    pub(crate) place: Place,
    pub(crate) changes: PlaceChanges,
    pub(crate) root: Arc<Root>,
    pub(crate) modules: Modules,
    pub(crate) transcript: Option<Arc<dyn Transcript>>,
    /// Number of the task it runs; 0 for a request.
    pub(crate) task: u64,
    /// Nested calls of the evaluators around it.
    pub(crate) depth: usize,

    pub(crate) stack: Operands,
    pub(crate) cells: Vec<Arc<LocalCell>>,
    pub(crate) frames: Frames,
    pub(crate) handlers: Vec<Handler>,
    pub(crate) loops: Vec<LoopState>,
    pub(crate) places: Vec<SavedPlace>,
    /// Functions among its frames that are the body of this evaluator.
    own_functions: usize,
    /// Place of the call that runs a native.
    pub(crate) here: SourcePlace,
    pub(crate) entry: Option<u64>,
    links: Links,
    /// Shared with its running loops, which borrow from it.
    pub(crate) callees: Arc<Callees>,
    steps: u32,
}

impl Machine {
    pub(crate) fn new(session: Arc<Session>, run: Run, place: Place, root: Arc<Root>) -> Self {
        Self {
            session,
            run,
            place,
            changes: PlaceChanges::default(),
            root,
            modules: Modules::default(),
            transcript: None,
            task: 0,
            depth: 0,
            stack: Operands::default(),
            cells: Vec::new(),
            frames: Frames::default(),
            handlers: Vec::new(),
            loops: Vec::new(),
            places: Vec::new(),
            own_functions: 0,
            here: SourcePlace::default(),
            entry: None,
            links: Links::default(),
            callees: Arc::default(),
            steps: 0,
        }
    }

    /// An evaluator for something this one starts: it has all of its state, a child of its token, and no frames.
    pub(crate) fn child(&self) -> Self {
        let run = Run { cancel: self.run.cancel.child(), ..self.run.clone() };
        let mut child = Self::new(self.session.clone(), run, self.place.clone(), self.root.clone());
        child.modules = self.modules.clone();
        child.transcript = self.transcript.clone();
        child.task = self.task;
        child.depth = self.depth + self.frames.len();
        child
    }

    /// Runs a closure without arguments as the body of this evaluator.
    pub(crate) fn run_body(&mut self, lambda: Arc<Lambda>) -> Eval<Value> {
        self.push_frame(lambda, 0, None)?;
        // The body of a child is no function here: it has a directory and an environment of its own.
        self.own_functions = self.functions();
        self.run(0)
    }

    pub(crate) fn link(&mut self, unit: &Arc<Unit>) -> Arc<Linked> {
        self.links.of(&self.root, unit)
    }

    /// The root scope of the running function.
    pub(crate) fn root_here(&self) -> Arc<Root> {
        let own = self.frames.last().and_then(|frame| self.lambda_of(frame).linked.as_ref());
        own.map_or_else(|| self.root.clone(), |linked| linked.root.clone())
    }

    pub(crate) fn span_here(&self) -> Option<Span> {
        self.frames.last().map(|frame| self.lambda_of(frame).code.unit.span(self.here))
    }

    pub(crate) fn in_function(&self) -> bool {
        self.functions() > self.own_functions
    }

    /// Function bodies among the frames.
    fn functions(&self) -> usize {
        self.frames.iter().filter(|frame| self.lambda_of(frame).code.kind.is_function()).count()
    }

    /// Counts `n` steps; now and then looks whether the run is to end.
    #[inline]
    pub(crate) fn step(&mut self, n: u32) -> Eval<()> {
        self.steps += n;
        if self.steps < STEPS_PER_CHECK { Ok(()) } else { self.look() }
    }

    #[cold]
    fn look(&mut self) -> Eval<()> {
        let steps = std::mem::take(&mut self.steps);
        if let Some(reason) = self.run.cancel.reason() {
            return Err(Stop::Cancelled(reason).into());
        }
        self.run.meter.step(u64::from(steps)).map_err(|text| Stop::Budget(text).into())
    }

    pub(crate) fn alloc(&self, bytes: usize) -> Eval<()> {
        self.run.meter.alloc(bytes as u64).map_err(|text| Stop::Budget(text).into())
    }

    /// The newest value of the transcript: what `it` means.
    pub(crate) fn newest(&self) -> Eval<Value> {
        match &self.transcript {
            Some(transcript) => Ok(transcript.newest()?),
            None => Ok(Value::Null),
        }
    }

    pub(crate) fn transcript_table(&self) -> Eval<Value> {
        match &self.transcript {
            Some(transcript) => Ok(Value::Table(transcript.table()?)),
            None => Ok(Value::Null),
        }
    }

    pub(crate) fn transcript_item(&mut self, at: &Value) -> Eval<Value> {
        let Value::Int(n) = at else {
            return Err(ErrorValue::type_error(format!("out[n]: expected int, found {}", at.type_name())).into());
        };
        let value = match &self.transcript {
            Some(transcript) => transcript.nth(*n)?,
            None => None,
        };
        value.ok_or_else(|| ErrorValue::new(code::INDEX_RANGE, format!("there is no out[{n}]")).into())
    }

    /// The bytes of a value as an environment variable; null removes it.
    pub(crate) fn env_value(&self, name: &str, value: &Value) -> Eval<Option<Arc<[u8]>>> {
        let bytes: Arc<[u8]> = match value {
            Value::Null => return Ok(None),
            Value::Path(path) => path.as_bytes().into(),
            other => crate::command::argument_text(other)?.as_bytes().into(),
        };
        if bytes.contains(&0) {
            return Err(ErrorValue::arg_error(format!("the variable {name} would hold a NUL byte")).into());
        }
        if name.len() + bytes.len() > MAX_VARIABLE {
            let text = format!("the variable {name} would have {} bytes, and {MAX_VARIABLE} is the most", bytes.len());
            let hint = "keep it in a name, or give it to programs by `feed` or a file";
            return Err(ErrorValue::too_large(text).with_hint(hint).into());
        }
        Ok(Some(bytes))
    }

    /// `env.NAME`.
    pub(crate) fn env_var(&self, name: &str) -> Eval<Value> {
        self.session.host.judge_env(false, name)?;
        match self.place.env.get(name) {
            None => Ok(Value::Null),
            Some(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Value::str(text)),
                Err(_) => Err(ErrorValue::new(code::UTF8_ERROR, format!("the variable {name} is not UTF-8")).into()),
            },
        }
    }

    /// `env.NAME = v` with the value on top of the stack.
    pub(crate) fn set_env(&mut self, name: &Str) -> Eval<()> {
        let value = self.stack.pop().unwrap_or(Value::Null);
        if self.in_function() {
            let text = "the environment is changed at the top level only, not inside a function";
            let hint = format!("scope it with `with env: {{{name}: value}} {{ ... }}`");
            return Err(ErrorValue::new(code::CUSTOM, format!("{text}: use with env:")).with_hint(hint).into());
        }
        self.session.host.judge_env(true, name)?;
        match self.env_value(name, &value)? {
            Some(bytes) => self.place.env.insert_mut(name.clone(), bytes),
            None => drop(self.place.env.remove_mut(&**name)),
        }
        self.changes.env.insert(name.clone());
        Ok(())
    }

    /// Opens a directory as a working directory.
    pub(crate) fn open_dir(&self, path: &shoal_value::PathValue) -> Eval<Arc<dyn Dir>> {
        let at = crate::host::At { dir: &self.place.cwd, path: path.as_bytes() };
        Ok(self.session.host.files().open_dir(at).map_err(|e| e.about(path.as_bytes()))?)
    }
}
