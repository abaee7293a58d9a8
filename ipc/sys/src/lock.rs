//! File locks that last as long as their holder.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::FlockOperation;

/// Takes the exclusive lock of an open file; `false` when another process holds it. It is kept until the last copy of
/// the descriptor is closed.
pub fn try_exclusive(fd: impl AsFd) -> io::Result<bool> {
    loop {
        match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(false),
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_at_a_time() {
        let path = std::env::temp_dir().join(format!("shoal-sys-lock-{}", std::process::id()));
        let first = std::fs::File::create(&path).unwrap();
        let second = std::fs::File::open(&path).unwrap();
        assert!(try_exclusive(&first).unwrap());
        assert!(!try_exclusive(&second).unwrap());
        drop(first);
        assert!(try_exclusive(&second).unwrap());
        std::fs::remove_file(&path).unwrap();
    }
}
