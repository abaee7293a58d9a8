//! The rules in force, as `shoal-policy` compiled them, and what they say of the host.

use shoal_leash::{Approve, Opaque, Section, Sections};
use shoal_proto::supervisor_broker::Start;

use crate::json::quoted;
use crate::sessions::Session;

/// Rules and where they came from.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    /// Compiled sections.
    pub(crate) sections: Sections,
    /// When they came into force, ns.
    pub(crate) loaded_ns: i64,
    /// Why the newest file was refused, when it was.
    pub(crate) rejected: Option<String>,
}

impl Policy {
    /// The section that serves a principal.
    pub(crate) fn of(&self, principal: &str) -> Option<&Section> {
        self.sections.serving(principal)
    }

    /// The section of a session's owner, for verdicts.
    pub(crate) fn of_session(&self, session: &Session) -> Option<&Section> {
        self.of(&session.owner)
    }

    /// Claims a section requires and the host does not hold.
    pub(crate) fn missing(section: &Section, claims: u16) -> Vec<String> {
        let missing = section.require & !claims;
        (0..12).filter(|bit| missing & (1 << bit) != 0).map(|bit| format!("C{}", bit + 1)).collect()
    }
}

/// `{"C1":bool,…}`.
pub(crate) fn claims_json(claims: u16) -> String {
    let members: Vec<String> = (0..12).map(|bit| format!("\"C{}\":{}", bit + 1, claims & (1 << bit) != 0)).collect();
    format!("{{{}}}", members.join(","))
}

/// The wire word of an `opaque` mode.
fn opaque_word(section: &Section) -> &'static str {
    match section.opaque {
        Opaque::Allow => "allow",
        Opaque::Ask => "approval_required",
        Opaque::Deny => "deny",
    }
}

/// The wire form of an `approve` value.
fn approve_json(section: &Section) -> &'static str {
    match section.approve {
        Approve::Human => "\"human\"",
        Approve::Itself => "\"self\"",
        Approve::Client => "\"client\"",
        Approve::Others => "true",
    }
}

/// Best tier of a level: what the OS enforces of the filesystem rules.
fn tier(start: &Start) -> Option<&'static str> {
    match start.level.as_str() {
        "L2" | "L3" | "L4" if start.isolation.landlock_abi > 0 => Some("A"),
        "L3" | "L4" if start.isolation.namespaces && start.isolation.seccomp => Some("B"),
        "M2" => Some("C"),
        _ => None,
    }
}

/// An OS jail confines what runs under this section.
pub(crate) fn is_enforced(start: &Start, section: &Section) -> bool {
    matches!(tier(start), Some("A" | "C")) && !section.is_whole_filesystem()
}

/// `caps` of an attach result.
pub(crate) fn caps_json(start: &Start, section: &Section, owner: &str, profile: &str, token_caps: &[String]) -> String {
    let tier = tier(start);
    let caps: Vec<String> = token_caps.iter().map(|cap| quoted(cap)).collect();
    format!(
        concat!(
            r#"{{"enforced":{},"tier":{},"available_tier":"{}","policy_principal":{},"profile":{},"#,
            r#""token_caps":[{}],"opaque":"{}","approve":{}}}"#
        ),
        is_enforced(start, section),
        tier.map_or("null".to_owned(), quoted),
        tier.unwrap_or("D"),
        quoted(owner),
        quoted(profile),
        caps.join(","),
        opaque_word(section),
        approve_json(section),
    )
}

/// `isolation` of an attach result.
pub(crate) fn isolation_json(start: &Start, section: &Section) -> String {
    let isolation = &start.isolation;
    let jailed = isolation.namespaces && matches!(start.level.as_str(), "L3" | "L4");
    let network = match section.network {
        _ if !jailed => "open",
        shoal_leash::Network::None => "none",
        shoal_leash::Network::Ports => "ports",
        shoal_leash::Network::Open => "open",
    };
    let confined = matches!(start.level.as_str(), "L2" | "L3" | "L4");
    let landlock =
        if confined && isolation.landlock_abi > 0 { isolation.landlock_abi.to_string() } else { "null".into() };
    let word = if jailed { "isolated" } else { "open" };
    format!(
        concat!(
            r#"{{"namespaces":{},"landlock_abi":{},"seccomp":{},"cgroup":"{}","network":"{}","#,
            r#""unix_sockets":"{}","signals":"{}"}}"#
        ),
        jailed,
        landlock,
        isolation.seccomp && start.level.as_str() != "L0",
        if isolation.cgroup { "v2" } else { "none" },
        network,
        word,
        word,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_named_from_the_lowest_bit() {
        assert!(claims_json(0b1).starts_with(r#"{"C1":true,"C2":false"#));
        assert!(claims_json(1 << 11).ends_with(r#""C12":true}"#));
        let section = Section { require: 0b101, ..Section::default() };
        assert_eq!(Policy::missing(&section, 0b001), ["C3"]);
    }
}
