//! Combinators without time.

use std::collections::{HashSet, VecDeque};

use shoal_value::equal::{ByEquality, equal};
use shoal_value::{ErrorValue, Value};

use super::{Source, Taken};
use crate::ctx::condition;
use crate::machine::Machine;
use crate::unwind::Eval;

pub(crate) struct Map(pub(crate) Taken, pub(crate) Value);

impl Source for Map {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        match self.0.next(machine)? {
            Some(item) => machine.call_value(&self.1, &[item]).map(Some),
            None => Ok(None),
        }
    }
}

pub(crate) struct Where(pub(crate) Taken, pub(crate) Value);

impl Source for Where {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        while let Some(item) = self.0.next(machine)? {
            if condition(&machine.call_value(&self.1, std::slice::from_ref(&item))?)? {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }
}

pub(crate) struct Enumerate(pub(crate) Taken, pub(crate) i64);

impl Source for Enumerate {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        let Some(item) = self.0.next(machine)? else { return Ok(None) };
        let pair = Value::list(vec![Value::Int(self.1), item])?;
        self.1 += 1;
        Ok(Some(pair))
    }
}

pub(crate) struct Skip(pub(crate) Taken, pub(crate) usize);

impl Source for Skip {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        while self.1 > 0 {
            self.1 -= 1;
            if self.0.next(machine)?.is_none() {
                self.1 = 0;
                return Ok(None);
            }
        }
        self.0.next(machine)
    }
}

pub(crate) struct Take(pub(crate) Taken, pub(crate) usize);

impl Source for Take {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        if self.1 == 0 {
            return Ok(None);
        }
        self.1 -= 1;
        self.0.next(machine)
    }
}

pub(crate) struct Scan {
    pub(crate) source: Taken,
    pub(crate) acc: Value,
    pub(crate) f: Value,
}

impl Source for Scan {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        let Some(item) = self.source.next(machine)? else { return Ok(None) };
        self.acc = machine.call_value(&self.f, &[self.acc.clone(), item])?;
        Ok(Some(self.acc.clone()))
    }
}

pub(crate) struct FlatMap {
    pub(crate) source: Taken,
    pub(crate) f: Value,
    pub(crate) items: VecDeque<Value>,
}

impl Source for FlatMap {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Ok(Some(item));
            }
            let Some(item) = self.source.next(machine)? else { return Ok(None) };
            self.items = match machine.call_value(&self.f, &[item])? {
                Value::Stream(stream) => super::gather(machine, &stream)?.into(),
                collection @ (Value::List(_) | Value::Table(_) | Value::Range(_)) => {
                    shoal_value::convert::to_list(&collection)?.into_items().into()
                }
                other => {
                    let text = format!("flat_map: expected list, table, range or stream, found {}", other.type_name());
                    return Err(ErrorValue::type_error(text).into());
                }
            };
        }
    }
}

/// Until an item satisfies the predicate, or until another stream has an item.
pub(crate) struct TakeUntil {
    pub(crate) source: Taken,
    pub(crate) until: Until,
    pub(crate) done: bool,
}

pub(crate) enum Until {
    Holds(Value),
    Stream(Box<Taken>),
}

impl Source for TakeUntil {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        if self.done {
            return Ok(None);
        }
        if let Until::Stream(other) = &mut self.until
            && other.next(machine)?.is_some()
        {
            self.done = true;
            return Ok(None);
        }
        let Some(item) = self.source.next(machine)? else { return Ok(None) };
        if let Until::Holds(predicate) = &self.until
            && condition(&machine.call_value(predicate, std::slice::from_ref(&item))?)?
        {
            self.done = true;
            return Ok(None);
        }
        Ok(Some(item))
    }
}

pub(crate) struct Dedupe(pub(crate) Taken, pub(crate) Option<Value>);

impl Source for Dedupe {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        while let Some(item) = self.0.next(machine)? {
            let repeated = match &self.1 {
                Some(last) => equal(last, &item)?,
                None => false,
            };
            if !repeated {
                self.1 = Some(item.clone());
                return Ok(Some(item));
            }
        }
        Ok(None)
    }
}

pub(crate) struct Distinct(pub(crate) Taken, pub(crate) HashSet<ByEquality>);

impl Source for Distinct {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        while let Some(item) = self.0.next(machine)? {
            machine.alloc(size_of::<Value>())?;
            if self.1.insert(ByEquality(item.clone())) {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }
}

pub(crate) struct Window {
    pub(crate) source: Taken,
    pub(crate) size: usize,
    pub(crate) items: VecDeque<Value>,
}

impl Source for Window {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        while let Some(item) = self.source.next(machine)? {
            self.items.push_back(item);
            if self.items.len() > self.size {
                self.items.pop_front();
            }
            if self.items.len() == self.size {
                return Ok(Some(Value::list(self.items.iter().cloned().collect())?));
            }
        }
        Ok(None)
    }
}

/// Items of both, in turn while both have some.
pub(crate) struct Merge {
    pub(crate) sources: VecDeque<Taken>,
}

impl Source for Merge {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        while let Some(mut source) = self.sources.pop_front() {
            if let Some(item) = source.next(machine)? {
                self.sources.push_back(source);
                return Ok(Some(item));
            }
        }
        Ok(None)
    }
}

pub(crate) struct Zip(pub(crate) Taken, pub(crate) Taken);

impl Source for Zip {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        let Some(left) = self.0.next(machine)? else { return Ok(None) };
        let Some(right) = self.1.next(machine)? else { return Ok(None) };
        Ok(Some(Value::list(vec![left, right])?))
    }
}
