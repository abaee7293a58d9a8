//! `plan`, `apply`, `explain`.

use std::sync::Arc;

use shoal_syntax::ast::Program;
use shoal_value::equal::equal;
use shoal_value::{ErrorValue, List, Record, Str, Value, code};

use crate::Ctx;
use crate::code::{PlanSite, Unit};
use crate::compile::Options;
use crate::effects::{Derived, Effect, derive};
use crate::host::StoredPlan;
use crate::machine::Machine;
use crate::module::parse;
use crate::registry::{Command, CommandArgs, Done, Gives, Touches, Types, Words};
use crate::scope::{Binding, Root};
use crate::unwind::Eval;

pub(super) static COMMANDS: &[Command] = &[
    Command {
        name: "apply",
        flags: &[],
        words: Words::Values,
        arity: (1, 1),
        outcome: false,
        synopsis: "apply PLAN|ID",
        gives: Gives::Any,
        touches: Touches::Opaque,
        doc: "Runs a plan, once, if nothing it depends on has changed; else `plan_drifted`.\n\n\
              shoal> let p = (plan { \"x\".save(\"f.txt\") })\nshoal> apply (p)\n\"x\"",
        run: apply,
    },
    Command {
        name: "explain",
        flags: &[],
        words: Words::Texts,
        arity: (1, 1),
        outcome: false,
        synopsis: "explain SRC",
        gives: Gives::Plain(Types::RECORD),
        touches: Touches::Nothing,
        doc: "The effects of a source text: `{effects, reversible, spawns, source}`. Nothing runs.\n\n\
              shoal> explain(\"1 + 1\").effects\n[]",
        run: explain,
    },
];

impl Machine {
    /// `plan`: derives and stores.
    pub(crate) fn plan(&mut self, site: &PlanSite, unit: &Arc<Unit>, root: &Arc<Root>) -> Eval<Value> {
        let derived = derive(self, root, &site.program, false);
        let source: Str = unit.text(site.place).into();
        let record = plan_record(&derived, &source)?;
        let plan = StoredPlan {
            source,
            cwd: self.place.cwd.path().clone(),
            env: self.env_fingerprint(),
            effects: derived.effects,
            bindings: derived.reached,
        };
        let host = self.session.host.clone();
        let id = match host.plans() {
            Some(plans) => plans.put(plan)?,
            None => self.local_plans().put(plan),
        };
        let with_id = Record::new([("id", Value::Str(id))])?.merge(&record);
        Ok(Value::Record(with_id))
    }

    pub(crate) fn peek_plan(&mut self, id: &str) -> Option<StoredPlan> {
        let host = self.session.host.clone();
        match host.plans() {
            Some(plans) => plans.peek(id),
            None => self.local_plans().peek(id),
        }
    }

    fn take_plan(&mut self, id: &str) -> Option<StoredPlan> {
        let host = self.session.host.clone();
        match host.plans() {
            Some(plans) => plans.take(id),
            None => self.local_plans().take(id),
        }
    }

    fn local_plans(&self) -> std::sync::MutexGuard<'_, crate::plan::LocalPlans> {
        self.session.plans.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// A number that changes when the environment does.
    fn env_fingerprint(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        for (name, value) in self.place.env.iter() {
            (name, value).hash(&mut hasher);
        }
        hasher.finish()
    }
}

fn plan_record(derived: &Derived, source: &str) -> Result<Record, ErrorValue> {
    let effects = List::leaves(derived.effects.iter().map(ToString::to_string));
    let spawns = derived.effects.iter().filter_map(|effect| match effect {
        Effect::Spawn { argv0, .. } => Some(argv0.clone()),
        _ => None,
    });
    let irreversible = derived.effects.iter().any(Effect::is_irreversible);
    Record::new([
        ("effects", Value::List(effects)),
        ("reversible", Value::str(if irreversible { "irreversible" } else { "reversible" })),
        ("spawns", Value::List(List::leaves(spawns))),
        ("source", Value::str(source)),
    ])
}

fn parsed(machine: &Machine, source: &str, root: &Root) -> Result<Program, ErrorValue> {
    let mut names = shoal_syntax::Names::script();
    names.session = machine.transcript.is_some();
    for (name, kind) in root.names() {
        if kind.is_value() {
            names.value.insert(name)
        } else {
            names.command.insert(name)
        };
    }
    parse(source, &names, None)
}

fn explain(ctx: &mut Ctx<'_>, args: CommandArgs) -> Eval<Done> {
    let Some(Value::Str(source)) = args.args.first() else {
        return Err(ErrorValue::arg_error("explain needs a source text").into());
    };
    let machine = ctx.machine();
    let root = machine.root_here();
    let program = parsed(machine, source, &root)?;
    let derived = derive(machine, &root, &program, false);
    Ok(Value::Record(plan_record(&derived, source)?).into())
}

fn apply(ctx: &mut Ctx<'_>, args: CommandArgs) -> Eval<Done> {
    let id = match args.args.first() {
        Some(Value::Record(record)) => record.get("id").cloned().unwrap_or(Value::Null),
        other => other.cloned().unwrap_or(Value::Null),
    };
    let Value::Str(id) = id else {
        return Err(ErrorValue::arg_error("apply needs a plan or its id").into());
    };
    let machine = ctx.machine();
    let unknown = || {
        ErrorValue::new(code::NOT_FOUND, format!("no plan `{id}` that can be applied"))
            .with_hint("a bound name is a word here: write `apply (p)`")
    };
    let plan = machine.peek_plan(&id).ok_or_else(unknown)?;
    let root = machine.root_here();
    let program = parsed(machine, &plan.source, &root)?;
    let derived = derive(machine, &root, &program, false);
    let drift = drift(machine, &plan, &derived);
    machine.take_plan(&id).ok_or_else(unknown)?;
    if let Some(what) = drift {
        let text = format!("plan `{id}` does not fit any more: {what} changed since it was made");
        return Err(ErrorValue::new(code::PLAN_DRIFTED, text).with_hint("make the plan again").into());
    }
    let options = Options {
        zone: machine.session.host.clock().zone(),
        known: root.names().into_iter().map(|(name, _)| name).collect(),
        statement: true,
        top_level: true,
        journaled: false,
    };
    machine.run_program(&program, Unit::new(plan.source), options, root).map(Done::from)
}

/// The first thing that differs from when the plan was made.
fn drift(machine: &Machine, plan: &StoredPlan, now: &Derived) -> Option<&'static str> {
    let same = |a: &Binding, b: &Binding| a.kind == b.kind && equal(&a.value, &b.value).unwrap_or(false);
    if plan.cwd != *machine.place.cwd.path() {
        return Some("the working directory");
    }
    if plan.env != machine.env_fingerprint() {
        return Some("the environment");
    }
    let reached = plan.bindings.len() == now.reached.len()
        && plan.bindings.iter().zip(&now.reached).all(|((a, x), (b, y))| a == b && same(x, y));
    if !reached {
        return Some("a binding it uses");
    }
    (plan.effects != now.effects).then_some("its effects")
}
