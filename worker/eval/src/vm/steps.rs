//! The less frequent operations.

use std::sync::Arc;

use shoal_value::{Outcome, Record, Value, ops, outcome::Out};

use super::frame::{Heights, Here, Ints, Lambda, Linked, Loop};
use crate::Ctx;
use crate::code::{Capture, Code, CodeKind, Op};
use crate::command::AliasValue;
use crate::interp;
use crate::machine::Machine;
use crate::scope::{BindingKind, LocalCell, RootKind};
use crate::types::Misfit;
use crate::unwind::Eval;
use shoal_value::{ErrorValue, code as codes};

impl Machine {
    /// Drops the frame on top with all of its values.
    #[inline]
    pub(super) fn pop_frame(&mut self) {
        if let Some(frame) = self.frames.last() {
            self.stack.truncate(frame.base);
        }
        self.close_frame();
    }

    /// Drops the frame on top; its values are gone already.
    #[inline(always)]
    fn close_frame(&mut self) {
        if let Some(frame) = self.frames.last() {
            let (heights, cells) = (frame.heights, frame.cells);
            self.frames.pop();
            self.restore(heights);
            self.cells.truncate(cells);
        }
    }

    /// Leaves the frame on top with its value, which stays on top of the stack.
    #[inline(always)]
    pub(super) fn leave_frame(&mut self) {
        if let Some(frame) = self.frames.last() {
            self.stack.lower_top(frame.base);
        }
        self.close_frame();
    }

    #[inline]
    pub(super) fn heights(&self) -> Heights {
        Heights { loops: self.loops.len(), places: self.places.len(), handlers: self.handlers.len() }
    }

    /// Cuts the side stacks back; leaves every `with` entered since.
    #[inline(always)]
    pub(super) fn restore(&mut self, heights: Heights) {
        if self.loops.len() > heights.loops {
            self.loops.truncate(heights.loops);
        }
        self.handlers.truncate(heights.handlers);
        if self.places.len() > heights.places
            && let Some(saved) = self.places.drain(heights.places..).next()
        {
            self.place = saved.place;
        }
    }

    fn pop(&mut self) -> Value {
        self.stack.pop().unwrap_or(Value::Null)
    }

    /// Takes the `n` topmost values.
    pub(crate) fn take(&mut self, n: u32) -> Vec<Value> {
        self.stack.take(n as usize)
    }

    /// The value a function returns, checked against its annotation.
    pub(super) fn returned(&mut self, code: &Code) -> Result<Value, ErrorValue> {
        let value = self.pop();
        let Some(ret) = &code.ret else { return Ok(value) };
        ret.admit(value).map_err(|misfit| match misfit {
            Misfit::Error(error) => error,
            Misfit::Value { expected, found } => {
                let name = code.name.as_deref().unwrap_or("closure");
                ErrorValue::type_error(format!("{name} returned {found}, expected {expected}"))
            }
        })
    }

    pub(super) fn loop_over(&mut self, value: Value) -> Eval<Loop> {
        Ok(match value {
            Value::List(list) => Loop::List { list, at: 0 },
            Value::Table(table) => Loop::Table { table, at: 0 },
            Value::Range(range) => Loop::Range(Ints::of(&range)),
            Value::Glob(glob) => {
                let matches = Ctx::new(self).expand(&glob)?;
                Loop::Values(matches.into_iter().map(Value::Path).collect::<Vec<_>>().into_iter())
            }
            Value::Stream(stream) => Loop::Values(crate::stream::gather(self, &stream)?.into_iter()),
            Value::Outcome(outcome) => match outcome.out()?.clone() {
                out @ (Value::List(_) | Value::Table(_) | Value::Range(_) | Value::Glob(_)) => self.loop_over(out)?,
                out => return Err(not_iterable(&out).into()),
            },
            other => return Err(not_iterable(&other).into()),
        })
    }

    /// Pushes the next item of the innermost loop; false, and the loop dropped, if there is none.
    #[inline]
    pub(super) fn push_item(&mut self) -> bool {
        match self.loops.last_mut().map(|state| &mut state.items) {
            Some(Loop::Range(ints)) => {
                if let Some(n) = ints.next() {
                    self.stack.push_int(n);
                    return true;
                }
            }
            Some(items) => {
                if let Some(item) = items.next() {
                    self.stack.push(item);
                    return true;
                }
            }
            None => {}
        }
        self.loops.pop();
        false
    }

    pub(super) fn rare(&mut self, op: Op, here: Here<'_>, next: &mut usize) -> Eval<()> {
        let Here { lambda, linked, base, cells, .. } = here;
        let code = &lambda.code;
        let tables = &code.tables;
        match op {
            Op::FreshCell(at) => self.cells[cells + at as usize] = Arc::default(),
            Op::BoxLocal(local, at) => {
                let value = std::mem::replace(&mut self.stack[base + local as usize], Value::Null);
                self.cells[cells + at as usize] = LocalCell::bound(value);
            }
            Op::Cell(at) => {
                let value = self.cells[cells + at as usize].lock().clone().unwrap_or(Value::Null);
                self.stack.push(value);
            }
            Op::SetCell(at) => {
                let value = self.pop();
                let before = self.cells[cells + at as usize].lock().replace(value);
                drop(before);
            }
            Op::UpdateCell(at, op) => {
                let cell = self.cells[cells + at as usize].clone();
                self.update(&cell, op)?;
            }
            Op::Captured(at) => {
                let value = lambda.captures[at as usize].lock().clone().unwrap_or(Value::Null);
                self.stack.push(value);
            }
            Op::CapturedOr(at, target) => {
                let value = lambda.captures[at as usize].lock().clone();
                self.push_or(value, target, next);
            }
            Op::SetCaptured(at) => {
                let value = self.pop();
                let before = lambda.captures[at as usize].lock().replace(value);
                drop(before);
            }
            Op::UpdateCaptured(at, op) => {
                let cell = &lambda.captures[at as usize];
                self.update(cell, op)?;
            }
            Op::DeclareRoot(name, kind) => {
                let value = self.pop();
                linked.cell(name).declare(value, kind);
            }
            Op::AssignRoot(name) => self.assign_root(linked, name, None)?,
            Op::UpdateRoot(name, op) => self.assign_root(linked, name, Some(op))?,
            Op::List(n) => {
                let items = self.take(n);
                self.sized(items.len())?;
                self.stack.push(Value::list(items)?);
            }
            Op::Record(shape) => {
                let shape = &tables.shapes[shape as usize];
                let from = self.stack.len() - shape.keys().len();
                let record = Record::of_taken(shape, &mut (*self.stack)[from..])?;
                self.stack.truncate(from);
                self.stack.push(Value::Record(record));
            }
            Op::RecordOf(keys) => {
                let Value::List(keys) = &tables.consts[keys as usize] else { return Ok(()) };
                let values = self.take(keys.len() as u32);
                let pairs = keys.iter().filter_map(|k| k.as_str()).zip(values);
                self.stack.push(Value::record(pairs)?);
            }
            Op::Interp(n) => {
                let parts = self.take(n);
                let text = interp::join(&parts)?;
                self.sized_text(text.len())?;
                self.stack.push(Value::str(text));
            }
            Op::Index => {
                let at = self.pop();
                let value = self.pop();
                self.stack.push(shoal_value::access::index(&value, &at)?);
            }
            Op::OutIndex(name) => {
                let at = self.pop();
                let value = match linked.cell(name).value() {
                    Some(value) => shoal_value::access::index(&value, &at)?,
                    None => self.transcript_item(&at)?,
                };
                self.stack.push(value);
            }
            Op::Close(at) => {
                let closure = self.close(&tables.codes[at as usize], here);
                self.stack.push(Value::Closure(closure));
            }
            Op::CloseAlias(at) => {
                let lambda = self.close(&tables.codes[at as usize], here);
                self.stack.push(Value::Command(Arc::new(AliasValue { lambda })));
            }
            Op::RootPeek(name) => {
                let value = linked.cell(name).value().unwrap_or(Value::Null);
                self.stack.push(value);
            }
            Op::Check => {
                if let Some(Value::Outcome(outcome)) = self.stack.last() {
                    settled(outcome)?;
                }
            }
            Op::Echo(bare) => {
                let value = self.pop();
                self.run.sink.value(&value, bare);
            }
            Op::With(parts) => self.enter_with(parts)?,
            Op::WithEnd => {
                let heights = Heights { places: self.places.len() - 1, ..self.heights() };
                self.restore(heights);
            }
            Op::Destructure(pattern) => {
                let value = self.pop();
                if !self.matches(code, linked, (base, cells), pattern, &value) {
                    let text = format!("{} does not match the pattern", value.type_name());
                    return Err(ErrorValue::type_error(text).into());
                }
            }
            Op::Expect(at) => {
                let (name, ty) = &tables.expects[at as usize];
                let value = self.pop();
                let value = ty.admit(value).map_err(|misfit| match misfit {
                    Misfit::Error(error) => error,
                    Misfit::Value { expected, found } => {
                        ErrorValue::type_error(format!("{name}: expected {expected}, found {found}"))
                    }
                })?;
                self.stack.push(value);
            }
            Op::SetParam(param) => {
                let value = self.pop();
                let value = self.admit(&code.params[param as usize], value)?;
                self.stack[base + param as usize] = value;
            }
            Op::Spawn(at) => {
                let body = self.close(&tables.codes[at as usize], here);
                let task = self.spawn(body)?;
                self.stack.push(task);
            }
            Op::Assert(place) => {
                let msg = self.pop();
                let holds = crate::ctx::condition(&self.pop())?;
                if !holds {
                    return Err(assertion(code.unit.text(tables.places[place as usize]), &msg).into());
                }
                self.stack.push(Value::Null);
            }
            Op::EnvVar(name) => {
                let value = self.env_var(&tables.names[name as usize])?;
                self.stack.push(value);
            }
            Op::SetEnv(name) => self.set_env(&tables.names[name as usize])?,
            Op::Raise(at) => return Err(tables.raises[at as usize].clone().into()),
            Op::StatementBegin(place) => {
                self.statement_begin(code.unit.clone(), tables.places[place as usize])?;
            }
            Op::StatementEnd => self.statement_end(None),
            // The frequent ones are handled by the loop itself.
            _ => {}
        }
        Ok(())
    }

    fn push_or(&mut self, value: Option<Value>, target: u32, next: &mut usize) {
        if let Some(value) = value {
            self.stack.push(value);
            *next = target as usize;
        }
    }

    /// A compound assignment: reads, combines and writes under the cell's lock.
    fn update(&mut self, cell: &LocalCell, op: ops::BinaryOp) -> Eval<()> {
        let right = self.pop();
        let mut slot = cell.lock();
        let left = slot.clone().unwrap_or(Value::Null);
        self.announce_update(op, &left, &right)?;
        let value = ops::binary(op, left, right)?;
        let before = slot.replace(value);
        drop(slot);
        drop(before);
        Ok(())
    }

    /// Assigns to a name of the root scope, by `op` if it is a compound assignment.
    fn assign_root(&mut self, linked: &Linked, name: u32, op: Option<ops::BinaryOp>) -> Eval<()> {
        let right = self.pop();
        let mut slot = linked.cell(name).lock();
        match &mut slot.binding {
            Some(binding) if binding.kind == BindingKind::Var => {
                let Some(op) = op else {
                    binding.value = right;
                    slot.touched = true;
                    return Ok(());
                };
                self.announce_update(op, &binding.value, &right)?;
                let left = std::mem::replace(&mut binding.value, Value::Null);
                let kept = if matches!(left, Value::List(_)) { Value::Null } else { left.clone() };
                binding.value = match ops::binary(op, left, right) {
                    Ok(value) => value,
                    Err(error) => {
                        binding.value = kept;
                        return Err(error.into());
                    }
                };
                slot.touched = true;
                Ok(())
            }
            Some(_) => Err(immutable(linked.name(name)).into()),
            None => Err(unknown_variable(linked.name(name)).into()),
        }
    }

    fn close(&self, code: &Arc<Code>, here: Here<'_>) -> Arc<Lambda> {
        let captures = code.captures.iter().map(|capture| match capture {
            Capture::Cell(at) => self.cells[here.cells + *at as usize].clone(),
            Capture::Captured(at) => here.lambda.captures[*at as usize].clone(),
        });
        let linked = match here.linked.root.kind() {
            RootKind::Session if code.kind != CodeKind::Spawn => None,
            _ => Some(here.linked.clone()),
        };
        Arc::new(Lambda { code: code.clone(), captures: captures.collect(), linked })
    }

    /// Announces a list of `n` items to the meter.
    pub(crate) fn sized(&self, n: usize) -> Eval<()> {
        let bytes = n * size_of::<Value>();
        if bytes > 4096 { self.alloc(bytes) } else { Ok(()) }
    }

    pub(crate) fn sized_text(&self, len: usize) -> Eval<()> {
        if len > shoal_value::MAX_TEXT {
            return Err(ErrorValue::too_large("a str is larger than 256 MiB").into());
        }
        if len > 4096 { self.alloc(len) } else { Ok(()) }
    }
}

fn not_iterable(value: &Value) -> ErrorValue {
    let error = ErrorValue::type_error(format!("cannot iterate over {}", value.type_name()));
    match value {
        Value::Str(_) => error.with_hint("write `.lines()`, `.chars()` or `.words()`"),
        Value::Record(_) => error.with_hint("write `for [k, v] in r.items()`"),
        _ => error,
    }
}

/// Fails if an outcome in statement position does.
pub(super) fn settled(outcome: &Outcome) -> Result<(), ErrorValue> {
    if outcome.ok { Ok(()) } else { Err(failure(outcome)) }
}

/// The error of a failed outcome in statement position.
pub(crate) fn failure(outcome: &Outcome) -> ErrorValue {
    let error = outcome.failure();
    match &outcome.body().out {
        Out::Stdout | Out::Value(_) if error.span.is_none() => {
            outcome.span.map_or(error.clone(), |span| error.or_span(span))
        }
        _ => error,
    }
}

pub(crate) fn immutable(name: &str) -> ErrorValue {
    ErrorValue::type_error(format!("`{name}` is immutable"))
        .with_hint(format!("declare it with var: `var {name} = ...`"))
}

pub(crate) fn unknown_variable(name: &str) -> ErrorValue {
    ErrorValue::type_error(format!("no variable `{name}` to assign to: declare it with var"))
        .with_hint(format!("`var {name} = ...`"))
}

pub(crate) fn assertion(cond: &str, msg: &Value) -> ErrorValue {
    let text = match msg {
        Value::Null => format!("assertion failed: {cond}"),
        Value::Str(msg) => format!("{msg}: assertion failed: {cond}"),
        other => format!("{}: assertion failed: {cond}", shoal_value::render::inline(other)),
    };
    ErrorValue::new(codes::ASSERT_FAILED, text)
}
