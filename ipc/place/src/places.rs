//! The search order.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::{NAME_RULE, Vars, is_session_name};

/// Longest path of a socket: `sun_path` holds 104 bytes on macOS and 108 on Linux, its NUL included.
const SOCKET_PATH_BYTES: usize = 103;

/// Why a place cannot be used: what, where, what would do.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// The session name cannot name a socket.
    #[error("`{}` is no session name: {NAME_RULE}", .0.escape_debug())]
    Name(String),
    /// The path does not fit a socket address even with a short file name.
    #[error("the socket path {} has {bytes} bytes, at most {SOCKET_PATH_BYTES} fit; name a shorter one with --socket or set a shorter XDG_RUNTIME_DIR", path.display())]
    TooLong {
        /// The path.
        path: PathBuf,
        /// Its length.
        bytes: usize,
    },
    /// Every directory belongs to somebody else; this is the last.
    #[error("{} belongs to another user; set XDG_RUNTIME_DIR or TMPDIR to a directory of your own", .0.display())]
    Foreign(PathBuf),
    /// There is no home directory to keep state in.
    #[error("no home directory: set HOME, or name the state directory with --state-dir")]
    NoHome,
}

/// What is known of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directory {
    /// Owner.
    pub uid: u32,
    /// Permission bits.
    pub mode: u32,
}

/// Variables, user and file system as far as finding paths depends on them.
pub struct Places<'a> {
    /// Environment variables.
    pub vars: &'a Vars,
    /// Effective uid.
    pub euid: u32,
    /// Home directory of the user.
    pub home: Option<PathBuf>,
    /// Looks at a directory; `None` when there is none.
    pub look: &'a dyn Fn(&Path) -> Option<Directory>,
}

impl Directory {
    /// [`Places::look`] on the real file system.
    pub fn look(path: &Path) -> Option<Directory> {
        let meta = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_dir)?;
        Some(Directory { uid: meta.uid(), mode: meta.mode() & 0o7777 })
    }
}

/// The home directory of a user: `HOME`, else what the user database says. Root does not take somebody else's `HOME`, which
/// `sudo` may have left there: files of root's in it would lock its owner out.
pub fn home(
    vars: &Vars,
    euid: u32,
    look: &dyn Fn(&Path) -> Option<Directory>,
    database: impl FnOnce() -> Option<PathBuf>,
) -> Option<PathBuf> {
    let is_anothers = |home: &PathBuf| euid == 0 && look(home).is_some_and(|dir| dir.uid != 0);
    vars.path("HOME").filter(|home| !is_anothers(home)).or_else(database)
}

impl Places<'_> {
    /// The socket of a kernel that no path was named for.
    pub fn socket(&self, session: &str) -> Result<PathBuf, PlaceError> {
        let mut refused = PathBuf::new();
        for base in self.bases() {
            let dir = base.join("shoal");
            match [&base, &dir].into_iter().find(|dir| self.is_foreign(dir)) {
                Some(foreign) => refused.clone_from(foreign),
                None => return socket_in(&dir, session),
            }
        }
        Err(PlaceError::Foreign(refused))
    }

    fn bases(&self) -> Vec<PathBuf> {
        let own = format!("shoal-{}", self.euid);
        let runtime = self.vars.path("XDG_RUNTIME_DIR").or_else(|| {
            // MCP hosts start servers with a stripped environment; the directory is there all the same.
            let usual = PathBuf::from(format!("/run/user/{}", self.euid));
            (self.look)(&usual).filter(|dir| dir.uid == self.euid && dir.mode == 0o700).map(|_| usual)
        });
        let temporary = self.vars.path("TMPDIR").map(|dir| dir.join(&own));
        runtime.into_iter().chain(temporary).chain([Path::new("/tmp").join(&own)]).collect()
    }

    fn is_foreign(&self, dir: &Path) -> bool {
        (self.look)(dir).is_some_and(|dir| dir.uid != self.euid)
    }

    /// The state directory.
    pub fn state(&self) -> Result<PathBuf, PlaceError> {
        self.in_home("XDG_STATE_HOME", ".local/state").ok_or(PlaceError::NoHome)
    }

    /// The configuration directory; `None` without a home.
    pub fn config(&self) -> Option<PathBuf> {
        self.in_home("XDG_CONFIG_HOME", ".config")
    }

    fn in_home(&self, variable: &str, usual: &str) -> Option<PathBuf> {
        let base = self.vars.path(variable).or_else(|| self.home.as_ref().map(|home| home.join(usual)))?;
        Some(base.join("shoal"))
    }
}

fn socket_in(dir: &Path, session: &str) -> Result<PathBuf, PlaceError> {
    if !is_session_name(session) {
        return Err(PlaceError::Name(session.to_owned()));
    }
    let path = dir.join(format!("{session}.sock"));
    if path.as_os_str().len() <= SOCKET_PATH_BYTES {
        return Ok(path);
    }
    let hash = blake3::hash(session.as_bytes()).to_hex();
    fits(dir.join(format!("{}.sock", &hash[..16])))
}

/// Checks that a path fits a socket address.
pub fn fits(path: PathBuf) -> Result<PathBuf, PlaceError> {
    let bytes = path.as_os_str().as_bytes().len();
    if bytes > SOCKET_PATH_BYTES { Err(PlaceError::TooLong { path, bytes }) } else { Ok(path) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn root_keeps_out_of_other_homes() {
        let vars = Vars::from_pairs(&[("HOME", "/home/me")]);
        let look = |path: &Path| (path == Path::new("/home/me")).then_some(Directory { uid: 7, mode: 0o755 });
        let database = || Some(PathBuf::from("/root"));
        assert_eq!(home(&vars, 0, &look, database), Some("/root".into()));
        assert_eq!(home(&vars, 7, &look, database), Some("/home/me".into()));
        assert_eq!(home(&vars, 8, &look, database), Some("/home/me".into()));
        assert_eq!(home(&Vars::from_pairs(&[]), 7, &look, || None), None);
    }

    struct World {
        vars: Vars,
        dirs: HashMap<PathBuf, Directory>,
    }

    impl World {
        fn new(vars: &[(&str, &str)], dirs: &[(&str, u32, u32)]) -> World {
            let dirs = dirs.iter().map(|(path, uid, mode)| (path.into(), Directory { uid: *uid, mode: *mode }));
            World { vars: Vars::from_pairs(vars), dirs: dirs.collect() }
        }

        fn socket(&self, session: &str) -> Result<String, PlaceError> {
            let look = |path: &Path| self.dirs.get(path).copied();
            let places = Places { vars: &self.vars, euid: 7, home: Some("/home/me".into()), look: &look };
            places.socket(session).map(|path| path.display().to_string())
        }
    }

    #[test]
    fn sockets_in_order() {
        let runtime = World::new(&[("XDG_RUNTIME_DIR", "/run/me"), ("TMPDIR", "/var/tmp")], &[]);
        assert_eq!(runtime.socket("default").unwrap(), "/run/me/shoal/default.sock");
        let usual = World::new(&[("XDG_RUNTIME_DIR", "")], &[("/run/user/7", 7, 0o700)]);
        assert_eq!(usual.socket("x").unwrap(), "/run/user/7/shoal/x.sock");
        let open = World::new(&[], &[("/run/user/7", 7, 0o755)]);
        assert_eq!(open.socket("x").unwrap(), "/tmp/shoal-7/shoal/x.sock");
        let temporary = World::new(&[("TMPDIR", "/var/tmp")], &[]);
        assert_eq!(temporary.socket("x").unwrap(), "/var/tmp/shoal-7/shoal/x.sock");
    }

    #[test]
    fn foreign_directories_are_skipped() {
        let world = World::new(&[("XDG_RUNTIME_DIR", "/run/me")], &[("/run/me/shoal", 8, 0o700)]);
        assert_eq!(world.socket("x").unwrap(), "/tmp/shoal-7/shoal/x.sock");
        let none = World::new(&[], &[("/tmp/shoal-7", 8, 0o700)]);
        assert_eq!(none.socket("x"), Err(PlaceError::Foreign("/tmp/shoal-7".into())));
    }

    #[test]
    fn long_names_are_hashed_and_long_directories_refused() {
        let world = World::new(&[("XDG_RUNTIME_DIR", "/run/me")], &[]);
        let name = "n".repeat(64);
        assert!(world.socket(&name).unwrap().ends_with(&format!("{name}.sock")));
        let deep = format!("/{}", "d".repeat(60));
        let world = World::new(&[("XDG_RUNTIME_DIR", &deep)], &[]);
        let path = world.socket(&name).unwrap();
        assert_eq!(path.len(), deep.len() + "/shoal/".len() + 16 + ".sock".len());
        let deeper = format!("/{}", "d".repeat(120));
        let world = World::new(&[("XDG_RUNTIME_DIR", &deeper)], &[]);
        assert!(matches!(world.socket("x"), Err(PlaceError::TooLong { bytes: 149, .. })));
        assert_eq!(world.socket("a/b"), Err(PlaceError::Name("a/b".into())));
    }

    #[test]
    fn state_and_configuration() {
        let look = |_: &Path| None;
        let vars = Vars::from_pairs(&[("XDG_CONFIG_HOME", "/c")]);
        let places = Places { vars: &vars, home: Some("/home/me".into()), euid: 7, look: &look };
        assert_eq!(places.state().unwrap(), Path::new("/home/me/.local/state/shoal"));
        assert_eq!(places.config().unwrap(), Path::new("/c/shoal"));
        let homeless = Places { home: None, vars: &Vars::default(), ..places };
        assert_eq!(homeless.state(), Err(PlaceError::NoHome));
        assert_eq!(homeless.config(), None);
    }
}
