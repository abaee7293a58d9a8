//! The policy without a file: the local user may do everything, inside a jail that holds the whole filesystem minus the
//! holes.

use shoal_proto::section::{AutoApply, Entry, MAX_ENTRIES, Network, Opaque, Section};
use shoal_proto::{List, Text};

/// The section of `uid:N`.
pub(crate) fn section(uid: u32) -> Section {
    Section {
        principal: Text::cut(&format!("uid:{uid}")),
        fs_read: one("/**"),
        fs_write: one("/**"),
        fs_delete: one("/**"),
        net_connect: one("*:*"),
        env_read: one("*"),
        env_write: one("*"),
        secret_use: one("*"),
        session_write: true,
        journal_read: true,
        time: true,
        opaque: Opaque::Allow,
        auto_apply: AutoApply::InGrant,
        network: Network::Open,
        limits: crate::section::default_limits(),
        ..Section::default()
    }
}

fn one(entry: &str) -> List<Entry, MAX_ENTRIES> {
    List::new(vec![Text::cut(entry)]).unwrap_or_default()
}
