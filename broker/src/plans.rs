//! Plans: what each binds, how far it is decided, and what has drifted since.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Value, json};
use shoal_journal::PlanRecord;
use shoal_leash::Effect;
use shoal_proto::broker_worker::Position;
use shoal_wire::limits;

/// Where a plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanState {
    /// The policy allows it as it is.
    Allowed,
    /// Nobody decided it yet.
    Pending,
    /// An approver said yes.
    Approved,
    /// Policy or an approver said no.
    Denied,
    /// Its one run has started.
    Consumed,
    /// Its day has passed.
    Expired,
}

const STATES: [(PlanState, &str); 6] = [
    (PlanState::Allowed, "allowed"),
    (PlanState::Pending, "pending"),
    (PlanState::Approved, "approved"),
    (PlanState::Denied, "denied"),
    (PlanState::Consumed, "consumed"),
    (PlanState::Expired, "expired"),
];

impl PlanState {
    /// The word on the wire.
    pub(crate) fn name(self) -> &'static str {
        STATES.iter().find(|(state, _)| *state == self).map_or("", |(_, name)| name)
    }

    fn parse(name: &str) -> Option<Self> {
        STATES.iter().find(|(_, known)| *known == name).map(|(state, _)| *state)
    }
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// Who: a principal, or `client:NAME`.
    pub(crate) by: String,
    /// When, ns.
    pub(crate) at_ns: i64,
    /// What they said.
    pub(crate) note: Option<String>,
}

/// A stored plan.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// `plan:HEX32`.
    pub(crate) reference: Rc<str>,
    /// Session it was planned in.
    pub(crate) session: Rc<str>,
    /// Owner of that session.
    pub(crate) owner: Rc<str>,
    /// Who planned it.
    pub(crate) principal: Rc<str>,
    /// Where it is; `expired` is derived from the time.
    pub(crate) state: PlanState,
    /// The source.
    pub(crate) src: Rc<str>,
    /// Position of the last statement.
    pub(crate) position: Position,
    /// Directory it was planned in.
    pub(crate) cwd: Vec<u8>,
    /// Hash of the environment it was planned in, hex.
    pub(crate) env_hash: String,
    /// Derived effects.
    pub(crate) effects: Vec<Effect>,
    /// Programs with their hashes.
    pub(crate) programs: Value,
    /// Scripts with their hashes.
    pub(crate) scripts: Value,
    /// Hash of the stored session names it reaches.
    pub(crate) bindings: Option<String>,
    /// Why it needs an approval.
    pub(crate) why: String,
    /// `cap.request` was called.
    pub(crate) requested: bool,
    /// When it was made, ns.
    pub(crate) created_ns: i64,
    /// Until when it can be applied, ns.
    pub(crate) expires_ns: i64,
    /// Who decided.
    pub(crate) decision: Option<Decision>,
    /// Row of its run.
    pub(crate) entry: Option<i64>,
    /// Result of its run.
    pub(crate) out: Option<u64>,
}

/// The word of a position.
pub(crate) fn position_word(position: Position) -> &'static str {
    match position {
        Position::Stmt => "stmt",
        Position::Value => "value",
    }
}

impl Plan {
    /// Where it is now: a plan whose day has passed is expired unless it was consumed.
    pub(crate) fn state_at(&self, now_ns: i64) -> PlanState {
        match self.state {
            PlanState::Consumed => PlanState::Consumed,
            _ if self.expires_ns <= now_ns => PlanState::Expired,
            state => state,
        }
    }

    /// `irreversible` when nothing undoes an effect.
    pub(crate) fn reversibility(&self) -> &'static str {
        reversibility(&self.effects)
    }

    /// `shoal://KIND/HEX32`.
    pub(crate) fn uri(&self, kind: &str) -> String {
        format!("shoal://{kind}/{}", self.reference.trim_start_matches("plan:"))
    }

    /// The kinds of its effects, each once, in order.
    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        let mut kinds = Vec::new();
        for effect in &self.effects {
            let kind = effect.kind().name();
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }

    /// What differs from a claim made now.
    pub(crate) fn drift(&self, now: &Plan) -> Vec<&'static str> {
        let mut what = Vec::new();
        let mut note = |name, differs: bool| what.extend(differs.then_some(name));
        note("cwd", self.cwd != now.cwd);
        note("env", self.env_hash != now.env_hash);
        note("effects", self.effects != now.effects);
        note("programs", self.programs != now.programs);
        note("scripts", self.scripts != now.scripts);
        note("bindings", self.bindings != now.bindings);
        what
    }

    /// The plan as it is stored.
    pub(crate) fn to_record(&self) -> PlanRecord {
        PlanRecord {
            plan_ref: self.reference.to_string(),
            owner: self.owner.to_string(),
            session: self.session.to_string(),
            principal: self.principal.to_string(),
            state: self.state.name().to_owned(),
            created_ns: self.created_ns,
            expires_ns: self.expires_ns,
            body: json!({
                "src": &*self.src, "position": position_word(self.position), "cwd": blake3_hex(&self.cwd),
                "cwd_path": self.cwd, "env_hash": self.env_hash, "effects": self.effects, "programs": self.programs,
                "scripts": self.scripts, "bindings": self.bindings, "why": self.why, "requested": self.requested,
                "decided_by": self.decision.as_ref().map(|d| &d.by),
                "decided_ns": self.decision.as_ref().map(|d| d.at_ns),
                "note": self.decision.as_ref().and_then(|d| d.note.as_ref()),
                "entry": self.entry, "out": self.out,
            }),
        }
    }

    /// The plan of a record; `None` when the record is not one of ours.
    pub(crate) fn from_record(record: &PlanRecord) -> Option<Self> {
        let body = &record.body;
        let text = |name: &str| body[name].as_str().map(str::to_owned);
        let decision = text("decided_by").zip(body["decided_ns"].as_i64());
        Some(Self {
            reference: record.plan_ref.as_str().into(),
            session: record.session.as_str().into(),
            owner: record.owner.as_str().into(),
            principal: record.principal.as_str().into(),
            state: PlanState::parse(&record.state)?,
            src: body["src"].as_str()?.into(),
            position: if body["position"] == "value" { Position::Value } else { Position::Stmt },
            cwd: serde_json::from_value(body["cwd_path"].clone()).ok()?,
            env_hash: text("env_hash")?,
            effects: serde_json::from_value(body["effects"].clone()).ok()?,
            programs: body["programs"].clone(),
            scripts: body["scripts"].clone(),
            bindings: text("bindings"),
            why: text("why").unwrap_or_default(),
            requested: body["requested"].as_bool().unwrap_or(false),
            created_ns: record.created_ns,
            expires_ns: record.expires_ns,
            decision: decision.map(|(by, at_ns)| Decision { by, at_ns, note: text("note") }),
            entry: body["entry"].as_i64(),
            out: body["out"].as_u64(),
        })
    }
}

#[cfg(test)]
impl Plan {
    /// One for tests.
    pub(crate) fn sample() -> Self {
        Self {
            reference: "plan:00".into(),
            session: "s".into(),
            owner: "a".into(),
            principal: "a".into(),
            state: PlanState::Pending,
            src: "sh ./s.sh".into(),
            position: Position::Value,
            cwd: b"/srv".to_vec(),
            env_hash: "00".into(),
            effects: vec![Effect::Opaque, Effect::Opaque],
            programs: json!([]),
            scripts: json!([]),
            bindings: None,
            why: "opaque = \"ask\"".into(),
            requested: false,
            created_ns: 1,
            expires_ns: 100,
            decision: Some(Decision { by: "uid:1".into(), at_ns: 7, note: Some("fine".into()) }),
            entry: Some(4),
            out: Some(2),
        }
    }
}

fn blake3_hex(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// `irreversible` when nothing undoes an effect.
pub(crate) fn reversibility(effects: &[Effect]) -> &'static str {
    if effects.iter().any(Effect::is_irreversible) { "irreversible" } else { "reversible" }
}

/// Every plan that is not long over, by reference.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    all: BTreeMap<Rc<str>, Plan>,
}

impl Plans {
    /// The plans an earlier broker stored.
    pub(crate) fn of(records: &[PlanRecord]) -> Self {
        let all = records.iter().filter_map(Plan::from_record).map(|plan| (plan.reference.clone(), plan)).collect();
        Self { all }
    }

    /// A plan.
    pub(crate) fn at(&self, reference: &str) -> Option<&Plan> {
        self.all.get(reference)
    }

    /// A plan, to change it.
    pub(crate) fn at_mut(&mut self, reference: &str) -> Option<&mut Plan> {
        self.all.get_mut(reference)
    }

    /// Takes a plan in; plans whose day has passed twice over leave.
    pub(crate) fn insert(&mut self, plan: Plan, now_ns: i64) {
        self.all.retain(|_, old| old.expires_ns.saturating_add(limits::PLAN_LIFE_NS) > now_ns);
        self.all.insert(plan.reference.clone(), plan);
    }

    /// Every plan, oldest first.
    pub(crate) fn oldest_first(&self) -> Vec<&Plan> {
        let mut all: Vec<&Plan> = self.all.values().collect();
        all.sort_by_key(|plan| plan.created_ns);
        all
    }

    /// Plans of an owner that can still be applied: how many, and how long their sources are.
    pub(crate) fn open_of(&self, owner: &str, now_ns: i64) -> (usize, u64) {
        let open = |plan: &&Plan| {
            &*plan.owner == owner && !matches!(plan.state_at(now_ns), PlanState::Consumed | PlanState::Expired)
        };
        self.all.values().filter(open).fold((0, 0), |(n, bytes), plan| (n + 1, bytes + plan.src.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan::sample()
    }

    #[test]
    fn a_plan_survives_its_record() {
        assert_eq!(Plan::from_record(&plan().to_record()), Some(plan()));
    }

    #[test]
    fn drift_names_everything_that_differs() {
        let mut now = plan();
        assert_eq!(plan().drift(&now), Vec::<&str>::new());
        now.cwd = b"/".to_vec();
        now.scripts = json!([1]);
        now.bindings = Some("11".into());
        assert_eq!(plan().drift(&now), ["cwd", "scripts", "bindings"]);
    }

    #[test]
    fn time_expires_all_but_consumed_plans() {
        assert_eq!(plan().state_at(99), PlanState::Pending);
        assert_eq!(plan().state_at(100), PlanState::Expired);
        assert_eq!(Plan { state: PlanState::Consumed, ..plan() }.state_at(100), PlanState::Consumed);
        assert_eq!(plan().kinds(), ["opaque"]);
        let mut plans = Plans::default();
        plans.insert(plan(), 1);
        assert_eq!((plans.open_of("a", 50), plans.open_of("a", 100)), ((1, 9), (0, 0)));
    }
}
