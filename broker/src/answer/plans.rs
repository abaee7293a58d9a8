//! Plans: made by `exec` in plan mode, looked at, forgotten after a day.

use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use shoal_journal::Kind;
use shoal_leash::{Verdict, judge};
use shoal_proto::broker_worker::{Position, Prepare, Purpose as ClaimFor, Run as RunMessage, ToWorker};
use shoal_proto::hello::SessionRole;
use shoal_proto::{Bytes, Text};
use shoal_wire::params::Empty;
use shoal_wire::params::exec::Exec;
use shoal_wire::params::plan::PlanGet;
use shoal_wire::{AST_VERSION, Ref, RpcError, limits, params};

use super::Params;
use super::exec::position;
use crate::broker::{Broker, or_refuse};
use crate::clients::{Ask, Attachment};
use crate::execute::Claim;
use crate::json::wire_path;
use crate::plans::{Plan, PlanState, position_word};
use crate::quotas::Quota;
use crate::sessions::Sid;

/// Numbers of sources that are only planned: far above every run.
const PLANNED: u64 = 1 << 62;
/// A claim for a plan comes within this.
const CLAIMED_WITHIN: Duration = Duration::from_secs(30);

/// Why a source is planned.
#[derive(Debug)]
enum Purpose {
    /// To store a plan.
    Make,
    /// To show the tree of a stored one.
    Show(Rc<str>),
}

/// A source whose claim is awaited.
#[derive(Debug)]
pub(crate) struct Planning {
    ask: Ask,
    caller: Attachment,
    src: Rc<str>,
    position: Position,
    purpose: Purpose,
}

impl Broker {
    /// `exec` in plan mode.
    pub(super) fn answer_exec_plan(&mut self, ask: Ask, caller: &Attachment, exec: Exec) {
        let (open, bytes) = self.plans.open_of(&caller.owner, self.now.ns);
        or_refuse!(self, ask, self.quotas.admit(Quota::PlansPerOwner, open));
        or_refuse!(self, ask, self.quotas.admit_amount(Quota::PlanSourceBytes, bytes, exec.src.len() as u64));
        let (src, position) = (exec.src.into(), position(exec.position));
        self.ask_claim(Planning { ask, caller: caller.clone(), src, position, purpose: Purpose::Make });
    }

    fn ask_claim(&mut self, planning: Planning) {
        let sid = planning.caller.sid;
        self.when_up(sid, move |broker, up| {
            if let Err(error) = up {
                return broker.reply(planning.ask, Err(error));
            }
            let Ok(src) = Text::new(&*planning.src) else {
                return broker.reply(planning.ask, Err(RpcError::internal("the source does not fit into a message")));
            };
            let run = PLANNED + broker.fresh();
            let prepare = Prepare {
                run,
                src,
                position: planning.position,
                deadline_ms: None,
                elide: super::default_elide(),
                tty: false,
                human: planning.caller.human,
                bindings: Bytes::default(),
                purpose: ClaimFor::Plan,
            };
            broker.planning.insert(run, planning);
            broker.tell_worker(sid, ToWorker::Prepare(prepare));
            broker.after(CLAIMED_WITHIN, move |broker| {
                if let Some(planning) = broker.planning.remove(&run) {
                    let error = RpcError::worker_lost(&planning.caller.session, None, false, "no claim in time");
                    broker.reply(planning.ask, Err(error));
                }
            });
        });
    }

    /// Answers everybody whose claim a lost worker owes.
    pub(crate) fn fail_plannings(&mut self, sid: Sid, error: &RpcError) {
        let mine: Vec<u64> = self.planning.iter().filter(|(_, p)| p.caller.sid == sid).map(|(n, _)| *n).collect();
        for run in mine {
            if let Some(planning) = self.planning.remove(&run) {
                self.reply(planning.ask, Err(error.clone()));
            }
        }
    }

    /// The claim of a planned source.
    pub(crate) fn on_planned(&mut self, sid: Sid, run: u64, claim: Claim) {
        let mine = self.planning.get(&run).is_some_and(|planning| planning.caller.sid == sid);
        if !mine {
            return self.violated(sid, SessionRole::Worker, "a claim for somebody else's plan");
        }
        let Some(planning) = self.planning.remove(&run) else { return };
        self.tell_worker(sid, ToWorker::Discard(RunMessage { run }));
        match (&planning.purpose, claim.refusal()) {
            (Purpose::Make, Some(error)) => self.reply(planning.ask, Err(error)),
            (Purpose::Make, None) => self.make_plan(planning, claim),
            (Purpose::Show(reference), refused) => {
                let ast = if refused.is_some() { Value::Null } else { claim.ast };
                let reference = reference.clone();
                let answer = self.plan_json(&reference, ast);
                self.reply(planning.ask, answer);
            }
        }
    }

    /// What a claim binds in a session as it is now.
    pub(super) fn plan_of_claim(
        &self,
        sid: Sid,
        src: Rc<str>,
        position: Position,
        claim: &Claim,
    ) -> Option<(Plan, Option<Vec<u8>>)> {
        let session = self.sessions.at(sid)?;
        let data = claim.bindings.as_ref().and_then(|bindings| bindings.get("data")).filter(|data| !data.is_null());
        let stored = data.map(|data| data.to_string().into_bytes());
        let plan = Plan {
            reference: "".into(),
            session: session.name.clone(),
            owner: session.owner.clone(),
            principal: session.owner.clone(),
            state: PlanState::Allowed,
            src,
            position,
            cwd: session.cwd.clone(),
            env_hash: blake3::Hash::from(session.env_hash).to_hex().to_string(),
            effects: claim.effects.clone(),
            programs: list(&claim.programs),
            scripts: list(&claim.scripts),
            bindings: stored.as_ref().map(|bytes| blake3::hash(bytes).to_hex().to_string()),
            why: String::new(),
            requested: false,
            created_ns: self.now.ns,
            expires_ns: self.now.ns.saturating_add(limits::PLAN_LIFE_NS),
            decision: None,
            entry: None,
            out: None,
        };
        Some((plan, stored))
    }

    fn make_plan(&mut self, planning: Planning, claim: Claim) {
        let Planning { ask, caller, src, position, .. } = planning;
        or_refuse!(self, ask, self.check_journal());
        let Some((mut plan, stored)) = self.plan_of_claim(caller.sid, src, position, &claim) else { return };
        let nonce = or_refuse!(self, ask, super::tokens::random::<16>().map_err(|e| RpcError::internal(e.to_string())));
        plan.reference = format!("plan:{:032x}", u128::from_be_bytes(nonce)).into();
        plan.principal = caller.principal.clone();
        let judged = judge(&plan.effects, self.policy.of(&plan.owner));
        plan.why = judged.refusals.first().map_or(String::new(), |refusal| refusal.why.clone());
        plan.state = match judged.verdict {
            Verdict::Allow => PlanState::Allowed,
            Verdict::ApprovalRequired => PlanState::Pending,
            Verdict::Deny => PlanState::Denied,
        };
        let detail = json!({"plan_ref": &*plan.reference, "verdict": judged.verdict.name(),
            "reversibility": plan.reversibility()});
        let mut row = self.plain_row(Kind::Plan, Some(caller.sid), &caller.principal, detail);
        row.src = plan.src.to_string();
        row.ast = Some(claim.ast);
        row.effects = serde_json::to_value(&plan.effects).unwrap_or_default();
        let record = plan.to_record();
        let verdict = judged.verdict;
        self.begin(
            move |store| {
                if let Some(bytes) = &stored {
                    store.put_blob(bytes)?;
                }
                store.put_plan(&record)?;
                store.write_row(&row)
            },
            move |broker, written| {
                if let Err(error) = written {
                    return broker.reply(ask, Err(RpcError::journal_unavailable(error.to_string())));
                }
                let pending = plan.state == PlanState::Pending;
                let body = json!({"plan_ref": &*plan.reference, "uri": plan.uri("plan"), "effects": plan.effects,
                    "reversibility": plan.reversibility(), "verdict": verdict.name(),
                    "approval_pending": pending, "expires_ns": plan.expires_ns});
                let now = broker.now.ns;
                let reference = plan.reference.clone();
                broker.plans.insert(plan, now);
                broker.await_expiry(&reference);
                if pending {
                    broker.approval_event(&reference, "needed");
                }
                broker.reply(ask, Ok(body.to_string()));
            },
        );
    }

    /// Tells when a plan can be applied no more.
    pub(crate) fn await_expiry(&mut self, reference: &Rc<str>) {
        let Some(plan) = self.plans.at(reference) else { return };
        let left = match plan.state_at(self.now.ns) {
            PlanState::Consumed | PlanState::Expired => return,
            PlanState::Allowed | PlanState::Pending | PlanState::Approved | PlanState::Denied => {
                plan.expires_ns - self.now.ns
            }
        };
        let left = Duration::from_nanos(u64::try_from(left).unwrap_or(0));
        let reference = reference.clone();
        self.after(left, move |broker| {
            let state = broker.plans.at(&reference).map(|plan| plan.state_at(broker.now.ns));
            match state {
                Some(PlanState::Expired) => broker.approval_event(&reference, "expired"),
                // The timer stands still while the machine sleeps, the wall clock may have been set: asked again.
                Some(_) => broker.await_expiry(&reference),
                None => {}
            }
        });
    }

    /// The plan a caller names.
    pub(super) fn find_plan(&self, text: &str) -> Result<&Plan, RpcError> {
        let unknown = || RpcError::unknown_plan(text, "unknown");
        let Some(Ref::Plan(id)) = Ref::parse(text) else { return Err(unknown()) };
        self.plans.at(&format!("plan:{id}")).ok_or_else(unknown)
    }

    /// The caller planned it, in this session.
    pub(super) fn is_planner(caller: &Attachment, plan: &Plan) -> bool {
        caller.principal == plan.principal && caller.owner == plan.owner && caller.session == plan.session
    }

    /// `plan.list`.
    pub(super) fn plan_list(&mut self, caller: &Attachment, text: Params<'_>) -> Result<String, RpcError> {
        params::decode::<Empty>(text)?;
        let mine = self.plans.oldest_first().into_iter().filter(|plan| Self::is_planner(caller, plan));
        let plans: Vec<Value> = mine
            .map(|plan| {
                let state = plan.state_at(self.now.ns);
                json!({"id": &*plan.reference, "plan_ref": &*plan.reference, "state": state.name(),
                    "effects": plan.effects, "reversibility": plan.reversibility(), "verdict": self.verdict_of(plan),
                    "approval_pending": state == PlanState::Pending,
                    "approved": matches!(state, PlanState::Allowed | PlanState::Approved),
                    "created_ns": plan.created_ns, "expires_ns": plan.expires_ns})
            })
            .collect();
        Ok(Value::from(plans).to_string())
    }

    /// The verdict under the policy in force now.
    pub(super) fn verdict_of(&self, plan: &Plan) -> &'static str {
        judge(&plan.effects, self.policy.of(&plan.owner)).verdict.name()
    }

    /// `plan.get`: the tree comes from the worker, everything else is the broker's.
    pub(super) fn answer_plan_get(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<PlanGet>(text));
        let plan = or_refuse!(self, ask, self.find_plan(&wanted.plan_ref));
        if !Self::is_planner(caller, plan) && !self.may_approve(caller, plan) {
            return self.reply(ask, Err(RpcError::denied("foreign_plan", "this is somebody else's plan")));
        }
        let (src, position, purpose) = (plan.src.clone(), plan.position, Purpose::Show(plan.reference.clone()));
        self.ask_claim(Planning { ask, caller: caller.clone(), src, position, purpose });
    }

    fn plan_json(&self, reference: &str, ast: Value) -> Result<String, RpcError> {
        let plan = self.find_plan(reference)?;
        let state = plan.state_at(self.now.ns);
        let cwd: Value = serde_json::from_str(&wire_path(&plan.cwd)).unwrap_or_default();
        Ok(json!({
            "ast_version": AST_VERSION, "ast": ast, "plan_ref": &*plan.reference, "state": state.name(),
            "session": &*plan.session, "owner": &*plan.owner, "principal": &*plan.principal, "src": &*plan.src,
            "position": position_word(plan.position), "cwd": cwd, "env_hash": plan.env_hash, "effects": plan.effects,
            "reversibility": plan.reversibility(), "verdict": self.verdict_of(plan),
            "approval_pending": state == PlanState::Pending,
            "approved": matches!(state, PlanState::Allowed | PlanState::Approved),
            "programs": plan.programs, "scripts": plan.scripts, "bindings": plan.bindings,
            "created_ns": plan.created_ns, "expires_ns": plan.expires_ns,
            "decided_by": plan.decision.as_ref().map(|d| &d.by),
            "decided_ns": plan.decision.as_ref().map(|d| d.at_ns),
            "note": plan.decision.as_ref().and_then(|d| d.note.as_ref()),
        })
        .to_string())
    }
}

/// A claimed list, or an empty one.
fn list(value: &Value) -> Value {
    if value.is_array() { value.clone() } else { json!([]) }
}
