//! The kernel itself: status and shutdown; policy reloads.

use std::os::fd::OwnedFd;

use serde_json::{Value, json};
use shoal_leash::Sections;
use shoal_proto::hello::HostProcess;
use shoal_proto::supervisor_broker::{Processes, Sections as SectionsMessage, Shutdown, ToSupervisor};
use shoal_wire::params::Empty;
use shoal_wire::params::admin::KernelShutdown;
use shoal_wire::{BUILD, PROTOCOL, params};

use super::Params;
use crate::broker::{Broker, or_refuse};
use crate::clients::{Ask, Attachment};
use crate::policy::claims_json;

/// A compiled policy is at most this long.
pub(crate) const MAX_SECTIONS: usize = 64 * 1024 * 1024;

impl Broker {
    /// `kernel.status`.
    pub(super) fn answer_kernel_status(&mut self, ask: Ask, text: Params<'_>) {
        or_refuse!(self, ask, params::decode::<Empty>(text));
        self.with_processes(move |broker, processes| {
            broker.read(
                |store| Ok((store.usage()?, store.head())),
                move |broker, journal| {
                    let journal = match journal {
                        Ok((usage, head)) => json!({
                            "rows": usage.rows, "head": head, "db_bytes": usage.db_bytes, "wal_bytes": usage.wal_bytes,
                            "cas_bytes": usage.cas_bytes, "writable": broker.journal_fault().is_none(),
                        }),
                        Err(error) => {
                            json!({"rows": null, "head": null, "writable": false, "detail": error.to_string()})
                        }
                    };
                    let body = broker.status_json(processes.as_deref(), journal);
                    broker.reply(ask, Ok(body));
                },
            );
        });
    }

    fn status_json(&self, processes: Option<&Processes>, journal: Value) -> String {
        let claims: Value = serde_json::from_str(&claims_json(self.start.claims)).unwrap_or_default();
        // The file may come and go while the kernel runs.
        let policy = Some(self.start.policy.as_str()).filter(|_| !self.policy.sections.built_in);
        json!({
            "protocol": PROTOCOL, "build": BUILD, "started_ns": self.start.started_ns,
            "uptime_ms": self.now.ns.saturating_sub(self.start.started_ns) / 1_000_000,
            "processes": processes.map(|p| self.process_records(p)).unwrap_or_default(), "journal": journal,
            "connections": self.clients.len(), "sessions": self.sessions.len(),
            "tasks_running": self.tasks.running(), "ptys": self.ptys.len(), "level": self.start.level.as_str(),
            "claims": claims,
            "policy": {"path": policy, "loaded_ns": self.policy.loaded_ns, "rejected": self.policy.rejected},
        })
        .to_string()
    }

    fn process_records(&self, processes: &Processes) -> Vec<Value> {
        let jailed = matches!(self.start.level.as_str(), "L1" | "L2" | "L3" | "L4" | "M2");
        let tier = |jailed: bool| jailed.then_some("A");
        let record = |role: &str, process: &HostProcess, restarts: u32, jailed: bool| {
            json!({"role": role, "pid": process.pid, "state": if self.draining { "draining" } else { "up" },
                "restarts": restarts, "rss_bytes": process.rss, "jail": {"profile": role, "tier": tier(jailed)}})
        };
        let mut records = vec![
            record("supervisor", &processes.supervisor, 0, false),
            record("broker", &processes.broker, self.start.restarts, jailed),
        ];
        for session in processes.sessions.as_slice() {
            let known = self.sessions.of_id(session.session).and_then(|sid| self.sessions.at(sid));
            let state = known.map_or("starting", |known| match known.state() {
                "idle" | "busy" => "up",
                other => other,
            });
            for (role, pid) in [("launcher", session.launcher), ("worker", session.worker), ("ptyd", session.ptyd)] {
                let Some(process) = session.all.as_slice().iter().find(|p| pid > 0 && p.pid == pid) else { continue };
                let restarts = if role == "worker" { session.restarts } else { 0 };
                let mut record = record(role, process, restarts, jailed);
                record["state"] = state.into();
                record["session"] = known.map(|known| known.name.to_string()).into();
                record["owner"] = known.map(|known| known.owner.to_string()).into();
                records.push(record);
            }
        }
        records
    }

    /// `kernel.shutdown`.
    pub(super) fn answer_kernel_shutdown(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<KernelShutdown>(text));
        let grace_ms = u32::try_from(wanted.grace_ms.value()).unwrap_or(10_000);
        let arguments = json!({"grace_ms": grace_ms});
        self.record_admin(&caller.principal.clone(), "kernel.shutdown", arguments, move |broker, written| {
            if let Err(error) = written {
                crate::log::line(format_args!("shutdown row not written: {error}"));
            }
            broker.send_answer(ask, &Ok(r#"{"stopping":true}"#.to_owned()));
            broker.supervisor.send(ToSupervisor::Shutdown(Shutdown { grace_ms }));
        });
    }

    /// The supervisor read the policy again.
    pub(crate) fn on_sections(&mut self, message: &SectionsMessage, fds: Vec<OwnedFd>) {
        let mut rejected = Some(message.rejected.to_string()).filter(|why| !why.is_empty());
        // With a rejection come the sections that stay in force: a broker that is new has none yet.
        match fds.into_iter().next().map(|fd| read_sections(&fd)) {
            Some(Ok(sections)) => self.policy.sections = sections,
            Some(Err(error)) => rejected = rejected.or(Some(error.to_string())),
            None => rejected = rejected.or(Some("no sections came".to_owned())),
        }
        match rejected {
            None => {
                self.policy.loaded_ns = self.now.ns;
                self.policy.rejected = None;
                self.kernel_event("policy_reloaded", None, None);
                self.note_kernel("policy_reloaded", None);
            }
            Some(why) => {
                self.kernel_event("policy_rejected", None, Some(&why));
                self.note_kernel("policy_rejected", Some(&why));
                self.policy.rejected = Some(why);
            }
        }
    }
}

/// Compiled sections from their sealed memfd.
pub(crate) fn read_sections(fd: &OwnedFd) -> std::io::Result<Sections> {
    let bytes = shoal_sys::memfd::read_sealed(fd, MAX_SECTIONS)?;
    Sections::decode(&bytes).map_err(|violation| std::io::Error::other(violation.to_string()))
}
