//! What can go wrong between a client and its kernel.

use std::io;
use std::path::PathBuf;

use shoal_wire::RpcError;

use shoal_place::PlaceError;

/// No connection to a kernel.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The places to look in make no usable path.
    #[error(transparent)]
    Path(#[from] PlaceError),
    /// Nobody listens, and autostart is off.
    #[error("no kernel listens on {}; start one with `shoal kernel start`", path.display())]
    NoKernel {
        /// Where a kernel was expected.
        path: PathBuf,
    },
    /// The socket cannot be connected to for another reason.
    #[error("cannot connect to {}: {error}", path.display())]
    Socket {
        /// Path that was tried.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The listener runs as somebody else.
    #[error("{} belongs to a process of uid {uid}; not talking to it", path.display())]
    Foreign {
        /// Path that was tried.
        path: PathBuf,
        /// The listener's uid.
        uid: u32,
    },
    /// A kernel could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// No kernel answered in time.
    #[error("the kernel on {} did not answer in time; `shoal doctor` says why", path.display())]
    Deadline {
        /// Path that was tried.
        path: PathBuf,
    },
    /// The kernel refused the attachment.
    #[error("the kernel refused to attach: {0}")]
    Refused(RpcError),
}

/// A kernel that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No program to start.
    #[error("shoal-kernel is neither beside this program nor in PATH")]
    NotFound,
    /// The system refused to start it.
    #[error("cannot start {}: {error}", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// It ended before it was ready.
    #[error("{} ended before it was ready ({status}); run it in the foreground to see why", program.display())]
    Ended {
        /// The program.
        program: PathBuf,
        /// How it ended.
        status: String,
    },
    /// It was not ready in time.
    #[error("the kernel was not ready within 10 s")]
    Deadline,
    /// The lock that lets one client start a kernel at a time.
    #[error("cannot lock {}: {error}; name a state directory you can write to with SHOAL_STATE_DIR", path.display())]
    Lock {
        /// Path of the lock.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
}

/// A call without a result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The kernel answered with an error.
    #[error("{0}")]
    Kernel(RpcError),
    /// The connection broke before the answer; the call may or may not have happened.
    #[error("the connection to the kernel was lost before the answer")]
    Lost,
    /// The request is larger than a frame.
    #[error("the request has {bytes} bytes, more than a frame holds")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// The answer has another shape than this build knows.
    #[error("the kernel's answer does not decode: {0}")]
    Decode(String),
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

impl CallError {
    /// The kernel's error, when it is one.
    pub fn kernel(&self) -> Option<&RpcError> {
        match self {
            CallError::Kernel(error) | CallError::Connect(ConnectError::Refused(error)) => Some(error),
            _ => None,
        }
    }
}
