//! What could keep a kernel from building jails: the system's switches, and a sandbox around this very program.

use super::Check;

#[cfg(target_os = "linux")]
pub(super) fn checks() -> Vec<Check> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    vec![user_namespaces(&read), inherited(&read)]
}

#[cfg(target_os = "macos")]
pub(super) fn checks() -> Vec<Check> {
    vec![Check::warn(
        "user namespaces",
        "macOS has none: sessions run in a Seatbelt profile, which holds less",
        "read docs/security.md before giving an agent more than you would give any program",
    )]
}

/// Switches of the kernel and of distributions that forbid namespaces to ordinary users.
#[cfg(target_os = "linux")]
fn user_namespaces(read: &dyn Fn(&str) -> Option<String>) -> Check {
    const NAME: &str = "user namespaces";
    let number = |path: &str| read(path).and_then(|text| text.trim().parse::<u64>().ok());
    if number("/proc/sys/user/max_user_namespaces") == Some(0) {
        return Check::warn(NAME, "user.max_user_namespaces is 0", "sysctl -w user.max_user_namespaces=15000");
    }
    if number("/proc/sys/kernel/unprivileged_userns_clone") == Some(0) {
        return Check::warn(
            NAME,
            "kernel.unprivileged_userns_clone is 0",
            "sysctl -w kernel.unprivileged_userns_clone=1",
        );
    }
    if number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
        return Check::warn(
            NAME,
            "AppArmor allows them only to programs with a profile that says `userns,`",
            "give shoal-kernel one (docs/operating.md has it), or sessions get a jail without namespaces",
        );
    }
    Check::ok(NAME, "allowed by the system's switches; the jail is tried below")
}

/// A kernel started from here inherits what confines this program.
#[cfg(target_os = "linux")]
fn inherited(read: &dyn Fn(&str) -> Option<String>) -> Check {
    const NAME: &str = "around this program";
    let status = read("/proc/self/status").unwrap_or_default();
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    match field("Seccomp:") {
        Some("2") => Check::warn(
            NAME,
            "a system call filter is in force, and a kernel started from here inherits it",
            "start the kernel by the service manager: shoal setup service",
        ),
        _ => Check::ok(NAME, "no system call filter is inherited"),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::commands::doctor::Level;

    #[test]
    fn every_switch_has_a_remedy() {
        for (path, value, word) in [
            ("/proc/sys/user/max_user_namespaces", "0\n", "max_user_namespaces"),
            ("/proc/sys/kernel/unprivileged_userns_clone", "0", "unprivileged_userns_clone"),
            ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n", "AppArmor"),
        ] {
            let check = user_namespaces(&|asked| (asked == path).then(|| value.to_owned()));
            assert_eq!(check.level, Level::Warn, "{path}");
            assert!(check.detail.contains(word) && check.remedy.is_some(), "{check:?}");
        }
        assert_eq!(user_namespaces(&|_| None).level, Level::Ok);
        assert_eq!(user_namespaces(&|_| Some("1000".to_owned())).level, Level::Ok);
    }

    #[test]
    fn an_inherited_filter_is_told() {
        let around = |text: &'static str| inherited(&move |_| Some(text.to_owned())).level;
        assert_eq!(around("Name:\tx\nSeccomp:\t2\n"), Level::Warn);
        assert_eq!(around("Name:\tx\nSeccomp:\t0\n"), Level::Ok);
    }
}
