//! The trial session: an empty one under the first section, before anyone is told that the kernel is ready.

use std::time::Instant;

use shoal_proto::Text;
use shoal_proto::supervisor_broker::{CreateSession, Limits};

use crate::birth::Failed;
use crate::kernel::Kernel;
use crate::{log, notify};

impl Kernel {
    /// Makes the trial session.
    pub(crate) fn begin_trial(&mut self, now: Instant) {
        let order = CreateSession {
            order: 0,
            owner: Text::cut("kernel"),
            name: Text::cut("trial"),
            section: 0,
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
        let first = !std::mem::replace(&mut self.published, true);
        match result {
            Ok(()) if first => notify::ready(&self.listener.path),
            Ok(()) => {}
            Err(failed) => {
                let error = std::io::Error::from_raw_os_error(failed.errno);
                let remedy = if failed.remedy.is_empty() { String::new() } else { format!("; {}", failed.remedy) };
                log::line(&format!("no session can be made: cannot {} ({error}){remedy}", failed.step));
                if first {
                    notify::unready(&self.listener.path);
                }
            }
        }
    }
}
