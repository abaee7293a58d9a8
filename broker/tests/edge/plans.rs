//! Plans against a model: whoever plans, asks, decides, applies, moves about or loses its broker, every answer is the one the
//! rules give, and a plan runs once at most.

use proptest::prelude::*;
use serde_json::{Value, json};
use shoal_proto::section::Approve;

use crate::client::Client;
use crate::kernel::{Kernel, asking};

/// Who acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Actor {
    /// The local user in person.
    Human,
    /// An agent whose plans the human decides.
    Plain,
    /// An agent that decides the plans of others.
    Lead,
    /// An agent that decides its own.
    Own,
}

const ACTORS: [Actor; 4] = [Actor::Human, Actor::Plain, Actor::Lead, Actor::Own];

#[derive(Clone, Debug)]
enum Op {
    Make(usize),
    Ask(usize, usize),
    Decide(usize, usize, bool),
    Apply(usize, usize),
    Move(usize),
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    let (actor, agent, plan) = (0..4usize, 1..4usize, 0..6usize);
    prop_oneof![
        3 => agent.clone().prop_map(Op::Make),
        3 => (actor.clone(), plan.clone()).prop_map(|(actor, plan)| Op::Ask(actor, plan)),
        5 => (actor.clone(), plan.clone(), any::<bool>()).prop_map(|(actor, plan, yes)| Op::Decide(actor, plan, yes)),
        5 => (actor, plan).prop_map(|(actor, plan)| Op::Apply(actor, plan)),
        2 => agent.prop_map(Op::Move),
        1 => Just(Op::Restart),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Pending,
    Approved,
    Denied,
    Consumed,
}

/// A plan as the rules have it.
#[derive(Debug)]
struct Plan {
    reference: Value,
    planner: usize,
    state: State,
    /// Its planner had moved when it was made.
    moved: bool,
    runs: u32,
}

/// The model, and the kernel it is compared with.
struct World {
    kernel: Kernel,
    clients: Vec<Client>,
    plans: Vec<Plan>,
    /// Whether each actor's session is in the other directory.
    moved: [bool; 4],
}

/// Code and reason of an answer; 0 for a result.
type Told = (i64, String);

impl World {
    fn new() -> Self {
        let agents = [
            asking("agent:plain", Approve::Human),
            asking("agent:lead", Approve::Others),
            asking("agent:own", Approve::Itself),
        ];
        let kernel = Kernel::of(&agents, &[]);
        let clients = clients(&kernel);
        Self { kernel, clients, plans: Vec::new(), moved: [false; 4] }
    }

    fn call(&mut self, actor: usize, method: &str, params: Value) -> Result<Value, Told> {
        self.clients[actor].call(method, params).map_err(|error| {
            let reason = error["data"]["reason"].as_str().unwrap_or_default();
            (error["code"].as_i64().expect("a code"), reason.to_owned())
        })
    }

    /// May decide a plan.
    fn decides(actor: usize, plan: &Plan) -> bool {
        match ACTORS[actor] {
            Actor::Human => true,
            Actor::Lead => plan.planner != actor,
            Actor::Plain | Actor::Own => false,
        }
    }

    fn step(&mut self, op: &Op) -> Result<(), TestCaseError> {
        match *op {
            Op::Make(agent) => {
                let src = format!("opaque {}", self.plans.len());
                let made = self.call(agent, "exec", json!({"src": src, "mode": "plan"})).expect("planned");
                prop_assert_eq!(&made["verdict"], &json!("approval_required"));
                let known = self.plans.iter().any(|plan| plan.reference == made["plan_ref"]);
                prop_assert!(!known, "a reference is used twice");
                self.plans.push(Plan {
                    reference: made["plan_ref"].clone(),
                    planner: agent,
                    state: State::Pending,
                    moved: self.moved[agent],
                    runs: 0,
                });
            }
            Op::Ask(actor, at) if at < self.plans.len() => self.ask(actor, at)?,
            Op::Decide(actor, at, yes) if at < self.plans.len() => self.decide(actor, at, yes)?,
            Op::Apply(actor, at) if at < self.plans.len() => self.apply(actor, at)?,
            Op::Ask(..) | Op::Decide(..) | Op::Apply(..) => {}
            Op::Move(agent) => {
                let to = if self.moved[agent] { "/" } else { "/tmp" };
                self.call(agent, "exec", json!({"src": format!("cd {to}")})).expect("moved");
                self.moved[agent] = !self.moved[agent];
            }
            Op::Restart => {
                self.kernel.replace_broker();
                self.clients = clients(&self.kernel);
            }
        }
        Ok(())
    }

    fn ask(&mut self, actor: usize, at: usize) -> Result<(), TestCaseError> {
        let plan = &self.plans[at];
        let (planner, decides) = (plan.planner == actor, Self::decides(actor, plan));
        let own = planner && ACTORS[actor] == Actor::Own;
        let expected = match plan.state {
            _ if !planner && !decides => Err((-32010, "foreign_plan".to_owned())),
            State::Consumed => Err((-32012, "consumed".to_owned())),
            State::Denied => Err((-32010, "approval_denied".to_owned())),
            State::Approved => Ok("approved"),
            State::Pending if decides || own => Ok("approved"),
            State::Pending => Ok("approval_pending"),
        };
        let reference = plan.reference.clone();
        let told = self.call(actor, "cap.request", json!({"plan_ref": reference}));
        prop_assert_eq!(
            told.map(|told| told["grant"].as_str().unwrap_or_default().to_owned()),
            expected.clone().map(str::to_owned)
        );
        if expected == Ok("approved") {
            self.plans[at].state = State::Approved;
        }
        Ok(())
    }

    fn decide(&mut self, actor: usize, at: usize, yes: bool) -> Result<(), TestCaseError> {
        let plan = &self.plans[at];
        let (word, state) = if yes { ("approve", State::Approved) } else { ("deny", State::Denied) };
        let expected = match plan.state {
            _ if !Self::decides(actor, plan) => Err((-32010, "not_permitted".to_owned())),
            State::Consumed => Err((-32012, "consumed".to_owned())),
            State::Pending | State::Approved | State::Denied => Ok(()),
        };
        let reference = plan.reference.clone();
        let told = self.call(actor, "approval.decide", json!({"plan_ref": reference, "decision": word}));
        prop_assert_eq!(told.map(|_| ()), expected.clone());
        if expected.is_ok() {
            self.plans[at].state = state;
        }
        Ok(())
    }

    fn apply(&mut self, actor: usize, at: usize) -> Result<(), TestCaseError> {
        let plan = &self.plans[at];
        let expected = match plan.state {
            _ if plan.planner != actor => Err((-32010, "foreign_plan".to_owned())),
            State::Pending => Err((-32011, String::new())),
            State::Denied => Err((-32010, "approval_denied".to_owned())),
            State::Consumed => Err((-32012, "consumed".to_owned())),
            State::Approved if plan.moved != self.moved[actor] => Err((-32012, "drifted".to_owned())),
            State::Approved => Ok(()),
        };
        let reference = plan.reference.clone();
        let told = self.call(actor, "plan.apply", json!({"plan_ref": reference}));
        prop_assert_eq!(told.map(|_| ()), expected.clone());
        if expected.is_ok() {
            self.plans[at].state = State::Consumed;
            self.plans[at].runs += 1;
        }
        Ok(())
    }

    /// What the kernel has at the end is what the rules gave.
    fn settle(&mut self) -> Result<(), TestCaseError> {
        let rows = self.call(0, "journal.query", json!({"kinds": ["exec"], "limit": 10_000})).expect("rows");
        let rows = rows.as_array().expect("rows");
        for at in 0..self.plans.len() {
            let Plan { reference, state, runs, .. } = &self.plans[at];
            let of_plan = rows.iter().filter(|row| row["detail"]["plan_ref"] == *reference).count();
            prop_assert_eq!(of_plan, *runs as usize, "runs of {}", reference);
            prop_assert!(*runs <= 1);
            let word = match state {
                State::Pending => "pending",
                State::Approved => "approved",
                State::Denied => "denied",
                State::Consumed => "consumed",
            };
            let shown = self.call(0, "plan.get", json!({"plan_ref": reference.clone()})).expect("the human sees all");
            prop_assert_eq!(&shown["state"], &json!(word));
        }
        let verified = self.call(0, "journal.verify", json!({})).expect("readable");
        prop_assert_eq!(&verified["ok"], &json!(true));
        Ok(())
    }
}

fn clients(kernel: &Kernel) -> Vec<Client> {
    vec![
        kernel.attach("s"),
        kernel.attach_agent("agent:plain", "s"),
        kernel.attach_agent("agent:lead", "s"),
        kernel.attach_agent("agent:own", "s"),
    ]
}

proptest! {
    #![proptest_config(crate::cases(16))]
    #[test]
    fn plans_follow_their_rules(ops in proptest::collection::vec(op(), 10..40)) {
        let mut world = World::new();
        for op in &ops {
            world.step(op)?;
        }
        world.settle()?;
    }
}
