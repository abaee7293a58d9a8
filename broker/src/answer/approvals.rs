//! Requests and decisions about plans, and who is told of them.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::{Value, json};
use shoal_journal::Kind;
use shoal_leash::{Approve, Verdict, judge};
use shoal_wire::params::plan::{ApprovalDecide, ApprovalList, ApprovalState, CapRequest, Decision, EffectName};
use shoal_wire::{Ref, RpcError, limits, params};

use super::Params;
use crate::broker::{Broker, or_refuse};
use crate::clients::{Ask, Attachment};
use crate::json::{self as text, tagged_int, tagged_list, tagged_record, tagged_str};
use crate::plans::{Decision as Decided, Plan, PlanState, position_word};
use crate::policy::is_enforced;

/// What a decision or request does.
struct Act {
    action: &'static str,
    decided: Option<(PlanState, Decided)>,
}

impl Broker {
    /// The human, for every plan; a principal with `approve = true`, for those of others.
    pub(super) fn may_approve(&self, caller: &Attachment, plan: &Plan) -> bool {
        let approver = self.policy.of(&caller.principal).is_some_and(|section| section.approve == Approve::Others);
        caller.human || (approver && caller.principal != plan.principal)
    }

    /// Tells the owner, and every other approver on their own channel.
    pub(crate) fn approval_event(&mut self, reference: &str, action: &str) {
        let Some(plan) = self.plans.at(reference) else { return };
        let effects: Vec<String> = plan.effects.iter().map(|effect| text::tagged(&json!(effect))).collect();
        let payload = tagged_record(&[
            ("action", tagged_str(action)),
            ("plan_ref", tagged_str(&plan.reference)),
            ("session", tagged_str(&plan.session)),
            ("principal", tagged_str(&plan.principal)),
            ("effects", tagged_list(&effects)),
            ("why", tagged_str(&plan.why)),
            ("expires", tagged_int(plan.expires_ns)),
        ]);
        let mut told: BTreeSet<Rc<str>> = BTreeSet::from([plan.owner.clone(), self.local_user()]);
        let sections = self.policy.sections.sections.as_slice();
        told.extend(sections.iter().filter(|s| s.approve == Approve::Others).map(|s| Rc::from(s.principal.as_str())));
        told.remove("default");
        for owner in told {
            self.publish(&owner, "approval", &payload);
        }
    }

    /// `cap.request`.
    pub(super) fn answer_cap_request(&mut self, ask: Ask, caller: &Attachment, params: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<CapRequest>(params));
        let plan = or_refuse!(self, ask, self.find_plan(&wanted.plan_ref)).clone();
        let planner = Self::is_planner(caller, &plan);
        let approver = self.may_approve(caller, &plan);
        if !planner && !approver {
            return self.reply(ask, Err(RpcError::denied("foreign_plan", "this is somebody else's plan")));
        }
        or_refuse!(self, ask, open(&plan, self.now.ns));
        if judge(&plan.effects, self.policy.of(&plan.owner)).verdict == Verdict::Deny {
            return self.reply(ask, Err(self.plan_denied(&plan)));
        }
        if plan.state == PlanState::Denied {
            return self.reply(ask, Err(RpcError::denied("approval_denied", "an approver said no")));
        }
        let granted = granted_names(&plan, &wanted.effects);
        if matches!(plan.state, PlanState::Allowed | PlanState::Approved) {
            let body = self.approved_json(&plan, granted);
            return self.reply(ask, Ok(body));
        }
        let uncovered = uncovered(&plan, &wanted.effects);
        if !uncovered.is_empty() {
            return self.reply(ask, Ok(pending_json(&plan, "some effects of the plan were not asked for", &uncovered)));
        }
        let own_right = self.policy.of(&caller.principal).is_some_and(|section| section.approve == Approve::Itself);
        let act = match approver || (planner && own_right) {
            true => {
                let decided = Decided { by: caller.principal.to_string(), at_ns: self.now.ns, note: None };
                Act { action: "approved", decided: Some((PlanState::Approved, decided)) }
            }
            false => Act { action: "requested", decided: None },
        };
        let approved = act.decided.is_some();
        let reference = plan.reference.clone();
        self.record_act(&reference, &caller.principal.clone(), act, move |broker, written| {
            let answer = written.map(|_| match approved {
                true => broker.approved_json(&plan, granted),
                false => pending_json(&plan, "filed; waiting for a decision by the local user or an approver", &[]),
            });
            broker.reply(ask, answer);
        });
    }

    fn approved_json(&self, plan: &Plan, granted: Vec<String>) -> String {
        json!({"grant": "approved", "plan_ref": &*plan.reference, "enforced": self.enforced(plan),
            "granted_effects": granted, "expires_ns": plan.expires_ns})
        .to_string()
    }

    fn enforced(&self, plan: &Plan) -> bool {
        self.policy.of(&plan.owner).is_some_and(|section| is_enforced(&self.start, section))
    }

    /// `approval.list`.
    pub(super) fn approval_list(&mut self, caller: &Attachment, params: Params<'_>) -> Result<String, RpcError> {
        let wanted = params::decode::<ApprovalList>(params)?;
        let one = match &wanted.plan_ref {
            Some(text) => match Ref::parse(text) {
                Some(Ref::Plan(id)) => Some(format!("plan:{id}")),
                _ => return Err(RpcError::unknown_plan(text, "unknown")),
            },
            None => None,
        };
        let now = self.now.ns;
        let limit = usize::try_from(wanted.limit.value()).unwrap_or(100);
        let visible = |plan: &&Plan| {
            let named = one.as_deref().is_none_or(|one| *one == *plan.reference);
            let in_state = match wanted.state {
                ApprovalState::All => true,
                ApprovalState::Pending => plan.state_at(now) == PlanState::Pending,
            };
            named && in_state && (plan.principal == caller.principal || self.may_approve(caller, plan))
        };
        let newest_first = self.plans.oldest_first().into_iter().rev().filter(visible).take(limit);
        let approvals: Vec<Value> = newest_first.map(|plan| self.approval_record(plan)).collect();
        Ok(json!({"approvals": approvals}).to_string())
    }

    fn approval_record(&self, plan: &Plan) -> Value {
        let cwd: Value = serde_json::from_str(&text::wire_path(&plan.cwd)).unwrap_or_default();
        let src = shoal_wire::text::cut(&plan.src, limits::APPROVAL_SRC_BYTES);
        let section = self.policy.of(&plan.owner);
        let beyond = plan.effects.iter().filter(|effect| {
            judge(std::slice::from_ref(effect), section).refusals.iter().any(|refusal| refusal.effect.is_some())
                && judge(std::slice::from_ref(effect), section).verdict == Verdict::Deny
        });
        json!({
            "id": &*plan.reference, "plan_ref": &*plan.reference, "uri": plan.uri("approval"),
            "state": plan.state_at(self.now.ns).name(), "session": &*plan.session, "owner": &*plan.owner,
            "principal": &*plan.principal, "src": src, "src_truncated": src.len() < plan.src.len(),
            "position": position_word(plan.position), "cwd": cwd, "effects": plan.effects,
            "effects_text": plan.effects.iter().map(|effect| effect.text()).collect::<Vec<_>>(),
            "beyond_grants": beyond.collect::<Vec<_>>(), "reversibility": plan.reversibility(),
            "verdict": self.verdict_of(plan), "programs": plan.programs, "scripts": plan.scripts,
            "bindings": plan.bindings, "why": plan.why, "requested": plan.requested,
            "created_ns": plan.created_ns, "expires_ns": plan.expires_ns,
            "decided_ns": plan.decision.as_ref().map(|d| d.at_ns), "decided_by": plan.decision.as_ref().map(|d| &d.by),
            "note": plan.decision.as_ref().and_then(|d| d.note.as_ref()),
        })
    }

    /// `approval.decide`.
    pub(super) fn answer_approval_decide(&mut self, ask: Ask, caller: &Attachment, params: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<ApprovalDecide>(params));
        let plan = or_refuse!(self, ask, self.find_plan(&wanted.plan_ref)).clone();
        let by = match wanted.via {
            None if self.may_approve(caller, &plan) => Some(caller.principal.to_string()),
            // The facade passes on what the person at its own client said.
            Some(_) if self.decides_for_client(caller, &plan) => {
                let name = if caller.name.is_empty() { "unknown" } else { &*caller.name };
                Some(format!("client:{}", text::one_line(name, 128)))
            }
            None | Some(_) => None,
        };
        let Some(by) = by else { return self.reply(ask, Err(RpcError::not_permitted("approver"))) };
        or_refuse!(self, ask, open(&plan, self.now.ns));
        let denied_by_policy = judge(&plan.effects, self.policy.of(&plan.owner)).verdict == Verdict::Deny;
        if denied_by_policy && wanted.decision == Decision::Approve {
            return self.reply(ask, Err(self.plan_denied(&plan)));
        }
        let uncovered = uncovered(&plan, &wanted.effects);
        if wanted.decision == Decision::Approve && !uncovered.is_empty() {
            let body = self.decision_json(&plan, "pending", None, &[], &uncovered, None);
            return self.reply(ask, Ok(body));
        }
        let (state, action) = match wanted.decision {
            Decision::Approve => (PlanState::Approved, "approved"),
            Decision::Deny => (PlanState::Denied, "denied"),
        };
        let note = wanted.note.map(|note| note.into_string());
        let decided = Decided { by, at_ns: self.now.ns, note };
        let granted = match wanted.decision {
            Decision::Approve => granted_names(&plan, &wanted.effects),
            Decision::Deny => Vec::new(),
        };
        let act = Act { action, decided: Some((state, decided.clone())) };
        let reference = plan.reference.clone();
        self.record_act(&reference, &caller.principal.clone(), act, move |broker, written| {
            let answer = written
                .map(|entry| broker.decision_json(&plan, state.name(), Some(&decided), &granted, &[], Some(entry)));
            broker.reply(ask, answer);
        });
    }

    fn decides_for_client(&self, caller: &Attachment, plan: &Plan) -> bool {
        let right = self.policy.of(&plan.principal).is_some_and(|section| section.approve == Approve::Client);
        right && &*caller.kind == "mcp" && caller.principal == plan.principal
    }

    fn decision_json(
        &self,
        plan: &Plan,
        state: &str,
        decided: Option<&Decided>,
        granted: &[String],
        uncovered: &[&str],
        entry: Option<i64>,
    ) -> String {
        json!({"plan_ref": &*plan.reference, "state": state, "enforced": self.enforced(plan),
            "granted_effects": granted, "uncovered_effects": uncovered, "decided_by": decided.map(|d| &d.by),
            "decided_ns": decided.map(|d| d.at_ns), "expires_ns": plan.expires_ns, "entry_id": entry})
        .to_string()
    }

    /// Writes plan and row in one synced transaction, then tells and answers.
    fn record_act(
        &mut self,
        reference: &Rc<str>,
        principal: &Rc<str>,
        act: Act,
        then: impl FnOnce(&mut Self, Result<i64, RpcError>) + 'static,
    ) {
        let Some(mut plan) = self.plans.at(reference).cloned() else { return };
        let before = plan.state.name();
        match act.decided {
            Some((state, decided)) => (plan.state, plan.decision) = (state, Some(decided)),
            None => plan.requested = true,
        }
        let detail = json!({"plan_ref": &**reference, "action": act.action,
            "decided_by": plan.decision.as_ref().map(|d| &d.by), "effects": plan.kinds(),
            "note": plan.decision.as_ref().and_then(|d| d.note.as_ref())});
        let mut row = self.plain_row(Kind::Approval, None, principal, detail);
        row.session = plan.session.to_string();
        row.owner = plan.owner.to_string();
        row.src = plan.src.to_string();
        row.effects = json!(plan.effects);
        let record = plan.to_record();
        let (owner, action) = (plan.owner.to_string(), act.action);
        let announced: Rc<str> = plan.owner.clone();
        self.write_synced(
            move |store| {
                // A plan that was consumed meanwhile stays consumed.
                if !store.move_plan(&record.plan_ref, before, before)? {
                    return Ok(None);
                }
                store.put_plan(&record)?;
                let id = store.write_row(&row)?;
                let seq = store.append_event(&owner, "journal", id)?;
                Ok(Some((id, seq, store.row(id)?)))
            },
            move |broker, written| match written {
                Ok(Some((id, seq, row))) => {
                    let reference = plan.reference.clone();
                    let now = broker.now.ns;
                    broker.plans.insert(plan, now);
                    broker.announce(&announced, "journal", &crate::record::durable_event("journal", seq, &row));
                    broker.approval_event(&reference, action);
                    then(broker, Ok(id));
                }
                Ok(None) => then(broker, Err(RpcError::unknown_plan(&plan.reference, "consumed"))),
                Err(error) => then(broker, Err(RpcError::journal_unavailable(error.to_string()))),
            },
        );
    }
}

/// A plan that can still be decided.
fn open(plan: &Plan, now_ns: i64) -> Result<(), RpcError> {
    match plan.state_at(now_ns) {
        PlanState::Expired => Err(RpcError::unknown_plan(&plan.reference, "expired")),
        PlanState::Consumed => Err(RpcError::unknown_plan(&plan.reference, "consumed")),
        PlanState::Allowed | PlanState::Pending | PlanState::Approved | PlanState::Denied => Ok(()),
    }
}

/// Kinds of the plan that a list of names leaves out; an empty list leaves out none.
fn uncovered(plan: &Plan, names: &[EffectName]) -> Vec<&'static str> {
    let named: Vec<&str> = names.iter().filter_map(|name| shoal_wire::effect::kind(&name.0)).collect();
    let out = |kind: &&str| !names.is_empty() && !named.contains(kind);
    plan.kinds().into_iter().filter(|kind| out(kind)).collect()
}

/// The names as submitted, or all kinds of the plan.
fn granted_names(plan: &Plan, names: &[EffectName]) -> Vec<String> {
    if names.is_empty() {
        return plan.kinds().into_iter().map(str::to_owned).collect();
    }
    names.iter().map(|name| name.0.clone()).collect()
}

fn pending_json(plan: &Plan, why: &str, uncovered: &[&str]) -> String {
    json!({"grant": "approval_pending", "plan_ref": &*plan.reference, "why": why, "uncovered_effects": uncovered})
        .to_string()
}
