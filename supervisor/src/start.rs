//! From nothing to a kernel that has a broker to start, and back.
//!
//! The order is fixed: descriptors of the service manager, the state directory's lock, the listener, the roles'
//! executables, the policy beside the host's isolation. The broker is started by the loop; ready is said when it serves
//! and a trial session was made.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use shoal_jail::plan::Protected;
use shoal_jail::probe::Target;
use shoal_place::{Directory, PlaceError, Places, Vars, fits, is_session_name};
use shoal_sys::rlimit::{Limit, raise_to_hard};
use shoal_sys::signal::SignalFd;

use crate::fault::{StartError, because};
use crate::groups::Groups;
use crate::kernel::{Kernel, clock, wall_ns};
use crate::lifecycle::Life;
use crate::listener::{Handed, Listener};
use crate::means::Means;
use crate::options::Options;
use crate::policy::{Files, Run};
use crate::roles::Roles;
use crate::state::StateDir;
use crate::trial::FirstStart;
use crate::watch::Watch;
use crate::{log, notify, store};

/// C11 among a host's claims.
const MEMORY_IS_BOUNDED: u16 = 1 << 10;

/// Brings the kernel up to the point where its loop runs.
pub(crate) fn start(options: Options, vars: Vars, means: Means) -> Result<Kernel, StartError> {
    let start_dir = std::env::current_dir().map_err(because("cannot name the current directory"))?;
    restrict_self(&means)?;
    let signals = SignalFd::new(&[libc::SIGCHLD, libc::SIGHUP, libc::SIGTERM, libc::SIGINT])
        .map_err(because("cannot take signals"))?;
    let Handed { activated, stored } = Listener::handed_over()?;
    let euid = shoal_sys::process::uid();
    let home = shoal_place::home(&vars, euid, &Directory::look, || shoal_sys::user::home(euid));
    let places = Places { vars: &vars, home: home.clone(), euid, look: &Directory::look };
    let failed = |e: PlaceError| StartError::Failed(e.to_string());
    let state = if options.ephemeral {
        StateDir::ephemeral(&vars.path("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp")))?
    } else {
        StateDir::open(&state_path(&options, &places).map_err(failed)?)?
    };
    let files = Files::new(&options, options.config.as_deref().map(absolute).or_else(|| places.config()), home);
    let mut listener = match activated {
        Some(listener) => listener,
        None => {
            let path = socket_path(&options, &places).map_err(failed)?;
            state.announce(&path)?;
            match store::take_back(stored, &path) {
                Some(listener) => listener,
                None => Listener::bind(path)?,
            }
        }
    };
    store::keep(&mut listener);
    state.announce(&listener.path)?;
    prepare(Prepared { options, vars, means, state, listener, files, start_dir, signals })
}

fn state_path(options: &Options, places: &Places<'_>) -> Result<PathBuf, PlaceError> {
    options.state_dir.as_deref().map_or_else(|| places.state(), |dir| Ok(absolute(dir)))
}

fn socket_path(options: &Options, places: &Places<'_>) -> Result<PathBuf, PlaceError> {
    match &options.socket {
        _ if !is_session_name(&options.session) => Err(PlaceError::Name(options.session.clone())),
        Some(path) => fits(absolute(path)),
        None => places.socket(&options.session),
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_empty| path.to_owned())
}

/// What is there before the policy is compiled and the host is tried.
struct Prepared {
    options: Options,
    vars: Vars,
    means: Means,
    state: StateDir,
    listener: Listener,
    files: Files,
    start_dir: PathBuf,
    signals: SignalFd,
}

fn prepare(prepared: Prepared) -> Result<Kernel, StartError> {
    let Prepared { options, vars, means, state, mut listener, files, start_dir, signals } = prepared;
    let executable = std::env::current_exe().map_err(because("cannot find my own executable"))?;
    // A link in another folder may have started it; the roles lie beside the real file.
    let executable = std::fs::canonicalize(&executable).unwrap_or(executable);
    let roles = Roles::find(&executable)?;
    let now = clock();
    // While this process is alone in its group.
    let groups = Groups::take();
    let runtime = vars.path("XDG_RUNTIME_DIR");
    let protected = protected(&state, &listener, &roles, &files, runtime);
    // The policy is compiled while the host is tried: neither needs the other.
    let tried = Run::start(&files, &roles, now).and_then(|run| {
        let host = (means.probe)(&Target { kernel: &protected, state: &state.path, socket: &listener.path });
        Ok((run.wait(&options)?, host))
    });
    let (policy, mut host) = match tried {
        Ok(both) => both,
        Err(why) => {
            store::drop_kept(&mut listener);
            if let Err(e) = listener.unlink() {
                log::line(&format!("cannot remove the socket: {e}"));
            }
            return Err(StartError::Failed(why));
        }
    };
    if !host.missing.is_empty() {
        log::line(&format!("sessions get no full jail ({}): {}", host.level(), host.missing));
    }
    if groups.as_ref().is_some_and(Groups::bounds_memory) {
        host.claims |= MEMORY_IS_BOUNDED;
    }
    let watch = match Watch::new(&files) {
        Ok(watch) => Some(watch),
        Err(e) => {
            log::line(&format!("the policy files cannot be watched ({e}); send SIGHUP after a change"));
            None
        }
    };
    let watchdog = notify::watchdog().map(|period| (period, now + period));
    Ok(Kernel {
        options,
        vars,
        means,
        state,
        listener,
        roles,
        groups,
        host,
        protected,
        files,
        policy,
        policy_generation: 1,
        compiler: None,
        reload_again: false,
        life: Life::new(now),
        broker: None,
        broker_starts: 0,
        sessions: std::collections::BTreeMap::new(),
        next_session: 1,
        start_dir: start_dir.to_string_lossy().into_owned(),
        started_ns: wall_ns(),
        first_start: FirstStart::default(),
        drain: None,
        asked_to_end: false,
        watchdog,
        signals,
        watch,
    })
}

/// The places of this kernel. A directory that is made for sockets alone is hidden whole, any other socket by itself.
fn protected(
    state: &StateDir,
    listener: &Listener,
    roles: &Roles,
    files: &Files,
    runtime: Option<PathBuf>,
) -> Protected {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let dir = listener.path.parent().filter(|dir| dir.ends_with("shoal"));
    let socket = real(dir.unwrap_or(&listener.path));
    let hidden = [real(&state.path), socket].into_iter().flatten().collect();
    let names = ["kernel", "policy", "broker", "launcher", "worker", "ptyd"];
    let programs = names.iter().filter_map(|name| real(&roles.dir.join(format!("shoal-{name}"))));
    // The whole directory of the configuration, so that no file can be put in place of one; a policy elsewhere by itself.
    let config = files.shoal.as_deref().and_then(Path::parent);
    let rules = [config, files.leash.as_deref()].into_iter().flatten().filter_map(real);
    let fixed = programs.chain(rules).collect();
    let home = files.home.as_deref().and_then(real);
    Protected { hidden, fixed, home, runtime, uid: shoal_sys::process::uid() }
}

/// What holds for this process and what is inherited from it.
fn restrict_self(means: &Means) -> Result<(), StartError> {
    shoal_sys::signal::ignore_pipe();
    shoal_sys::prctl::set_name("shoal-kernel").map_err(because("cannot name the process"))?;
    // Sockets that are on their way count against this limit too.
    raise_to_hard(Limit::OpenFiles).map_err(because("cannot raise the limit of open files"))?;
    #[cfg(target_os = "linux")]
    shoal_sys::prctl::set_subreaper().map_err(because("cannot adopt orphans"))?;
    (means.restrict)().map_err(|failed| StartError::Failed(failed.to_string()))
}

/// Removes what a kernel leaves behind when it ends in order.
pub(crate) fn stop(mut kernel: Kernel) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    if kernel.asked_to_end {
        store::drop_kept(&mut kernel.listener);
    }
    if !kernel.listener.kept
        && let Err(e) = kernel.listener.unlink()
    {
        log::line(&format!("cannot remove {}: {e}", kernel.listener.path.display()));
        code = ExitCode::FAILURE;
    }
    let path = kernel.state.path.clone();
    if let Err(e) = kernel.state.close() {
        log::line(&format!("cannot clear {}: {e}", path.display()));
        code = ExitCode::FAILURE;
    }
    log::line("stopped");
    code
}

/// One line on standard output, for a starter that lost the race.
pub(crate) fn print_line(path: &Path) {
    let mut out = std::io::stdout().lock();
    // A starter that is gone does not need it.
    let _unread = writeln!(out, "{}", path.display()).and_then(|()| out.flush());
}
