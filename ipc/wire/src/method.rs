//! The methods of the kernel socket.

macro_rules! methods {
    ($($variant:ident = $name:literal,)*) => {
        /// A method of the kernel socket.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each variant is its wire name, listed in `name`")]
        pub enum Method { $($variant,)* }

        impl Method {
            /// Every method, in the order of the protocol's index.
            pub const ALL: &'static [Method] = &[$(Method::$variant),*];

            /// The name on the wire.
            pub fn name(self) -> &'static str {
                match self { $(Method::$variant => $name,)* }
            }

            /// The method of this name.
            pub fn from_name(name: &str) -> Option<Method> {
                match name { $($name => Some(Method::$variant),)* _ => None }
            }
        }
    };
}

methods! {
    KernelVersion = "kernel.version",
    SessionAttach = "session.attach",
    SessionSnapshot = "session.snapshot",
    SessionEnv = "session.env",
    SessionReef = "session.reef",
    Parse = "parse",
    Complete = "complete",
    Explain = "explain",
    Exec = "exec",
    ValueGet = "value.get",
    BlobGet = "blob.get",
    StreamPull = "stream.pull",
    StreamClose = "stream.close",
    JournalQuery = "journal.query",
    JournalVerify = "journal.verify",
    TaskList = "task.list",
    TaskGet = "task.get",
    TaskAwait = "task.await",
    TaskOutput = "task.output",
    TaskCancel = "task.cancel",
    TaskSuspend = "task.suspend",
    TaskResume = "task.resume",
    PlanList = "plan.list",
    PlanGet = "plan.get",
    PlanApply = "plan.apply",
    CapRequest = "cap.request",
    ApprovalList = "approval.list",
    ApprovalDecide = "approval.decide",
    PtyOpen = "pty.open",
    PtySend = "pty.send",
    PtyRead = "pty.read",
    PtyResize = "pty.resize",
    PtyControl = "pty.control",
    PtyClose = "pty.close",
    PtyList = "pty.list",
    EventsRead = "events.read",
    EventsPublish = "events.publish",
    EventsSubscribe = "events.subscribe",
    EventsUnsubscribe = "events.unsubscribe",
    WatchStart = "watch.start",
    WatchStop = "watch.stop",
    WatchList = "watch.list",
    WatchGet = "watch.get",
    SessionList = "session.list",
    SessionKill = "session.kill",
    SessionFreeze = "session.freeze",
    SessionThaw = "session.thaw",
    TokenCreate = "token.create",
    TokenList = "token.list",
    TokenRevoke = "token.revoke",
    KernelStatus = "kernel.status",
    JournalPin = "journal.pin",
    JournalUnpin = "journal.unpin",
    JournalGc = "journal.gc",
    KernelShutdown = "kernel.shutdown",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_again() {
        for method in Method::ALL {
            assert_eq!(Method::from_name(method.name()), Some(*method));
        }
        assert_eq!(Method::from_name("session.steal"), None);
    }
}
