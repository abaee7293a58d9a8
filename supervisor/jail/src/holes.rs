//! Places of the host that no session sees: control sockets of services that would act for it outside.

use std::path::{Path, PathBuf};

/// Directories of control sockets.
const DIRS: &[&str] = &[
    "/run/user",
    "/run/docker",
    "/run/podman",
    "/run/containerd",
    "/run/crio",
    "/run/libvirt",
    "/run/lxd",
    "/run/incus",
    "/run/screen",
    "/run/tmux",
    "/run/systemd/io.system",
    "/run/systemd/machine",
    "/run/systemd/userdb",
    "/run/gssproxy",
    "/run/sssd",
    "/var/lib/lxd",
    "/var/lib/incus",
    "/var/snap/lxd/common/lxd",
];

/// Single control sockets in directories that hold other things too.
const FILES: &[&str] = &[
    "/run/docker.sock",
    "/run/containerd.sock",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
    "/run/systemd/notify",
    "/run/systemd/journal/socket",
    "/run/systemd/journal/dev-log",
    "/run/systemd/journal/stdout",
    "/run/systemd/journal/syslog",
    "/run/systemd/journal/io.systemd.journal",
    "/run/udev/control",
    "/run/acpid.socket",
    "/run/snapd.socket",
    "/run/snapd-snap.socket",
    "/run/rpcbind.sock",
    "/run/pcscd/pcscd.comm",
    "/run/utmp",
];

/// Directories below the home that hold sockets of a person's programs.
const HOME_DIRS: &[&str] =
    &[".emacs.d/server", ".tmux", ".screen", ".docker/run", ".colima", ".lima", ".orbstack/run", ".ssh/agent"];

/// Single control sockets below the home.
const HOME_FILES: &[&str] = &[
    ".gnupg/S.gpg-agent",
    ".gnupg/S.gpg-agent.extra",
    ".gnupg/S.gpg-agent.ssh",
    ".gnupg/S.keyboxd",
    ".gnupg/S.scdaemon",
];

/// What programs name the directories of their control sockets in `/tmp`, as far as it is the same everywhere.
const TMP_NAMES: &[&str] = &[
    "tmux-",
    "ssh-",
    "screens",
    "uscreens",
    ".X11-unix",
    ".ICE-unix",
    "dbus-",
    "emacs",
    "keyring-",
    "podman-run-",
    "containers-user-",
];

/// Whether a directory that was named, and not granted, is shown in a session's private `/tmp`: one below the host's, and
/// not where programs have their control sockets, which could be used as soon as they are seen.
pub(crate) fn may_come_along(dir: &Path) -> bool {
    let below = dir.strip_prefix("/tmp").ok().and_then(|below| below.components().next());
    let first = below.and_then(|first| first.as_os_str().to_str());
    first.is_some_and(|first| !TMP_NAMES.iter().any(|name| first.starts_with(name)))
}

/// The directories of this host that are hidden, without symbolic links.
pub(crate) fn dirs(home: Option<&Path>, runtime: Option<&Path>) -> Vec<PathBuf> {
    let in_home = home.into_iter().flat_map(|home| HOME_DIRS.iter().map(|name| home.join(name)));
    let all = DIRS.iter().map(PathBuf::from).chain(in_home).chain(runtime.map(Path::to_owned));
    let mut found: Vec<PathBuf> =
        all.filter_map(|path| std::fs::canonicalize(path).ok()).filter(|p| p.is_dir()).collect();
    found.sort();
    found.dedup();
    // What lies below another hole is hidden with it.
    let below = |path: &PathBuf, all: &[PathBuf]| all.iter().any(|other| other != path && path.starts_with(other));
    found.iter().filter(|path| !below(path, &found)).cloned().collect()
}

/// The single files of this host that are covered.
pub(crate) fn files(home: Option<&Path>, hidden: &[PathBuf]) -> Vec<PathBuf> {
    let in_home = home.into_iter().flat_map(|home| HOME_FILES.iter().map(|name| home.join(name)));
    let all = FILES.iter().map(PathBuf::from).chain(in_home).filter_map(|path| std::fs::canonicalize(path).ok());
    let mut found: Vec<PathBuf> =
        all.filter(|path| !path.is_dir() && !hidden.iter().any(|dir| path.starts_with(dir))).collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_in_tmp_do_not_come_along() {
        for (dir, comes) in [
            ("/tmp/work/sub", true),
            ("/tmp/tmux-1000", false),
            ("/tmp/ssh-XyZ/deep", false),
            ("/tmp", false),
            ("/srv/tmp/x", false),
        ] {
            assert_eq!(may_come_along(Path::new(dir)), comes, "{dir}");
        }
    }

    #[test]
    fn what_is_below_another_hole_is_left_out() {
        let home = std::env::temp_dir().join(format!("shoal-holes-{}", std::process::id()));
        std::fs::create_dir_all(home.join(".emacs.d/server")).unwrap();
        let home = std::fs::canonicalize(home).unwrap();
        let found = dirs(Some(&home), None);
        assert!(found.contains(&home.join(".emacs.d/server")));
        assert!(!found.contains(&home.join(".tmux")), "only what is there");
        std::fs::create_dir_all(home.join(".gnupg")).unwrap();
        std::fs::write(home.join(".gnupg/S.gpg-agent"), "").unwrap();
        assert_eq!(files(Some(&home), &[]).last(), Some(&home.join(".gnupg/S.gpg-agent")));
        assert!(!files(Some(&home), &[home.join(".gnupg")]).iter().any(|path| path.starts_with(&home)));
        let found = dirs(Some(&home), Some(&home));
        assert!(found.contains(&home) && !found.contains(&home.join(".emacs.d/server")));
        std::fs::remove_dir_all(home).unwrap();
    }
}
