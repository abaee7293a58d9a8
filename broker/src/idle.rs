//! Sessions that nobody uses: ended when their section says after how long.

use std::time::Duration;

use crate::broker::Broker;
use crate::sessions::{Ended, Sid};

impl Broker {
    /// Something that used a session is over: starts the session's clock, when its section has one.
    pub(crate) fn arm_idle(&mut self, sid: Sid) {
        let Some(session) = self.sessions.at(sid) else { return };
        let Some(ttl) = self.policy.of_session(session).and_then(|section| section.idle_ttl) else { return };
        let since = self.now.mono;
        self.after(Duration::from_secs(ttl), move |broker| {
            if broker.is_unused(sid, since) {
                broker.end_session(sid, Ended { reason: "idle", by: None, note: None });
            }
        });
    }

    /// Nobody is attached, nothing runs, no terminal's program lives, nothing is watched, and nothing was since then.
    fn is_unused(&self, sid: Sid, since: Duration) -> bool {
        let Some(session) = self.sessions.at(sid) else { return false };
        session.attached == 0
            && session.running.is_empty()
            && session.watches.is_empty()
            && session.used <= since
            && self.ptys.of_session(sid).all(|pty| pty.exit.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, section};
    use crate::watches::WatchSpec;

    const TTL: Duration = Duration::from_secs(60);

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn a_session_ends_when_nobody_used_it_for_its_time_and_not_before() {
        let section = shoal_leash::Section { idle_ttl: Some(60), ..section("agent:x") };
        testing::with_broker(&[section], |world| {
            let sid = testing::session(&mut world.broker, "agent:x", "s");
            world.broker.arm_idle(sid);
            world.pass(TTL - seconds(1));
            assert!(world.broker.sessions.at(sid).is_some());
            world.pass(seconds(1));
            assert!(world.broker.sessions.at(sid).is_none(), "ended at its time");
            let page = world.broker.bus.page(&("agent:x".into(), "session".into()), 0, None, 10);
            let told: Vec<&str> = page.events.iter().map(|event| &*event.payload).collect();
            assert!(told.iter().any(|event| event.contains("expired")), "{told:?}");
        });
    }

    #[test]
    fn a_step_of_the_wall_clock_moves_no_deadline() {
        const YEAR: i64 = 365 * 24 * 3600 * 1_000_000_000;
        let section = shoal_leash::Section { idle_ttl: Some(60), ..section("agent:x") };
        testing::with_broker(&[section], |world| {
            let sid = testing::session(&mut world.broker, "agent:x", "s");
            world.broker.arm_idle(sid);
            world.step_clock(YEAR);
            assert!(world.broker.sessions.at(sid).is_some(), "a year on is no time");
            world.step_clock(-2 * YEAR);
            world.pass(TTL - seconds(1));
            assert!(world.broker.sessions.at(sid).is_some());
            world.pass(seconds(1));
            assert!(world.broker.sessions.at(sid).is_none(), "its time went by, whatever the clock says");
        });
    }

    #[test]
    fn whatever_uses_a_session_keeps_it() {
        let section = shoal_leash::Section { idle_ttl: Some(60), ..section("agent:x") };
        type Begin = fn(&mut crate::sessions::Session);
        let uses: [(&str, Begin); 3] = [
            ("an attachment", |session| session.attached = 1),
            ("a run", |session| session.running.push(1)),
            ("a watch", |session| {
                session.watches.push(WatchSpec {
                    name: "w".into(),
                    uri: "shoal://events/journal".into(),
                    on_event: None,
                    lang: "shoal".into(),
                    persist: true,
                });
            }),
        ];
        for (what, begin) in uses {
            testing::with_broker(std::slice::from_ref(&section), |world| {
                let sid = testing::session(&mut world.broker, "agent:x", "s");
                world.broker.arm_idle(sid);
                begin(world.broker.sessions.at_mut(sid).expect("there"));
                world.pass(TTL * 10);
                let session = world.broker.sessions.at_mut(sid).expect(what);
                session.attached = 0;
                session.running.clear();
                session.watches.clear();
                session.used = world.broker.now.mono;
                world.broker.arm_idle(sid);
                world.pass(TTL - seconds(1));
                assert!(world.broker.sessions.at(sid).is_some(), "{what}: its whole time again");
                world.pass(seconds(1));
                assert!(world.broker.sessions.at(sid).is_none(), "{what}");
            });
        }
    }

    #[test]
    fn a_section_without_a_time_keeps_its_sessions() {
        testing::with_broker(&[section("agent:x")], |world| {
            let sid = testing::session(&mut world.broker, "agent:x", "s");
            world.broker.arm_idle(sid);
            world.pass(TTL * 1000);
            assert!(world.broker.sessions.at(sid).is_some());
        });
    }
}
