//! Who waits for a role of a session, and for its answers.

use std::collections::HashMap;

use shoal_wire::RpcError;

use crate::broker::{Broker, Then};
use crate::sessions::Sid;

/// What waits for a role of a session.
pub(crate) struct Pending<T> {
    /// The session.
    pub(crate) sid: Sid,
    /// What goes on with the answer.
    pub(crate) then: Then<Result<T, RpcError>>,
}

/// Waiting requests to a role, by number.
pub(crate) type Calls<T> = HashMap<u64, Pending<T>>;
/// Who waits for a role to be there, by number, in the order of their coming.
pub(crate) type Waiting = Vec<(u64, Pending<()>)>;

impl Broker {
    /// Resolves those who wait for a role of a session.
    pub(crate) fn resolve(&mut self, of: fn(&mut Self) -> &mut Waiting, sid: Sid, result: &Result<(), RpcError>) {
        let mine: Waiting = of(self).extract_if(.., |(_, pending)| pending.sid == sid).collect();
        for (_, pending) in mine {
            (pending.then)(self, result.clone());
        }
    }

    /// Answers every call to a role of a session that will not answer.
    pub(crate) fn fail_calls<T>(&mut self, of: fn(&mut Self) -> &mut Calls<T>, sid: Sid, error: &RpcError) {
        let calls: Calls<T> = of(self).extract_if(|_, pending| pending.sid == sid).collect();
        for pending in calls.into_values() {
            (pending.then)(self, Err(error.clone()));
        }
    }
}
