//! The limits of protocol 11.4: their names, defaults, and where a count meets its limit.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use shoal_proto::supervisor_broker::MAX_SESSIONS;
use shoal_wire::{RpcError, limits};

/// A limit that refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Quota {
    /// Connections of the kernel.
    Connections,
    /// Connections that have said nothing yet; refuses nobody.
    Unattached,
    /// Sessions of the kernel.
    Sessions,
    /// Running executions of a session.
    ExecsPerSession,
    /// Running executions of the kernel.
    Tasks,
    /// Plans of an owner that can still be applied.
    PlansPerOwner,
    /// Their sources.
    PlanSourceBytes,
    /// Terminals of a session.
    PtysPerSession,
    /// Terminals of an owner.
    PtysPerPrincipal,
    /// Terminals of the kernel.
    Ptys,
    /// Subscriptions to an owner's channels.
    Subscriptions,
    /// User channels of an owner.
    UserChannels,
    /// Reads of the content store in ten seconds, per owner.
    BlobReads,
    /// Watches of a session.
    WatchesPerSession,
}

const NAMES: &[(Quota, &str)] = &[
    (Quota::Connections, "connections"),
    (Quota::Unattached, "unattached"),
    (Quota::Sessions, "sessions"),
    (Quota::ExecsPerSession, "execs_per_session"),
    (Quota::Tasks, "tasks"),
    (Quota::PlansPerOwner, "plans_per_owner"),
    (Quota::PlanSourceBytes, "plan_source_bytes"),
    (Quota::PtysPerSession, "ptys_per_session"),
    (Quota::PtysPerPrincipal, "ptys_per_principal"),
    (Quota::Ptys, "ptys"),
    (Quota::Subscriptions, "subscriptions"),
    (Quota::UserChannels, "user_channels"),
    (Quota::BlobReads, "blob_reads"),
    (Quota::WatchesPerSession, "watches_per_session"),
];

/// The window of `blob_reads`.
const BLOB_WINDOW: Duration = Duration::from_millis(limits::BLOB_READS_WINDOW_MS);

/// The limits in force and the one count that has no object to hang on.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    changed: HashMap<Quota, u64>,
    blob_reads: HashMap<String, VecDeque<Duration>>,
}

impl Quotas {
    /// Changes a limit by name; an unknown name is handed back.
    pub(crate) fn set<'a>(&mut self, name: &'a str, value: u64) -> Result<(), &'a str> {
        let (quota, _) = NAMES.iter().find(|(_, known)| *known == name).ok_or(name)?;
        self.changed.insert(*quota, value);
        Ok(())
    }

    /// The limit of a quota.
    pub(crate) fn max(&self, quota: Quota) -> u64 {
        let default =
            || limits::QUOTAS.iter().find(|known| known.name == quota.name()).map_or(0, |known| known.default);
        let max = self.changed.get(&quota).copied().unwrap_or_else(default);
        // What the supervisor makes at most, whatever it was started with.
        if quota == Quota::Sessions { max.min(MAX_SESSIONS as u64) } else { max }
    }

    /// Refuses one more when `used` are there already.
    pub(crate) fn admit(&self, quota: Quota, used: usize) -> Result<(), RpcError> {
        self.admit_amount(quota, used as u64, 1)
    }

    /// Refuses `more` when `used` are there already.
    pub(crate) fn admit_amount(&self, quota: Quota, used: u64, more: u64) -> Result<(), RpcError> {
        let max = self.max(quota);
        if used.saturating_add(more) > max { Err(refusal(quota, max, used)) } else { Ok(()) }
    }

    /// Counts a read of the content store for `owner`; `now` is monotonic.
    pub(crate) fn read_blob(&mut self, owner: &str, now: Duration) -> Result<(), RpcError> {
        let max = self.max(Quota::BlobReads);
        self.blob_reads.retain(|_, reads| reads.back().is_some_and(|last| now.saturating_sub(*last) < BLOB_WINDOW));
        let reads = self.blob_reads.entry(owner.to_owned()).or_default();
        while reads.front().is_some_and(|first| now.saturating_sub(*first) >= BLOB_WINDOW) {
            reads.pop_front();
        }
        if reads.len() as u64 >= max {
            return Err(refusal(Quota::BlobReads, max, reads.len() as u64));
        }
        reads.push_back(now);
        Ok(())
    }
}

fn refusal(quota: Quota, max: u64, used: u64) -> RpcError {
    let name = quota.name();
    let variable = name.to_ascii_uppercase();
    let message = format!(
        "quota {name} is used up ({used} of {max}); to have more, give the kernel `--limit {name}=N`, SHOAL_MAX_{variable} \
         or [limits] {name} in shoal.toml"
    );
    RpcError::quota(name, max, used, message)
}

impl Quota {
    /// The name on the wire.
    pub(crate) fn name(self) -> &'static str {
        NAMES.iter().find(|(known, _)| *known == self).map_or("", |(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_more_than_allowed_is_refused_with_name_and_counts() {
        let mut quotas = Quotas::default();
        assert!(quotas.admit(Quota::ExecsPerSession, 15).is_ok());
        let refusal = quotas.admit(Quota::ExecsPerSession, 16).expect_err("full");
        assert_eq!(refusal.data, Some(serde_json::json!({"limit":"execs_per_session","max":16,"used":16})));
        quotas.set("execs_per_session", 17).expect("known");
        assert!(quotas.admit(Quota::ExecsPerSession, 16).is_ok());
        assert_eq!(quotas.set("execs", 1), Err("execs"));
    }

    #[test]
    fn every_quota_has_a_default() {
        assert_eq!(NAMES.len(), limits::QUOTAS.len());
        for (quota, _) in NAMES {
            assert!(Quotas::default().max(*quota) > 0, "{quota:?}");
        }
    }

    #[test]
    fn blob_reads_slide_with_time_and_count_per_owner() {
        let mut quotas = Quotas::default();
        for second in 0..64 {
            quotas.read_blob("a", Duration::from_millis(second)).expect("below the limit");
        }
        assert!(quotas.read_blob("a", Duration::from_secs(9)).is_err());
        assert!(quotas.read_blob("b", Duration::from_secs(9)).is_ok());
        assert!(quotas.read_blob("a", Duration::from_secs(11)).is_ok());
    }
}
