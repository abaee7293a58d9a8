//! Programs that lie beside this one, or in the folder of roles.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use crate::fail::Fail;

/// Path of a sibling program.
pub(crate) fn find(name: &str) -> Result<PathBuf, Fail> {
    let own = std::env::current_exe().map_err(|e| Fail::Said(format!("cannot tell where this program lies: {e}")))?;
    // Homebrew and tarballs link programs into other folders; the roles lie beside the real file.
    let own = std::fs::canonicalize(&own).unwrap_or(own);
    let folder = own.parent().map(PathBuf::from).unwrap_or_default();
    [folder.join(name), folder.join("../libexec/shoal").join(name)]
        .into_iter()
        .find(|path| path.exists())
        .ok_or_else(|| Fail::Said(format!("{name} is neither beside {} nor in ../libexec/shoal", own.display())))
}

/// Becomes a sibling program; returns only when that fails.
pub(crate) fn become_program(name: &str, words: &[impl AsRef<OsStr>]) -> Fail {
    match find(name) {
        Ok(path) => {
            let error = Command::new(&path).args(words).exec();
            Fail::Said(format!("cannot run {}: {error}", path.display()))
        }
        Err(fail) => fail,
    }
}
