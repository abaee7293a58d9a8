//! Which limit ended a program, where that can be known.
//!
//! Known is what the kernel of the machine says by a signal of its own. A program that is refused memory or a process is
//! told so by an error and ends as it likes; nobody can tell from outside why it did.

use std::time::Duration;

use shoal_proto::hello::ExitStatus;
use shoal_proto::launcher_worker::Limit;

use crate::launcher::Launcher;

/// The limit of CPU time is met by time counted in ticks of the kernel's clock, which runs ahead of what a program is told
/// it used by about this much.
const TICK: Duration = Duration::from_millis(250);

impl Launcher {
    /// The limit that ended a program which used so much CPU time, and at whose start the session's memory limit had ended
    /// so many.
    pub(crate) fn limit_of(&self, status: ExitStatus, cpu: Duration, memory_kills: u64) -> Option<Limit> {
        limit_of(status, cpu, self.cpu_limit())
            .or_else(|| self.is_memory_limited(status, memory_kills).then_some(Limit::Memory))
    }

    /// Whether the machine's kernel ended a program because its session had used up its memory: it sends SIGKILL, and counts.
    fn is_memory_limited(&self, status: ExitStatus, kills_before: u64) -> bool {
        status.signal.map(i32::from) == Some(libc::SIGKILL)
            && self.memory.as_ref().is_some_and(|memory| memory.kills() > kills_before)
    }
}

/// `cpu_limit` is in seconds. At it the kernel sends SIGKILL, where soft and hard limit are one.
fn limit_of(status: ExitStatus, cpu: Duration, cpu_limit: Option<u64>) -> Option<Limit> {
    let is_spent = |limit: u64| cpu + TICK >= Duration::from_secs(limit);
    match status.signal.map(i32::from)? {
        libc::SIGXCPU => Some(Limit::CpuSeconds),
        libc::SIGXFSZ => Some(Limit::FileSize),
        libc::SIGKILL if cpu_limit.is_some_and(is_spent) => Some(Limit::CpuSeconds),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended_by(signal: i32, cpu_ms: u64, limit: Option<u64>) -> Option<Limit> {
        let status = ExitStatus { code: None, signal: Some(u8::try_from(signal).expect("small")) };
        limit_of(status, Duration::from_millis(cpu_ms), limit)
    }

    #[test]
    fn signals_of_limits_name_them() {
        assert_eq!(ended_by(libc::SIGXCPU, 0, None), Some(Limit::CpuSeconds));
        assert_eq!(ended_by(libc::SIGXFSZ, 0, None), Some(Limit::FileSize));
        assert_eq!(ended_by(libc::SIGSEGV, 9_000, Some(1)), None);
        assert_eq!(limit_of(ExitStatus { code: Some(1), signal: None }, Duration::from_secs(9), Some(1)), None);
    }

    #[test]
    fn a_kill_is_the_limit_of_time_only_when_the_time_is_spent() {
        assert_eq!(ended_by(libc::SIGKILL, 990, Some(1)), Some(Limit::CpuSeconds));
        assert_eq!(ended_by(libc::SIGKILL, 500, Some(1)), None, "somebody else killed it");
        assert_eq!(ended_by(libc::SIGKILL, 9_000, None), None);
    }
}
