//! Why a channel did not carry a message.

use std::io;

use shoal_proto::Violation;

/// Why a channel did not carry a message.
#[derive(Debug, thiserror::Error)]
pub enum ChanError {
    /// The peer is gone: end of file, a reset or a broken pipe. All three mean the same.
    #[error("the peer is gone")]
    Closed,
    /// The peer broke the protocol of the edge, or our own message does not fit it.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// Nothing to read, or no room to write, now.
    #[error("the channel is not ready")]
    WouldBlock,
    /// The deadline passed.
    #[error("no message before the deadline")]
    TimedOut,
    /// The system failed.
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for ChanError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock => Self::WouldBlock,
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::NotConnected => Self::Closed,
            _ => Self::Io(error),
        }
    }
}
