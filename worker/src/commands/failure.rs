//! Why a program did not start, in the evaluator's terms.

use rustix::io::Errno;
use shoal_chan::ChanError;
use shoal_eval::host::{RunError, StartError, StartErrorKind};
use shoal_proto::launcher_worker::{SpawnFailed, SpawnStage};

use crate::files;

/// A stage that failed to start.
pub(super) fn start(stage: usize, kind: StartErrorKind, text: impl Into<String>) -> RunError {
    RunError::Start(StartError { stage, kind, text: text.into() })
}

/// A failed call of this process while starting a stage.
pub(super) fn io(stage: usize, error: &std::io::Error) -> RunError {
    start(stage, StartErrorKind::Io, error.to_string())
}

/// The launcher is gone, or did not take the request.
pub(super) fn edge(stage: usize, error: &ChanError) -> RunError {
    start(stage, StartErrorKind::Io, format!("the session's launcher is not there: {error}"))
}

/// Words of the launcher's refusal of a program of a cancelled run.
const CANCELLED: &str = "the execution was cancelled";

/// The system refused another process.
const NO_PROCESS: &str = "there are as many processes as the limit `pids` allows; end some, then try again";
/// The system has no memory for another process.
const NO_MEMORY: &str = "there is no memory left for another process under the limit `memory`";

/// Whether a program was refused because its run was cancelled.
pub(super) fn is_cancelled(error: &RunError) -> bool {
    matches!(error, RunError::Start(start) if start.kind == StartErrorKind::Denied && start.text == CANCELLED)
}

/// What the launcher said.
pub(super) fn told(stage: usize, failed: &SpawnFailed) -> RunError {
    let errno = Errno::from_raw_os_error(failed.errno);
    let kind = match (failed.stage, errno) {
        (SpawnStage::Gate, _) => StartErrorKind::Denied,
        (SpawnStage::Cwd, Errno::NOENT | Errno::NOTDIR) => StartErrorKind::CwdGone,
        (_, Errno::NOENT | Errno::NOTDIR) => StartErrorKind::NotFound,
        (_, Errno::ACCESS | Errno::PERM | Errno::NOEXEC) => StartErrorKind::Permission,
        _ => StartErrorKind::Io,
    };
    let text = match failed.stage {
        SpawnStage::Gate if errno == Errno::CANCELED => CANCELLED.to_owned(),
        SpawnStage::Gate => failed.reason.as_str().to_owned(),
        SpawnStage::Clone | SpawnStage::Setup if errno == Errno::AGAIN => NO_PROCESS.to_owned(),
        SpawnStage::Clone if errno == Errno::NOMEM => NO_MEMORY.to_owned(),
        SpawnStage::Exec if errno == Errno::NOEXEC => "it is neither a program nor a script with a #! line".to_owned(),
        SpawnStage::Exec if errno == Errno::TOOBIG => "arguments and environment are too long together".to_owned(),
        _ => files::text_of(errno),
    };
    start(stage, kind, text)
}
