//! The answer to a client while no broker serves. Not a byte of the client is read.

use std::io::IoSlice;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// A client waits in the backlog this long before it is answered.
pub(crate) const PATIENCE: Duration = Duration::from_millis(500);
/// Connections answered per wake, so that a flood does not keep the loop from the broker.
const BATCH: usize = 64;

/// Accepts what waits, answers each with the one line and closes it.
pub(crate) fn refuse_all(listener: BorrowedFd<'_>, retry_after: Duration) {
    let line = line(retry_after);
    for _ in 0..BATCH {
        let Ok(client) = shoal_sys::socket::accept(listener) else { return };
        // A client that is gone or does not read has no use for the answer.
        let _unsent = shoal_sys::socket::send(&client, &[IoSlice::new(line.as_bytes())], &[], false);
    }
}

fn line(retry_after: Duration) -> String {
    let ms = retry_after.as_millis().clamp(50, 10_000);
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{{\"code\":-32053,\"message\":\"kernel restarting\",\
         \"data\":{{\"retry_after_ms\":{ms}}}}}}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_the_documented_one() {
        assert_eq!(
            line(Duration::from_millis(200)),
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32053,\"message\":\"kernel restarting\",\"data\":{\"retry_after_ms\":200}}}\n"
        );
        assert!(line(Duration::ZERO).contains(":50}"));
    }
}
