//! Plans kept by the evaluator itself when the host has no port for them.

use std::collections::BTreeMap;

use shoal_value::Str;

use crate::host::StoredPlan;

/// Most plans kept; the oldest goes first.
const KEPT: usize = 64;

/// Plans of a session without a port for them.
#[derive(Default)]
pub(crate) struct LocalPlans {
    next: u64,
    plans: BTreeMap<u64, StoredPlan>,
}

impl LocalPlans {
    pub(crate) fn put(&mut self, plan: StoredPlan) -> Str {
        self.next += 1;
        self.plans.insert(self.next, plan);
        if self.plans.len() > KEPT {
            self.plans.pop_first();
        }
        format!("plan-{}", self.next).into()
    }

    pub(crate) fn take(&mut self, id: &str) -> Option<StoredPlan> {
        self.plans.remove(&number(id)?)
    }

    pub(crate) fn peek(&self, id: &str) -> Option<StoredPlan> {
        self.plans.get(&number(id)?).cloned()
    }
}

fn number(id: &str) -> Option<u64> {
    id.strip_prefix("plan-")?.parse().ok()
}
