//! Where the kernel is, who asks, and how long to try.

use std::path::PathBuf;
use std::time::Duration;

use shoal_place::{Directory, PlaceError, Places, Vars, fits};

/// What the command line says; it overrides the environment.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--socket`.
    pub socket: Option<PathBuf>,
    /// `--session`.
    pub session: Option<String>,
    /// `--token`.
    pub token: Option<String>,
    /// `--state-dir`.
    pub state_dir: Option<PathBuf>,
    /// `--policy`.
    pub policy: Option<PathBuf>,
}

/// A resolved configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Socket to connect to.
    pub socket: PathBuf,
    /// Whether the socket was named, and not found.
    pub socket_is_explicit: bool,
    /// Session to attach to.
    pub session: String,
    /// Bearer.
    pub token: Option<String>,
    /// State directory, whose lock names a running kernel's socket.
    pub state_dir: Option<PathBuf>,
    /// Whether the state directory was named, and not found; then it is forwarded to a kernel we start.
    pub state_dir_is_explicit: bool,
    /// Configuration directory; none without a home.
    pub config_dir: Option<PathBuf>,
    /// Policy file forwarded to a kernel we start.
    pub policy: Option<PathBuf>,
    /// Whether a kernel is started when none runs.
    pub autostart: bool,
    /// How long connecting and attaching may take, start and restarts of the kernel included.
    pub deadline: Duration,
    /// Where units of the service manager may be installed, most specific first.
    pub unit_dirs: Vec<PathBuf>,
    /// Directories programs are looked up in after our own.
    pub program_dirs: Vec<PathBuf>,
}

/// The longest a kernel may take to start, and a little for the attach behind it.
const DEADLINE: Duration = Duration::from_secs(15);

impl Config {
    /// Resolves flags over variables over what is found.
    pub fn resolve(flags: Flags, vars: &Vars) -> Result<Config, PlaceError> {
        let euid = rustix::process::geteuid().as_raw();
        let home = shoal_place::home(vars, euid, &Directory::look, || shoal_sys::user::home(euid));
        let places = Places { vars, euid, home, look: &Directory::look };
        let session = flags.session.or_else(|| vars.text("SHOAL_SESSION")).unwrap_or_else(|| "default".to_owned());
        let named = flags.socket.or_else(|| vars.path("SHOAL_SOCKET"));
        let state_dir = flags.state_dir.or_else(|| vars.path("SHOAL_STATE_DIR"));
        Ok(Config {
            socket_is_explicit: named.is_some(),
            socket: match named {
                Some(path) => fits(path)?,
                None => places.socket(&session)?,
            },
            session,
            token: flags.token.or_else(|| vars.text("SHOAL_TOKEN")),
            state_dir_is_explicit: state_dir.is_some(),
            // Without a home the socket alone can lead to a kernel.
            state_dir: state_dir.or_else(|| places.state().ok()),
            config_dir: places.config(),
            policy: flags.policy.or_else(|| vars.path("SHOAL_POLICY")),
            autostart: vars.text("SHOAL_NO_AUTOSTART").is_none(),
            deadline: DEADLINE,
            unit_dirs: unit_dirs(vars, places.home),
            program_dirs: vars.path("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default(),
        })
    }

    /// Where a kernel may listen: the configured socket, then what one that runs on the state directory wrote down.
    pub fn sockets(&self) -> impl Iterator<Item = PathBuf> {
        let named = self.state_dir.as_deref().and_then(crate::autostart::socket_in_lock);
        std::iter::once(self.socket.clone()).chain(named.filter(|named| *named != self.socket))
    }
}

fn unit_dirs(vars: &Vars, home: Option<PathBuf>) -> Vec<PathBuf> {
    if cfg!(target_os = "macos") {
        return home.into_iter().map(|home| home.join("Library/LaunchAgents")).collect();
    }
    let below = |home: &Option<PathBuf>, dir: &str| home.as_ref().map(|home| home.join(dir));
    let own = vars.path("XDG_CONFIG_HOME").or_else(|| below(&home, ".config"));
    // Where a tarball installed for one user puts them.
    let data = vars.path("XDG_DATA_HOME").or_else(|| below(&home, ".local/share"));
    let system = ["/etc/systemd/user", "/usr/local/lib/systemd/user", "/usr/lib/systemd/user"].map(PathBuf::from);
    own.into_iter().chain(data).map(|dir| dir.join("systemd/user")).chain(system).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_override_variables() {
        let vars = Vars::from_pairs(&[
            ("SHOAL_SOCKET", "/run/a.sock"),
            ("SHOAL_SESSION", "vars"),
            ("SHOAL_TOKEN", ""),
            ("HOME", "/home/me"),
            ("SHOAL_NO_AUTOSTART", "1"),
        ]);
        let config = Config::resolve(Flags::default(), &vars).unwrap();
        assert_eq!((config.socket.to_str(), config.socket_is_explicit), (Some("/run/a.sock"), true));
        assert_eq!((config.session.as_str(), config.token.clone(), config.autostart), ("vars", None, false));
        assert_eq!(config.state_dir, Some("/home/me/.local/state/shoal".into()));
        let flags = Flags { session: Some("flag".into()), socket: Some("/b.sock".into()), ..Flags::default() };
        let config = Config::resolve(flags, &vars).unwrap();
        assert_eq!((config.socket.to_str(), config.session.as_str()), (Some("/b.sock"), "flag"));
        let long = Flags { socket: Some(format!("/{}", "x".repeat(120)).into()), ..Flags::default() };
        assert!(matches!(Config::resolve(long, &vars), Err(PlaceError::TooLong { .. })));
    }
}
