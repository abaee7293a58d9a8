//! `shoal kernel`: start, stop, reload.

use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use shoal_client::{ConnectError, Connection};
use shoal_sys::pidfd::Pidfd;
use shoal_sys::poll::{Ready, wait};

use crate::args::Kernel;
use crate::context::{Context, call};
use crate::fail::Fail;
use crate::out;

/// The kernel's own grace, and a little for its last acts.
const STOP_WITHIN: Duration = Duration::from_secs(15);
/// A kernel answers this at once.
const ASK_WITHIN: Duration = Duration::from_secs(5);
/// SIGHUP.
const HANG_UP: i32 = 1;
/// SIGTERM.
const TERMINATE: i32 = 15;

/// Carries out the action.
pub(crate) fn run(context: Context, action: Kernel) -> Result<ExitCode, Fail> {
    match action {
        Kernel::Start => start(&context),
        Kernel::Stop => stop(&context.running_only()),
        Kernel::Reload => reload(&context),
    }
}

fn start(context: &Context) -> Result<ExitCode, Fail> {
    context.block_on(async {
        let connection = Connection::find(&context.config).await?;
        let version = call(&connection, "kernel.version", json!({})).await?;
        let build = crate::escape::line(&crate::context::text(&version, "build"));
        out::either(context, &version, &format!("running, build {build}"))
    })?;
    Ok(ExitCode::SUCCESS)
}

fn stop(context: &Context) -> Result<ExitCode, Fail> {
    let stopped = context.block_on(async {
        let connection = match Connection::find(&context.config).await {
            Ok(connection) => connection,
            Err(ConnectError::NoKernel { .. }) => return Ok(false),
            Err(other) => return Err(other.into()),
        };
        let supervisor = match ask_to_stop(context, &connection).await {
            Ok(supervisor) => supervisor,
            Err(fail) => {
                // A kernel of another version, or one that is stuck: its supervisor takes a signal in any case.
                out::note(&format!("shoal: {fail}; ending it by a signal instead"));
                Some(signal_supervisor(context)?)
            }
        };
        let lost = tokio::time::timeout(STOP_WITHIN, connection.lost()).await;
        lost.map_err(|_| still_there())?;
        match supervisor {
            // Its end is what counts: the socket may be the service manager's, and looking at it would start a new one.
            Some(supervisor) => match wait(supervisor.as_fd(), Ready::READ, Some(STOP_WITHIN)) {
                Ok(true) => Ok(true),
                Ok(false) => Err(still_there()),
                Err(e) => Err(Fail::Said(format!("cannot wait for the kernel: {e}"))),
            },
            None => gone(context).await.map(|()| true),
        }
    })?;
    let said = if stopped { "stopped" } else { "no kernel runs" };
    out::either(context, &json!({"stopped": stopped}), said)?;
    Ok(ExitCode::SUCCESS)
}

fn still_there() -> Fail {
    Fail::Said(format!("the kernel is still there after {} s", STOP_WITHIN.as_secs()))
}

/// Asks for the end; returns a handle of the supervisor when it can be seen from here.
async fn ask_to_stop(context: &Context, connection: &Connection) -> Result<Option<Pidfd>, Fail> {
    let asked = async {
        connection.attach(&context.outside()).await?;
        let status = call(connection, "kernel.status", json!({})).await?;
        let supervisor = supervisor(&status).ok().and_then(handle);
        call(connection, "kernel.shutdown", json!({})).await?;
        Ok(supervisor)
    };
    match tokio::time::timeout(ASK_WITHIN, asked).await {
        Ok(answer) => answer,
        Err(_) => Err(Fail::Said(format!("it did not answer within {} s", ASK_WITHIN.as_secs()))),
    }
}

/// A handle of a kernel of ours; none when the number means something else here.
fn handle(pid: i32) -> Option<Pidfd> {
    let is_kernel = || shoal_sys::procfs::process(pid).ok().flatten().is_some_and(|p| p.comm == "shoal-kernel");
    // Looked at after it is held, so that the number cannot have changed hands in between.
    Pidfd::open(pid).ok().filter(|_| is_kernel())
}

/// Sends SIGTERM to the supervisor: whoever put the socket to listen, if that is a kernel of ours.
fn signal_supervisor(context: &Context) -> Result<Pidfd, Fail> {
    let connected = context.config.sockets().find_map(|path| {
        let stream = std::os::unix::net::UnixStream::connect(&path).ok()?;
        Some((path, stream))
    });
    let (socket, stream) = connected.ok_or_else(|| Fail::Said("nobody listens any more".to_owned()))?;
    let failed = |e: std::io::Error| Fail::Said(format!("{}: {e}", socket.display()));
    let peer = shoal_sys::peer::credentials(&stream).map_err(failed)?;
    let Some(supervisor) = handle(peer.pid) else {
        return Err(Fail::Said(
            "the socket is the service manager's; stop the kernel with: systemctl --user stop shoal.service".to_owned(),
        ));
    };
    supervisor.signal(TERMINATE).map_err(failed)?;
    Ok(supervisor)
}

/// Waits until nobody listens: the socket file goes last.
async fn gone(context: &Context) -> Result<(), Fail> {
    let until = tokio::time::Instant::now() + STOP_WITHIN;
    for socket in context.config.sockets() {
        while socket.exists() && Connection::open(&socket).await.is_ok() {
            if tokio::time::Instant::now() >= until {
                return Err(Fail::Said(format!("{} still answers", socket.display())));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(())
}

fn reload(context: &Context) -> Result<ExitCode, Fail> {
    let status = context.block_on(async {
        let (connection, _) = context.administer().await?;
        call(&connection, "kernel.status", json!({})).await
    })?;
    let supervisor = supervisor(&status)?;
    match shoal_sys::process::kill(supervisor, HANG_UP) {
        Ok(true) => {}
        Ok(false) => return Err(Fail::Said(format!("no process {supervisor}; is the kernel in another container?"))),
        Err(e) => return Err(Fail::Said(format!("cannot signal {supervisor}: {e}"))),
    }
    let rejected = status.pointer("/policy/rejected").unwrap_or(&Value::Null);
    let before = if rejected.is_null() {
        String::new()
    } else {
        format!("\nbefore: rejected, {}", crate::escape::line(&rejected.to_string()))
    };
    let said = "reloading; `shoal status --json` shows `policy.rejected` if the files are malformed";
    out::either(context, &json!({"reloading": true, "rejected_before": rejected}), &format!("{said}{before}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Pid of the supervisor, as the kernel sees it.
fn supervisor(status: &Value) -> Result<i32, Fail> {
    crate::context::items(status, "processes")
        .iter()
        .find(|p| p["role"] == json!("supervisor"))
        .and_then(|p| p["pid"].as_i64())
        .and_then(|pid| i32::try_from(pid).ok())
        .ok_or_else(|| Fail::Said("the kernel does not name its supervisor".to_owned()))
}
