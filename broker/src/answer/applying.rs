//! `plan.apply`: everything derived anew, compared, judged again, consumed; only then the run starts.

use serde_json::json;
use shoal_leash::{Verdict, judge};
use shoal_wire::params::plan::PlanApply;
use shoal_wire::{RpcError, params};

use super::exec::{elide, patience};
use super::{Params, RunOrder};
use crate::broker::{Broker, or_refuse};
use crate::clients::{Ask, Attachment};
use crate::execute::{Claim, denied};
use crate::plans::{Plan, PlanState};
use crate::runs::Patience;

impl Broker {
    /// `plan.apply`.
    pub(super) fn answer_plan_apply(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<PlanApply>(text));
        or_refuse!(self, ask, self.admit_run(caller.sid));
        let plan = or_refuse!(self, ask, self.find_plan(&wanted.plan_ref));
        if !Self::is_planner(caller, plan) {
            return self.reply(ask, Err(RpcError::denied("foreign_plan", "this is somebody else's plan")));
        }
        let ready = self.ready(plan);
        let (src, position, reference) = (plan.src.clone(), plan.position, plan.reference.clone());
        or_refuse!(self, ask, ready);
        let order = RunOrder {
            sid: caller.sid,
            principal: caller.principal.clone(),
            src,
            position,
            deadline_ms: wanted.deadline_ms.map(|ms| ms.value()),
            key: None,
            elide: elide(&wanted.elide),
            tty: caller.tty,
            human: caller.human,
            plan: Some(reference),
        };
        let patience = patience(wanted.background, wanted.timeout_ms.map(|ms| ms.unsigned()));
        let n = self.start_run(order, patience.0 == Patience::UntilEnd);
        self.wait_for_run(n, ask, patience, false);
        self.prepare_run(n);
    }

    /// The claim of a plan that is applied. The worker keeps what it claimed, so this is what runs: it binds what was
    /// planned, and the policy must still allow it.
    pub(crate) fn apply_plan(&mut self, n: u64, reference: &str, claim: &Claim) {
        let Some(run) = self.runs.at(n) else { return };
        let ended_meanwhile = self.sessions.at(run.sid).is_some_and(|session| session.last_out != run.asked_after);
        let now = self.plan_of_claim(run.sid, run.src.clone(), run.position, claim);
        let (Some(plan), Some((now, _))) = (self.plans.at(reference), now) else {
            return self.refuse_run(n, RpcError::unknown_plan(reference, "unknown"));
        };
        let mut drift = plan.drift(&now);
        if ended_meanwhile {
            // The directory and the environment known here may be newer than those that were claimed.
            drift.push("session");
        }
        if !drift.is_empty() {
            let error = RpcError::unknown_plan(reference, "drifted").and("what", drift);
            return self.refuse_run(n, error);
        }
        // Somebody may have applied or decided it while the worker derived.
        if let Err(error) = self.ready(plan) {
            return self.refuse_run(n, error);
        }
        let judged = judge(&plan.effects, self.policy.of(&plan.owner));
        let hint = judged.hint().map(str::to_owned);
        let (record, reference, effects) = (plan.to_record(), plan.reference.to_string(), json!(plan.effects));
        let granted = if plan.state == PlanState::Approved { judged.approved() } else { judged.allowed() };
        match granted {
            Ok(grant) => self.record_run(n, grant, Some(record)),
            Err(judged) if judged.verdict == Verdict::Deny => self.refuse_run(n, denied(effects, hint.as_deref())),
            Err(_) => self.refuse_run(n, RpcError::approval_required(effects).and("plan_ref", reference)),
        }
    }

    /// Whether a plan can be applied now; a denial of the policy says what would change it.
    fn ready(&self, plan: &Plan) -> Result<(), RpcError> {
        match applicable(plan, self.now.ns) {
            Err(error) if error.reason() == Some("policy") => Err(self.plan_denied(plan)),
            other => other,
        }
    }

    /// The policy's no to a plan.
    pub(super) fn plan_denied(&self, plan: &Plan) -> RpcError {
        let judged = judge(&plan.effects, self.policy.of(&plan.owner));
        denied(json!(plan.effects), judged.hint()).and("plan_ref", &*plan.reference)
    }

    /// Why a plan could not be consumed after all: another run or decision came first.
    pub(crate) fn plan_refusal(&self, reference: &str) -> RpcError {
        match self.plans.at(reference).map(|plan| self.ready(plan)) {
            Some(Err(error)) => error,
            Some(Ok(())) | None => RpcError::unknown_plan(reference, "consumed"),
        }
    }

    /// The one run of a plan has started; the database knows already.
    pub(crate) fn plan_consumed(&mut self, reference: &str, entry: i64) {
        if let Some(plan) = self.plans.at_mut(reference) {
            plan.state = PlanState::Consumed;
            plan.entry = Some(entry);
        }
        self.approval_event(reference, "consumed");
    }

    /// The run of a plan has its result.
    pub(crate) fn plan_finished(&mut self, reference: &str, out: u64) {
        if let Some(plan) = self.plans.at_mut(reference) {
            plan.out = Some(out);
        }
        self.save_plan(reference);
    }

    fn save_plan(&mut self, reference: &str) {
        let Some(record) = self.plans.at(reference).map(Plan::to_record) else { return };
        self.write(
            move |store| store.put_plan(&record),
            |_, written| {
                if let Err(error) = written {
                    crate::log::line(format_args!("plan not saved: {error}"));
                }
            },
        );
    }
}

/// Whether a plan can be applied now.
fn applicable(plan: &Plan, now_ns: i64) -> Result<(), RpcError> {
    match plan.state_at(now_ns) {
        PlanState::Allowed | PlanState::Approved => Ok(()),
        PlanState::Pending => Err(RpcError::approval_required(json!(plan.effects)).and("plan_ref", &*plan.reference)),
        PlanState::Denied if plan.decision.is_some() => {
            Err(RpcError::denied("approval_denied", "an approver said no").and("plan_ref", &*plan.reference))
        }
        PlanState::Denied => Err(denied(json!(plan.effects), None).and("plan_ref", &*plan.reference)),
        PlanState::Expired => Err(RpcError::unknown_plan(&plan.reference, "expired")),
        PlanState::Consumed => {
            let result = plan.out.map(|out| format!("out:{out}"));
            let error = RpcError::unknown_plan(&plan.reference, "consumed");
            Err(error.and("entry_id", json!(plan.entry)).and("ref", json!(result)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::Decision;

    fn refused(plan: &Plan, now_ns: i64) -> Option<(i64, String)> {
        let error = applicable(plan, now_ns).err()?;
        Some((error.code, error.reason().unwrap_or_default().to_owned()))
    }

    #[test]
    fn every_state_has_its_own_answer() {
        let plan = Plan { expires_ns: 100, ..Plan::sample() };
        let decided = Some(Decision { by: "uid:1".into(), at_ns: 7, note: None });
        for (state, decision, now_ns, expected) in [
            (PlanState::Allowed, None, 99, None),
            (PlanState::Approved, decided.clone(), 99, None),
            (PlanState::Pending, None, 99, Some((-32011, ""))),
            (PlanState::Denied, None, 99, Some((-32010, "policy"))),
            (PlanState::Denied, decided.clone(), 99, Some((-32010, "approval_denied"))),
            (PlanState::Consumed, decided.clone(), 99, Some((-32012, "consumed"))),
            (PlanState::Approved, decided, 100, Some((-32012, "expired"))),
        ] {
            let plan = Plan { state, decision, ..plan.clone() };
            assert_eq!(refused(&plan, now_ns), expected.map(|(code, reason)| (code, reason.to_owned())), "{state:?}");
        }
    }

    #[test]
    fn the_end_of_a_plans_day_is_told_and_refuses_it() {
        let section = shoal_leash::Section { opaque: shoal_leash::Opaque::Ask, ..crate::testing::section("a") };
        crate::testing::with_broker(&[section], |world| {
            let broker = &mut world.broker;
            let expires_ns = broker.now.ns + shoal_wire::limits::PLAN_LIFE_NS;
            let plan = Plan { expires_ns, ..Plan::sample() };
            let (reference, now) = (plan.reference.clone(), broker.now.ns);
            broker.plans.insert(plan, now);
            broker.await_expiry(&reference);
            let day = std::time::Duration::from_nanos(u64::try_from(shoal_wire::limits::PLAN_LIFE_NS).expect("a day"));
            let told = |broker: &mut Broker| {
                let page = broker.bus.page(&("a".into(), "approval".into()), 0, None, 10);
                page.events.iter().filter(|event| event.payload.contains("expired")).count()
            };
            world.pass(day - std::time::Duration::from_secs(1));
            assert_eq!(told(&mut world.broker), 0);
            world.pass(std::time::Duration::from_secs(1));
            assert_eq!(told(&mut world.broker), 1);
            let plan = world.broker.plans.at(&reference).expect("kept to be named").clone();
            assert_eq!(refused(&plan, world.broker.now.ns), Some((-32012, "expired".to_owned())));
        });
    }
}
