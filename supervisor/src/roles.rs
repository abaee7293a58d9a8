//! The executables of the roles: found and opened once at start, executed by descriptor ever after, so that nothing
//! that happens to the files later reaches a running kernel.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use shoal_sys::spawn::{Command, Program};

use crate::fault::StartError;

/// Executables of all roles that this process or its launchers start.
#[derive(Debug)]
pub(crate) struct Roles {
    pub(crate) broker: OwnedFd,
    pub(crate) policy: OwnedFd,
    pub(crate) launcher: OwnedFd,
    pub(crate) worker: OwnedFd,
    pub(crate) ptyd: OwnedFd,
    /// Where they were found: protected in every jail.
    pub(crate) dir: PathBuf,
}

impl Roles {
    /// Looks beside `executable`, then in `../libexec/shoal` from there; all roles come from one directory.
    pub(crate) fn find(executable: &Path) -> Result<Self, StartError> {
        let beside = executable.parent().unwrap_or(Path::new("/"));
        let dirs = [beside.to_owned(), beside.join("../libexec/shoal")];
        let has_broker = |dir: &&PathBuf| dir.join("shoal-broker").exists();
        let Some(dir) = dirs.iter().find(has_broker) else {
            let [beside, libexec] = dirs.each_ref().map(|dir| dir.display());
            return Err(StartError::Failed(format!(
                "shoal-broker is neither in {beside} nor in {libexec}; install it there"
            )));
        };
        let open = |name: &str| {
            let path = dir.join(name);
            shoal_sys::fd::open_program(&path).map_err(|e| {
                StartError::Failed(format!("cannot open the role {}: {e}; install it there", path.display()))
            })
        };
        Ok(Self {
            broker: open("shoal-broker")?,
            policy: open("shoal-policy")?,
            launcher: open("shoal-launcher")?,
            worker: open("shoal-worker")?,
            ptyd: open("shoal-ptyd")?,
            dir: std::fs::canonicalize(dir).unwrap_or_else(|_gone| dir.clone()),
        })
    }
}

/// The command of a role: standard descriptors on `/dev/null` but for `stderr`, then `fds` from 3 on, no environment.
pub(crate) fn command<'a>(
    program: &'a OwnedFd,
    words: Vec<CString>,
    null: &'a OwnedFd,
    stderr: BorrowedFd<'a>,
    fds: &[BorrowedFd<'a>],
) -> Command<'a> {
    let all = [null.as_fd(), null.as_fd(), stderr].into_iter().chain(fds.iter().copied()).collect();
    Command::new(Program::Fd(program.as_fd()), words).fds(all)
}

/// A word of a role's command line; what is after a NUL is dropped, which no caller's text has.
pub(crate) fn word(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().take_while(|&b| b != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_role_is_named() {
        let dir = std::env::temp_dir().join(format!("shoal-roles-{}", std::process::id()));
        let bin = dir.join("bin");
        std::fs::create_dir_all(dir.join("libexec/shoal")).unwrap();
        std::fs::create_dir_all(&bin).unwrap();
        let error = Roles::find(&bin.join("shoal-kernel")).unwrap_err().to_string();
        assert!(error.contains("neither in"), "{error}");
        for name in ["broker", "policy", "launcher", "worker"] {
            std::fs::copy("/bin/true", dir.join(format!("libexec/shoal/shoal-{name}"))).unwrap();
        }
        let error = Roles::find(&bin.join("shoal-kernel")).unwrap_err().to_string();
        assert!(error.contains("shoal-ptyd"), "{error}");
        std::fs::copy("/bin/true", dir.join("libexec/shoal/shoal-ptyd")).unwrap();
        let roles = Roles::find(&bin.join("shoal-kernel")).unwrap();
        assert!(roles.dir.ends_with("libexec/shoal"));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
