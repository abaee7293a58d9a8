//! Phases of a connection. They own their data and are consumed by a step: what belongs to an earlier phase is gone.

use std::collections::VecDeque;
use std::rc::Rc;

use super::socket::Frame;
use crate::sessions::{Ended, Sid};

/// What a connection acts as, and where.
#[derive(Clone, Debug)]
pub(crate) struct Attachment {
    /// Who acts.
    pub(crate) principal: Rc<str>,
    /// Whose session.
    pub(crate) owner: Rc<str>,
    /// Name of the session; empty outside of all.
    pub(crate) session: Rc<str>,
    /// The session, or [`Sid::NONE`].
    pub(crate) sid: Sid,
    /// It acts as the local user in person.
    pub(crate) human: bool,
    /// `client.kind`.
    pub(crate) kind: Rc<str>,
    /// `client.name`.
    pub(crate) name: Rc<str>,
    /// It shows text on a terminal.
    pub(crate) tty: bool,
    /// Id of the token it showed.
    pub(crate) token: Option<Rc<str>>,
    /// The newest `out:N` this connection produced.
    pub(crate) last_out: Option<u64>,
    /// The session is over.
    pub(crate) ended: Option<Ended>,
}

/// Where a connection stands.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Nobody yet: it may ask for the version and attach.
    AwaitAttach,
    /// One connection too many: its first request is refused.
    Surplus,
    /// An attach is being decided; frames after it wait.
    AwaitVerdict {
        /// The attachment that stays when this one is refused.
        before: Option<Box<Attachment>>,
        /// Frames behind the barrier.
        held: VecDeque<Frame>,
    },
    /// It acts in a session.
    Attached(Box<Attachment>),
}

/// What to do with a frame.
#[derive(Debug)]
pub(crate) enum Step {
    /// Dispatch it.
    Dispatch(Frame),
    /// It waits behind the barrier.
    Held,
    /// Refuse it and close.
    Surplus(Frame),
}

impl Phase {
    /// A frame arrived.
    pub(crate) fn on_frame(self, frame: Frame) -> (Self, Step) {
        match self {
            Self::AwaitVerdict { before, mut held } => {
                held.push_back(frame);
                (Self::AwaitVerdict { before, held }, Step::Held)
            }
            Self::Surplus => (Self::Surplus, Step::Surplus(frame)),
            phase @ (Self::AwaitAttach | Self::Attached(_)) => (phase, Step::Dispatch(frame)),
        }
    }

    /// An attach begins.
    pub(crate) fn begin_attach(self) -> (Self, ()) {
        let before = match self {
            Self::Attached(before) => Some(before),
            Self::AwaitVerdict { before, .. } => before,
            Self::AwaitAttach | Self::Surplus => None,
        };
        (Self::AwaitVerdict { before, held: VecDeque::new() }, ())
    }

    /// An attach is decided: `None` leaves what was. The frames behind the barrier are free.
    pub(crate) fn end_attach(self, new: Option<Attachment>) -> (Self, VecDeque<Frame>) {
        let (before, held) = match self {
            Self::AwaitVerdict { before, held } => (before, held),
            Self::Attached(before) => (Some(before), VecDeque::new()),
            Self::AwaitAttach | Self::Surplus => (None, VecDeque::new()),
        };
        match new.map(Box::new).or(before) {
            Some(attachment) => (Self::Attached(attachment), held),
            None => (Self::AwaitAttach, held),
        }
    }

    /// The attachment in force: that of before while another one is decided.
    pub(crate) fn attachment(&self) -> Option<&Attachment> {
        match self {
            Self::Attached(attachment) | Self::AwaitVerdict { before: Some(attachment), .. } => Some(attachment),
            Self::AwaitAttach | Self::Surplus | Self::AwaitVerdict { before: None, .. } => None,
        }
    }

    /// The attachment in force, to note something in it.
    pub(crate) fn attachment_mut(&mut self) -> Option<&mut Attachment> {
        match self {
            Self::Attached(attachment) | Self::AwaitVerdict { before: Some(attachment), .. } => Some(attachment),
            Self::AwaitAttach | Self::Surplus | Self::AwaitVerdict { before: None, .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attachment(session: &str) -> Attachment {
        Attachment {
            principal: "a".into(),
            owner: "a".into(),
            session: session.into(),
            sid: Sid(1),
            human: false,
            kind: "".into(),
            name: "".into(),
            tty: false,
            token: None,
            last_out: None,
            ended: None,
        }
    }

    #[test]
    fn frames_behind_an_attach_wait_for_its_verdict() {
        let (phase, ()) = Phase::AwaitAttach.begin_attach();
        let (phase, step) = phase.on_frame(Frame::test(b"1"));
        assert!(matches!(step, Step::Held));
        let (phase, held) = phase.end_attach(Some(attachment("s")));
        assert_eq!(held.len(), 1);
        assert_eq!(phase.attachment().map(|a| &*a.session), Some("s"));
        assert!(matches!(phase.on_frame(Frame::test(b"2")).1, Step::Dispatch(_)));
    }

    #[test]
    fn a_refused_attach_leaves_the_one_before() {
        let (phase, ()) = Phase::Attached(Box::new(attachment("old"))).begin_attach();
        let (phase, _) = phase.end_attach(None);
        assert_eq!(phase.attachment().map(|a| &*a.session), Some("old"));
        let (phase, ()) = Phase::AwaitAttach.begin_attach();
        assert!(matches!(phase.end_attach(None).0, Phase::AwaitAttach));
    }

    #[test]
    fn a_surplus_connection_gets_one_refusal() {
        assert!(matches!(Phase::Surplus.on_frame(Frame::test(b"1")).1, Step::Surplus(_)));
    }
}
