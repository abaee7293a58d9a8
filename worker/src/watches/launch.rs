//! Starting a configured server: a process of the session like any other, in its jail and through the spawn gate.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use shoal_eval::host::{At, FileKind, Files as _};
use shoal_eval::place::Place;
use shoal_proto::launcher_worker::{CommandId, Rung, Spawn};
use shoal_proto::{Bytes, List};
use shoal_sys::poll::{self, Ready};
use shoal_wire::RpcError;

use super::dialog::Dialog;
use super::servers::Configured;
use crate::clock;
use crate::files::LocalFiles;
use crate::launcher_edge::{Event, Inbox, LauncherEdge};
use crate::session::Session;

/// A program starts within this time, or the launcher is in trouble.
const START_TIME: Duration = Duration::from_secs(10);

/// Starts a server and opens the conversation with it.
pub(crate) fn start(session: &Session, configured: &Configured) -> Result<Arc<Dialog>, RpcError> {
    let failed = |detail: &str| {
        let message = format!("server `{}`: {detail}", configured.name);
        RpcError::watch_failed("", Some(&configured.name), "not_started", &message, detail)
    };
    let place = session.snapshot().place;
    let program = find(&place, &configured.command).ok_or_else(|| failed("its program is not found"))?;
    let spawned = spawn(session, configured, &place, program);
    let Spawned { id, input, output } = spawned.map_err(|detail| failed(&detail))?;
    let dialog = Dialog::open(input);
    let reader = Arc::clone(&dialog);
    let edge = session.launcher.clone();
    let thread = std::thread::Builder::new().name("mcp server".into()).spawn(move || {
        reader.read_from(&output);
        // One that closed its output and stays is of no use.
        let _gone: Result<(), _> = edge.end(id, Rung::Term);
        edge.forget(id);
    });
    thread.map_err(|error| failed(&error.to_string()))?;
    if let Err(why) = dialog.until_ready() {
        dialog.end(&why);
        return Err(failed(&why));
    }
    Ok(dialog)
}

struct Spawned {
    id: CommandId,
    input: OwnedFd,
    output: OwnedFd,
}

fn spawn(session: &Session, configured: &Configured, place: &Place, program: Vec<u8>) -> Result<Spawned, String> {
    let text = |error: std::io::Error| error.to_string();
    let (their_input, input) = shoal_sys::fd::pipe().map_err(text)?;
    let (output, their_output) = shoal_sys::fd::pipe().map_err(text)?;
    let their_errors = shoal_sys::fd::null().map_err(text)?;
    shoal_sys::fd::set_nonblocking(&input, true).map_err(text)?;
    let inbox = Inbox::new().map_err(text)?;
    let id = session.launcher.register(&inbox);
    let request = request(id, configured, place, program)?;
    let stdio = [their_input.as_fd(), their_output.as_fd(), their_errors.as_fd()];
    session.launcher.spawn(request, stdio).map_err(|error| error.to_string())?;
    match await_start(&session.launcher, id, &inbox) {
        Ok(()) => Ok(Spawned { id, input, output }),
        Err(why) => {
            session.launcher.forget(id);
            Err(why)
        }
    }
}

fn request(id: CommandId, configured: &Configured, place: &Place, program: Vec<u8>) -> Result<Spawn, String> {
    let argv = std::iter::once(&configured.command).chain(&configured.args);
    let argv = argv.map(|arg| Bytes::new(arg.as_bytes())).collect::<Result<Vec<_>, _>>();
    let over = |name: &str| configured.env.iter().any(|(set, _)| set == name);
    let own =
        place.env.iter().filter(|(name, _)| !over(name)).map(|(name, value)| [name.as_bytes(), b"=", value].concat());
    let set = configured.env.iter().map(|(name, value)| format!("{name}={value}").into_bytes());
    let env = own.chain(set).map(Bytes::new).collect::<Result<Vec<_>, _>>();
    let long = |_| "its command line or environment is too long".to_owned();
    Ok(Spawn {
        id,
        run: 0,
        path: Bytes::new(program).map_err(long)?,
        argv: List::new(argv.map_err(long)?).map_err(long)?,
        env: List::new(env.map_err(long)?).map_err(long)?,
        cwd: Bytes::new(place.cwd.path().as_bytes()).map_err(long)?,
        background: true,
    })
}

fn await_start(edge: &LauncherEdge, id: CommandId, inbox: &Inbox) -> Result<(), String> {
    let until = clock::now() + START_TIME;
    loop {
        for (_, event) in inbox.take() {
            match event {
                Event::Started(_) => return Ok(()),
                Event::Failed(failed) => {
                    let gate = failed.reason.as_str();
                    let errno = rustix::io::Errno::from_raw_os_error(failed.errno);
                    return Err(if gate.is_empty() { format!("it did not start: {errno}") } else { gate.to_owned() });
                }
                Event::Exited(_) | Event::Held(_) => {}
            }
        }
        let rest = until.saturating_duration_since(clock::now());
        if rest.is_zero() || !poll::wait(inbox.as_fd(), Ready::READ, Some(rest)).unwrap_or(false) {
            // A late start would have nobody to talk to.
            let _gone: Result<(), _> = edge.end(id, Rung::Kill);
            return Err("it did not start in time".to_owned());
        }
    }
}

/// The program of a name, as the session finds programs.
fn find(place: &Place, name: &str) -> Option<Vec<u8>> {
    let files = LocalFiles::new(std::path::PathBuf::new());
    let is_program = |path: &[u8]| {
        let meta = files.meta(At { dir: &place.cwd, path }, true);
        meta.is_ok_and(|meta| meta.kind == FileKind::File && meta.executable)
    };
    let absolute =
        |path: Vec<u8>| if path.starts_with(b"/") { path } else { [place.cwd.path().as_bytes(), b"/", &path].concat() };
    if name.contains('/') {
        return Some(absolute(name.as_bytes().to_vec())).filter(|path| is_program(path));
    }
    let search = place.env.get("PATH")?;
    let candidates = search.split(|byte| *byte == b':').map(|dir| absolute([dir, b"/", name.as_bytes()].concat()));
    candidates.into_iter().find(|path| is_program(path))
}
