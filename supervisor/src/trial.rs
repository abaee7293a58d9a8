//! The trial session: an empty one under the local user's section, before anyone is told that the kernel is ready.
//!
//! It is made while the first broker opens the journal, neither of which needs the other; the kernel is ready when both
//! are done.

use std::time::Instant;

use shoal_proto::Text;
use shoal_proto::supervisor_broker::{CreateSession, Limits};

use crate::birth::Failed;
use crate::kernel::Kernel;
use crate::{log, notify};

/// How far the first start is.
#[derive(Debug, Default)]
pub(crate) struct FirstStart {
    begun: bool,
    /// A broker said that it serves.
    serves: bool,
    /// Whether the trial session could be made, once it is known.
    can_make: Option<bool>,
    published: bool,
}

impl FirstStart {
    /// Whether anyone is to be told now, and then whether sessions can be made: once, when both are known.
    fn news(&mut self) -> Option<bool> {
        let news = self.can_make.filter(|_| self.serves && !self.published)?;
        self.published = true;
        Some(news)
    }
}

impl Kernel {
    /// Makes the trial session, the first time.
    pub(crate) fn begin_trial(&mut self, now: Instant) {
        if std::mem::replace(&mut self.first_start.begun, true) {
            return;
        }
        let order = CreateSession {
            order: 0,
            owner: Text::cut(&format!("uid:{}", shoal_sys::process::uid())),
            name: Text::cut("trial"),
            cwd: Text::cut("/"),
            limits: Limits::default(),
            lane: None,
        };
        if let Err(failed) = self.create(order, true, now) {
            self.on_trial(Err(failed));
        }
    }

    /// The trial is over. A kernel that cannot make sessions is not ready, and it still serves: it tells every client why.
    pub(crate) fn on_trial(&mut self, result: Result<(), Failed>) {
        self.first_start.can_make = Some(result.is_ok());
        if let Err(failed) = result {
            let error = std::io::Error::from_raw_os_error(failed.errno);
            let remedy = if failed.remedy.is_empty() { String::new() } else { format!("; {}", failed.remedy) };
            log::line(&format!("no session can be made: cannot {} ({error}){remedy}", failed.step));
        }
        self.publish();
    }

    /// The broker opened the journal and took the listener.
    pub(crate) fn on_broker_serves(&mut self) {
        log::detail("the broker serves");
        self.first_start.serves = true;
        self.publish();
    }

    fn publish(&mut self) {
        match self.first_start.news() {
            Some(true) => notify::ready(&self.listener.path),
            Some(false) => notify::unready(&self.listener.path),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_once_when_a_broker_serves_and_the_trial_is_over() {
        for (can_make, trial_first) in [(true, true), (true, false), (false, true), (false, false)] {
            let mut first = FirstStart::default();
            assert_eq!(first.news(), None);
            if trial_first {
                first.can_make = Some(can_make);
            } else {
                first.serves = true;
            }
            assert_eq!(first.news(), None);
            (first.can_make, first.serves) = (Some(can_make), true);
            assert_eq!(first.news(), Some(can_make));
            // The next broker serves too.
            assert_eq!(first.news(), None);
        }
    }
}
