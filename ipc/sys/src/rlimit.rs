//! Resource limits.

use std::io;

/// A resource with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Bytes of address space.
    AddressSpace,
    /// Bytes of a core file.
    Core,
    /// Seconds of CPU.
    Cpu,
    /// Bytes of a file.
    FileSize,
    /// Bytes of locked memory.
    LockedMemory,
    /// Descriptor numbers.
    OpenFiles,
    /// Processes of the user (in the user namespace).
    Processes,
    /// Bytes in message queues (Linux).
    MessageQueues,
    /// Queued signals (Linux).
    PendingSignals,
    /// Microseconds a real-time process may run without waiting (Linux).
    RealTime,
}

/// What the resource argument is on this system.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) type Raw = libc::__rlimit_resource_t;
/// What the resource argument is on this system.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) type Raw = libc::c_int;

impl Limit {
    pub(crate) const fn raw(self) -> Raw {
        match self {
            Self::AddressSpace => libc::RLIMIT_AS,
            Self::Core => libc::RLIMIT_CORE,
            Self::Cpu => libc::RLIMIT_CPU,
            Self::FileSize => libc::RLIMIT_FSIZE,
            Self::LockedMemory => libc::RLIMIT_MEMLOCK,
            Self::OpenFiles => libc::RLIMIT_NOFILE,
            Self::Processes => libc::RLIMIT_NPROC,
            #[cfg(target_os = "linux")]
            Self::MessageQueues => libc::RLIMIT_MSGQUEUE,
            #[cfg(target_os = "linux")]
            Self::PendingSignals => libc::RLIMIT_SIGPENDING,
            #[cfg(target_os = "linux")]
            Self::RealTime => libc::RLIMIT_RTTIME,
            // No such limits there: a core limit of 0 is set anyway, so naming it again changes nothing.
            #[cfg(not(target_os = "linux"))]
            Self::MessageQueues | Self::PendingSignals | Self::RealTime => libc::RLIMIT_CORE,
        }
    }
}

/// The soft and the hard limit of this process.
pub fn limits(limit: Limit) -> io::Result<(u64, u64)> {
    let mut pair = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `pair` is a live rlimit that the call writes.
    let result = unsafe { libc::getrlimit(limit.raw(), &raw mut pair) };
    if result == 0 { Ok((pair.rlim_cur, pair.rlim_max)) } else { Err(io::Error::last_os_error()) }
}

/// Sets the soft and the hard limit of this process.
pub fn set_limits(limit: Limit, soft: u64, hard: u64) -> io::Result<()> {
    let pair = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: `pair` is a live rlimit that the call reads.
    let result = unsafe { libc::setrlimit(limit.raw(), &raw const pair) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lowers soft and hard limit to `value`, or to the hard limit that is in force when that is lower already.
pub fn lower(limit: Limit, value: u64) -> io::Result<()> {
    let (_soft, hard) = limits(limit)?;
    let value = value.min(hard);
    set_limits(limit, value, value)
}

/// Raises the soft limit to the hard one.
pub fn raise_to_hard(limit: Limit) -> io::Result<()> {
    let (_soft, hard) = limits(limit)?;
    set_limits(limit, hard, hard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_lowered_once_and_never_raised() {
        lower(Limit::OpenFiles, 200).unwrap();
        assert_eq!(limits(Limit::OpenFiles).unwrap(), (200, 200));
        lower(Limit::OpenFiles, 300).unwrap();
        assert_eq!(limits(Limit::OpenFiles).unwrap(), (200, 200));
    }

    #[test]
    fn the_soft_limit_follows_the_hard_one() {
        let (_soft, hard) = limits(Limit::Core).unwrap();
        set_limits(Limit::Core, 0, hard).unwrap();
        raise_to_hard(Limit::Core).unwrap();
        assert_eq!(limits(Limit::Core).unwrap(), (hard, hard));
    }
}
