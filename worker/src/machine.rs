//! Facts about the machine for `os.*`.

use shoal_eval::host::System;
use shoal_value::Str;

/// Reads the facts; `user` is the name the session's environment has for its user.
pub(crate) fn facts(user: Option<Str>) -> System {
    let name = rustix::system::uname();
    let cpus = std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX));
    System {
        platform: if cfg!(target_os = "macos") { "macos" } else { std::env::consts::OS },
        arch: std::env::consts::ARCH,
        pid: std::process::id(),
        hostname: name.nodename().to_string_lossy().into(),
        username: user.unwrap_or_else(|| rustix::process::geteuid().as_raw().to_string().into()),
        cpus,
        uptime_ns: uptime(),
    }
}

#[cfg(target_os = "linux")]
fn uptime() -> Option<i64> {
    let uptime = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    uptime.tv_sec.checked_mul(1_000_000_000)?.checked_add(uptime.tv_nsec)
}

#[cfg(not(target_os = "linux"))]
fn uptime() -> Option<i64> {
    None
}
