//! The permit table: which method exists, who may call it, and what state its session must be in.
//!
//! Method, phase and authority are looked up here before any parameter is decoded. Authority is data: an answerer only adds the
//! checks that need the object (whose plan, whose terminal).

use shoal_wire::Method;

/// Who may call a method at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// No attachment needed.
    Anyone,
    /// Any attached connection.
    Attached,
    /// A principal with `journal_read`, or the human.
    JournalReader,
    /// The human alone.
    Human,
}

/// What the attached session must be for a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing: the method is not about the session's life.
    Nothing,
    /// It has not ended, but there may be none: the method is about what the owner has.
    Owner,
    /// It has not ended.
    Live,
    /// It has not ended and is not frozen: the method starts work.
    Work,
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permit {
    /// The method.
    pub(crate) method: Method,
    /// Who may call it.
    pub(crate) who: Who,
    /// State of the session it needs.
    pub(crate) needs: Needs,
}

const fn row(method: Method, who: Who, needs: Needs) -> Permit {
    Permit { method, who, needs }
}

/// One row per method.
const PERMITS: &[Permit] = &[
    row(Method::KernelVersion, Who::Anyone, Needs::Nothing),
    row(Method::SessionAttach, Who::Anyone, Needs::Nothing),
    row(Method::SessionSnapshot, Who::Attached, Needs::Live),
    row(Method::SessionEnv, Who::Attached, Needs::Live),
    row(Method::SessionReef, Who::Attached, Needs::Live),
    row(Method::Parse, Who::Attached, Needs::Live),
    row(Method::Complete, Who::Attached, Needs::Live),
    row(Method::Explain, Who::Attached, Needs::Live),
    row(Method::Exec, Who::Attached, Needs::Work),
    row(Method::ValueGet, Who::Attached, Needs::Live),
    row(Method::BlobGet, Who::Attached, Needs::Live),
    row(Method::StreamPull, Who::Attached, Needs::Live),
    row(Method::StreamClose, Who::Attached, Needs::Live),
    row(Method::JournalQuery, Who::Attached, Needs::Owner),
    row(Method::JournalVerify, Who::JournalReader, Needs::Nothing),
    row(Method::TaskList, Who::Attached, Needs::Live),
    row(Method::TaskGet, Who::Attached, Needs::Live),
    row(Method::TaskAwait, Who::Attached, Needs::Live),
    row(Method::TaskOutput, Who::Attached, Needs::Live),
    row(Method::TaskCancel, Who::Attached, Needs::Live),
    row(Method::TaskSuspend, Who::Attached, Needs::Live),
    row(Method::TaskResume, Who::Attached, Needs::Live),
    row(Method::PlanList, Who::Attached, Needs::Live),
    row(Method::PlanGet, Who::Attached, Needs::Live),
    row(Method::PlanApply, Who::Attached, Needs::Work),
    row(Method::CapRequest, Who::Attached, Needs::Live),
    // Plans belong to their owner: who decides may have had the own session killed meanwhile.
    row(Method::ApprovalList, Who::Attached, Needs::Nothing),
    row(Method::ApprovalDecide, Who::Attached, Needs::Nothing),
    row(Method::PtyOpen, Who::Attached, Needs::Work),
    row(Method::PtySend, Who::Attached, Needs::Live),
    row(Method::PtyRead, Who::Attached, Needs::Live),
    row(Method::PtyControl, Who::Human, Needs::Live),
    row(Method::PtyResize, Who::Attached, Needs::Live),
    row(Method::PtyClose, Who::Attached, Needs::Live),
    row(Method::PtyList, Who::Attached, Needs::Live),
    row(Method::EventsRead, Who::Attached, Needs::Owner),
    row(Method::EventsPublish, Who::Attached, Needs::Live),
    row(Method::EventsSubscribe, Who::Attached, Needs::Owner),
    row(Method::EventsUnsubscribe, Who::Attached, Needs::Nothing),
    row(Method::WatchStart, Who::Attached, Needs::Work),
    row(Method::WatchStop, Who::Attached, Needs::Live),
    row(Method::WatchList, Who::Attached, Needs::Live),
    row(Method::WatchGet, Who::Attached, Needs::Live),
    row(Method::KernelStatus, Who::Human, Needs::Nothing),
    row(Method::SessionList, Who::Human, Needs::Nothing),
    row(Method::SessionKill, Who::Human, Needs::Nothing),
    row(Method::SessionFreeze, Who::Human, Needs::Nothing),
    row(Method::SessionThaw, Who::Human, Needs::Nothing),
    row(Method::TokenCreate, Who::Human, Needs::Nothing),
    row(Method::TokenList, Who::Human, Needs::Nothing),
    row(Method::TokenRevoke, Who::Human, Needs::Nothing),
    row(Method::JournalPin, Who::Human, Needs::Nothing),
    row(Method::JournalUnpin, Who::Human, Needs::Nothing),
    row(Method::JournalGc, Who::Human, Needs::Nothing),
    row(Method::KernelShutdown, Who::Human, Needs::Nothing),
];

/// The row of a method name.
pub(crate) fn permit(name: &str) -> Option<Permit> {
    let method = Method::from_name(name)?;
    PERMITS.iter().find(|row| row.method == method).copied()
}

/// What the table asks of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Authority {
    /// The connection acts as the local user in person.
    pub(crate) human: bool,
    /// The principal's section says `journal_read`.
    pub(crate) journal_read: bool,
}

impl Permit {
    /// Whether an attached caller may call; the error names what is needed.
    pub(crate) fn check(&self, authority: Authority) -> Result<(), &'static str> {
        let granted = match self.who {
            Who::Anyone | Who::Attached => true,
            Who::JournalReader => authority.human || authority.journal_read,
            Who::Human => authority.human,
        };
        if granted { Ok(()) } else { Err("human") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_has_one_row() {
        for method in Method::ALL {
            assert_eq!(PERMITS.iter().filter(|row| row.method == *method).count(), 1, "{method:?}");
            assert_eq!(permit(method.name()).map(|row| row.method), Some(*method));
        }
        assert_eq!(permit("session.reset"), None);
    }

    #[test]
    fn only_two_methods_answer_strangers() {
        let open: Vec<_> = PERMITS.iter().filter(|row| row.who == Who::Anyone).map(|row| row.method.name()).collect();
        assert_eq!(open, ["kernel.version", "session.attach"]);
    }

    #[test]
    fn administration_is_for_the_human() {
        let agent = Authority { human: false, journal_read: true };
        for name in ["kernel.status", "session.kill", "token.create", "journal.gc", "kernel.shutdown", "pty.control"] {
            assert_eq!(permit(name).expect("known").check(agent), Err("human"));
        }
        assert_eq!(permit("journal.verify").expect("known").check(agent), Ok(()));
        let plain = Authority { human: false, journal_read: false };
        assert_eq!(permit("journal.verify").expect("known").check(plain), Err("human"));
    }
}
