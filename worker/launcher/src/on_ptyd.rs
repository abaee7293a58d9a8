//! The ptyd says hello and nothing else.

use shoal_chan::{ChanError, Received};
use shoal_proto::Violation;
use shoal_proto::hello::SessionRole;
use shoal_proto::launcher_ptyd::{ToLauncher, ToPtyd};

use crate::edge;
use crate::launcher::Launcher;

impl Launcher {
    /// Takes what the ptyd sent.
    pub(crate) fn on_ptyd_ready(&mut self) {
        let Some(open) = self.ptyd.as_mut() else { return };
        let taken = edge::take(open);
        let mut end = taken.end;
        for Received { msg, .. } in taken.messages {
            if let Err(violation) = self.on_ptyd(msg) {
                end = Some(ChanError::Violation(violation));
                break;
            }
        }
        if let Some(end) = end {
            edge::note_end("ptyd to launcher", &end);
            self.end_role_for(SessionRole::Ptyd, &end);
        }
    }

    fn on_ptyd(&mut self, message: ToLauncher) -> Result<(), Violation> {
        let ToLauncher::Hello(hello) = message;
        if self.roles.has_greeted(SessionRole::Ptyd) {
            return Err(Violation::State { what: "Hello", state: "up" });
        }
        edge::check_hello(&hello)?;
        if !edge::tell(&mut self.ptyd, &ToPtyd::Hello(edge::hello(self.generation)), &[]) {
            self.end_role(SessionRole::Ptyd);
            return Ok(());
        }
        self.on_role_hello(SessionRole::Ptyd);
        self.give_leaders();
        Ok(())
    }
}
