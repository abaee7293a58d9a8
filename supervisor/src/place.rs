//! Where things are: socket, state directory, configuration. Pure but for the look at directories that is handed in.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::options::{Options, Vars};

/// `sun_path` has 108 bytes on Linux and 104 on macOS, each with a NUL: what fits both.
const SOCKET_PATH_BYTES: usize = 103;
/// Bytes of a session name.
const NAME_BYTES: usize = 64;

/// Owner and mode of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Directory {
    pub(crate) uid: u32,
    pub(crate) mode: u32,
}

/// Why a place cannot be used: what, where, what would do.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PlaceError {
    #[error(
        "session name {0:?} is not usable: 1 to 64 bytes without '/', control or bidirectional characters, not starting with '.'"
    )]
    Name(String),
    #[error("the socket path {} has {bytes} bytes, at most {SOCKET_PATH_BYTES} fit; name a shorter one with --socket or set a shorter XDG_RUNTIME_DIR", path.display())]
    TooLong { path: PathBuf, bytes: usize },
    #[error("{} belongs to another user; set XDG_RUNTIME_DIR or TMPDIR to a directory of your own", .0.display())]
    Foreign(PathBuf),
    #[error("no home directory: set HOME, or name the state directory with --state-dir")]
    NoHome,
}

/// The view of the system that decides where things are.
pub(crate) struct Places<'a> {
    pub(crate) vars: &'a Vars,
    pub(crate) home: Option<PathBuf>,
    pub(crate) euid: u32,
    pub(crate) look: &'a dyn Fn(&Path) -> Option<Directory>,
}

impl Places<'_> {
    /// The public socket.
    pub(crate) fn socket(&self, options: &Options) -> Result<PathBuf, PlaceError> {
        check_name(&options.session)?;
        if let Some(path) = &options.socket {
            return fits(absolute(path));
        }
        let mut refused = PathBuf::new();
        for base in self.bases() {
            let dir = base.join("shoal");
            match [&base, &dir].into_iter().find(|dir| self.is_foreign(dir)) {
                Some(foreign) => refused.clone_from(foreign),
                None => return socket_in(&dir, &options.session),
            }
        }
        Err(PlaceError::Foreign(refused))
    }

    fn bases(&self) -> Vec<PathBuf> {
        let own = format!("shoal-{}", self.euid);
        let runtime = self.vars.path("XDG_RUNTIME_DIR").or_else(|| {
            // Started with a stripped environment the directory is there all the same.
            let usual = PathBuf::from(format!("/run/user/{}", self.euid));
            (self.look)(&usual).filter(|dir| dir.uid == self.euid && dir.mode == 0o700).map(|_| usual)
        });
        let temporary = self.vars.path("TMPDIR").map(|dir| dir.join(&own));
        runtime.into_iter().chain(temporary).chain([Path::new("/tmp").join(&own)]).collect()
    }

    fn is_foreign(&self, dir: &Path) -> bool {
        (self.look)(dir).is_some_and(|dir| dir.uid != self.euid)
    }

    /// The state directory of a kernel that is not ephemeral.
    pub(crate) fn state(&self, options: &Options) -> Result<PathBuf, PlaceError> {
        let named = options.state_dir.as_deref().map(absolute);
        let usual = || self.in_home("XDG_STATE_HOME", ".local/state");
        named.or_else(usual).ok_or(PlaceError::NoHome)
    }

    /// The configuration directory; `None` without a home.
    pub(crate) fn config(&self, options: &Options) -> Option<PathBuf> {
        options.config.as_deref().map(absolute).or_else(|| self.in_home("XDG_CONFIG_HOME", ".config"))
    }

    fn in_home(&self, variable: &str, usual: &str) -> Option<PathBuf> {
        let base = self.vars.path(variable).or_else(|| self.home.as_ref().map(|home| home.join(usual)))?;
        Some(base.join("shoal"))
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_empty| path.to_owned())
}

fn check_name(name: &str) -> Result<(), PlaceError> {
    let bad = |c: char| {
        c == '/'
            || c.is_control()
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if name.is_empty() || name.len() > NAME_BYTES || name.starts_with('.') || name.chars().any(bad) {
        return Err(PlaceError::Name(name.to_owned()));
    }
    Ok(())
}

fn socket_in(dir: &Path, session: &str) -> Result<PathBuf, PlaceError> {
    let path = dir.join(format!("{session}.sock"));
    if path.as_os_str().len() <= SOCKET_PATH_BYTES {
        return Ok(path);
    }
    let hash = blake3::hash(session.as_bytes()).to_hex();
    let short = hash.get(..16).unwrap_or_default();
    fits(dir.join(format!("{short}.sock")))
}

fn fits(path: PathBuf) -> Result<PathBuf, PlaceError> {
    let bytes = path.as_os_str().as_bytes().len();
    if bytes > SOCKET_PATH_BYTES { Err(PlaceError::TooLong { path, bytes }) } else { Ok(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(vars: &Vars, session: &str, dirs: &[(&str, u32, u32)]) -> Result<String, PlaceError> {
        let look = |path: &Path| {
            let found = dirs.iter().find(|(dir, _, _)| Path::new(dir) == path);
            found.map(|&(_, uid, mode)| Directory { uid, mode })
        };
        let places = Places { vars, home: None, euid: 7, look: &look };
        let options = Options { session: session.to_owned(), ..Options::default() };
        places.socket(&options).map(|path| path.display().to_string())
    }

    #[test]
    fn sockets_in_order() {
        let both = Vars::from([("XDG_RUNTIME_DIR", "/run/me"), ("TMPDIR", "/var/tmp")]);
        assert_eq!(socket(&both, "default", &[]).unwrap(), "/run/me/shoal/default.sock");
        assert_eq!(socket(&both, "a", &[("/run/me/shoal", 0, 0o700)]).unwrap(), "/var/tmp/shoal-7/shoal/a.sock");
        let none = Vars::default();
        assert_eq!(socket(&none, "a", &[("/run/user/7", 7, 0o700)]).unwrap(), "/run/user/7/shoal/a.sock");
        assert_eq!(socket(&none, "a", &[("/run/user/7", 7, 0o755)]).unwrap(), "/tmp/shoal-7/shoal/a.sock");
        assert_eq!(socket(&none, "a", &[("/tmp/shoal-7", 0, 0o700)]), Err(PlaceError::Foreign("/tmp/shoal-7".into())));
    }

    #[test]
    fn a_long_directory_shortens_the_name_and_a_longer_one_is_refused() {
        let long = Vars::from([("XDG_RUNTIME_DIR", format!("/{}", "d".repeat(70)).as_str())]);
        let path = socket(&long, &"s".repeat(40), &[]).unwrap();
        assert_eq!(path.len(), 71 + "/shoal/".len() + 16 + ".sock".len());
        let longer = Vars::from([("XDG_RUNTIME_DIR", format!("/{}", "d".repeat(120)).as_str())]);
        let error = socket(&longer, "default", &[]).unwrap_err().to_string();
        assert!(error.contains("has 149 bytes, at most 103 fit"), "{error}");
        assert!(!error.contains('\n'));
    }

    #[test]
    fn names() {
        for bad in ["", ".", ".x", "a/b", "a\nb", "a\u{202e}b", "é".repeat(33).as_str()] {
            assert_eq!(socket(&Vars::default(), bad, &[]), Err(PlaceError::Name(bad.to_owned())), "{bad:?}");
        }
        assert!(socket(&Vars::default(), "größe 1", &[]).is_ok());
    }

    #[test]
    fn state_and_configuration() {
        let look = |_: &Path| None;
        let vars = Vars::from([("XDG_CONFIG_HOME", "/c")]);
        let places = Places { vars: &vars, home: Some("/home/me".into()), euid: 7, look: &look };
        let plain = Options::default();
        assert_eq!(places.state(&plain).unwrap(), Path::new("/home/me/.local/state/shoal"));
        assert_eq!(places.config(&plain).unwrap(), Path::new("/c/shoal"));
        let named = Options { state_dir: Some("/s".into()), config: Some("/d".into()), ..Options::default() };
        assert_eq!(places.state(&named).unwrap(), Path::new("/s"));
        assert_eq!(places.config(&named).unwrap(), Path::new("/d"));
        let homeless = Places { home: None, vars: &Vars::default(), ..places };
        assert_eq!(homeless.state(&plain), Err(PlaceError::NoHome));
        assert_eq!(homeless.config(&plain), None);
    }
}
