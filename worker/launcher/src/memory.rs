//! What the bound of the session's memory as a whole has done, by the counters of its control group.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;

/// The counters.
#[derive(Debug)]
pub(crate) struct MemoryEvents(File);

impl MemoryEvents {
    /// Counters in an open file.
    pub(crate) fn new(file: OwnedFd) -> Self {
        Self(file.into())
    }

    /// How many processes were ended because no memory was left.
    pub(crate) fn kills(&self) -> u64 {
        let mut buffer = [0; 512];
        // A group that cannot be read any more is on its way out, and its session with it.
        let len = self.0.read_at(&mut buffer, 0).unwrap_or(0);
        kills(&String::from_utf8_lossy(buffer.get(..len).unwrap_or_default()))
    }
}

fn kills(text: &str) -> u64 {
    let count = |line: &str| line.strip_prefix("oom_kill ").and_then(|count| count.parse().ok());
    text.lines().find_map(count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_counted_and_read_again() {
        let text = "low 0\nhigh 3\nmax 9\noom 4\noom_kill 2\noom_group_kill 1\n";
        assert_eq!(kills(text), 2);
        assert_eq!(kills("low 0\n"), 0);
        let file = shoal_sys::memfd::create("events").unwrap();
        shoal_sys::memfd::write_all(&file, text.as_bytes()).unwrap();
        let events = MemoryEvents::new(file);
        assert_eq!((events.kills(), events.kills()), (2, 2));
    }
}
