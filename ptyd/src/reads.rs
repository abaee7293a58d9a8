//! Reads that wait for something on the screen.

use std::time::{Duration, Instant};

use regex::{Regex, RegexBuilder};
use shoal_proto::Text;
use shoal_proto::broker_ptyd::{MAX_ROW, Matched, Read, Refusal};

/// Memory of a compiled pattern; a larger one is refused like a wrong one.
const PATTERN_BYTES: usize = 1024 * 1024;

/// A read that waits, or is answered at once.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// The request.
    pub(crate) read: Read,
    regex: Option<Regex>,
    started: Instant,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// What ended it.
    pub(crate) matched: Option<Matched>,
    /// It ran out.
    pub(crate) timed_out: bool,
    /// How long it took.
    pub(crate) waited: Duration,
}

/// What a wait looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    /// The rows of the screen.
    pub(crate) rows: &'a [Text<MAX_ROW>],
    /// When output last came.
    pub(crate) last_output: Option<Instant>,
    /// The program ended and its last output is on the screen.
    pub(crate) exited: bool,
}

impl Waiting {
    /// A read that begins now.
    pub(crate) fn new(read: Read, now: Instant) -> Result<Self, Refusal> {
        let pattern = read.wait.as_ref().and_then(|wait| wait.regex.as_ref());
        let regex = pattern.map(|p| RegexBuilder::new(p).multi_line(true).size_limit(PATTERN_BYTES).build());
        let regex = regex.transpose().map_err(|e| Refusal::Regex(Text::cut(&e.to_string())))?;
        Ok(Self { read, regex, started: now })
    }

    /// Whether the wait is over.
    pub(crate) fn check(&self, view: View<'_>, now: Instant) -> Option<Ended> {
        let Some(wait) = &self.read.wait else {
            return Some(Ended { matched: None, timed_out: false, waited: Duration::ZERO });
        };
        let waited = now.saturating_duration_since(self.started);
        let ended = |matched, timed_out| Some(Ended { matched, timed_out, waited });
        if wait.text.is_some() || self.regex.is_some() {
            let screen: Vec<&str> = view.rows.iter().map(Text::as_str).collect();
            let screen = screen.join("\n");
            if wait.text.as_ref().is_some_and(|text| screen.contains(text.as_str())) {
                return ended(Some(Matched::Text), false);
            }
            if self.regex.as_ref().is_some_and(|regex| regex.is_match(&screen)) {
                return ended(Some(Matched::Regex), false);
            }
        }
        if view.exited {
            return ended(wait.exit.then_some(Matched::Exit), false);
        }
        if self.quiet_due(view.last_output).is_some_and(|due| due <= now) {
            return ended(Some(Matched::Quiet), false);
        }
        if self.timeout_due().is_some_and(|due| due <= now) {
            return ended(None, true);
        }
        None
    }

    /// When it is to be looked at again even if nothing comes.
    pub(crate) fn due(&self, last_output: Option<Instant>) -> Option<Instant> {
        self.quiet_due(last_output).into_iter().chain(self.timeout_due()).min()
    }

    /// Quiet counts from the last output, and not from before the read: the program may not have noticed the keys yet.
    fn quiet_due(&self, last_output: Option<Instant>) -> Option<Instant> {
        let quiet = self.read.wait.as_ref()?.quiet_ms?;
        let since = last_output.map_or(self.started, |at| at.max(self.started));
        since.checked_add(Duration::from_millis(quiet.into()))
    }

    fn timeout_due(&self) -> Option<Instant> {
        let wait = self.read.wait.as_ref()?;
        self.started.checked_add(Duration::from_millis(wait.timeout_ms.into()))
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "an origin for the handed-in clock")]
mod tests {
    use super::*;
    use shoal_proto::broker_ptyd::Wait;

    fn waiting(wait: Wait, now: Instant) -> Waiting {
        let read = Read { call: 1, id: 1, wait: Some(wait), scrollback: None, formatted: false };
        Waiting::new(read, now).expect("a pattern")
    }

    fn wait() -> Wait {
        Wait { text: None, regex: None, quiet_ms: None, exit: false, timeout_ms: 1000 }
    }

    fn rows(text: &str) -> Vec<Text<MAX_ROW>> {
        text.lines().map(Text::cut).collect()
    }

    fn view(rows: &[Text<MAX_ROW>]) -> View<'_> {
        View { rows, last_output: None, exited: false }
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_first_condition_that_holds_ends_it() {
        let now = Instant::now();
        let text = waiting(Wait { text: Some(Text::cut("b\nc")), ..wait() }, now);
        assert_eq!(text.check(view(&rows("a\nb")), now), None);
        let ended = text.check(view(&rows("a\nb\nc")), now + 5 * MS).expect("over");
        assert_eq!((ended.matched, ended.timed_out, ended.waited), (Some(Matched::Text), false, 5 * MS));
        let regex = waiting(Wait { regex: Some(Text::cut("^c.$")), ..wait() }, now);
        assert_eq!(regex.check(view(&rows("xcy")), now), None);
        assert_eq!(regex.check(view(&rows("a\ncd")), now).and_then(|e| e.matched), Some(Matched::Regex));
        let timed_out = regex.check(view(&rows("a")), now + 1000 * MS).expect("over");
        assert_eq!((timed_out.matched, timed_out.timed_out), (None, true));
    }

    #[test]
    fn quiet_counts_from_the_later_of_read_and_output() {
        let now = Instant::now();
        let quiet = waiting(Wait { quiet_ms: Some(100), ..wait() }, now);
        let rows = rows("x");
        assert_eq!(quiet.check(view(&rows), now + 99 * MS), None);
        assert_eq!(quiet.check(view(&rows), now + 100 * MS).and_then(|e| e.matched), Some(Matched::Quiet));
        let noisy = View { last_output: Some(now + 80 * MS), ..view(&rows) };
        assert_eq!(quiet.check(noisy, now + 100 * MS), None);
        assert_eq!(quiet.due(Some(now + 80 * MS)), Some(now + 180 * MS));
    }

    #[test]
    fn an_exit_ends_every_wait_and_is_named_when_asked_for() {
        let now = Instant::now();
        let rows = rows("x");
        let exited = View { exited: true, ..view(&rows) };
        let text = waiting(Wait { text: Some(Text::cut("never")), ..wait() }, now);
        assert_eq!(text.check(exited, now), Some(Ended { matched: None, timed_out: false, waited: Duration::ZERO }));
        let exit = waiting(Wait { exit: true, ..wait() }, now);
        assert_eq!(exit.check(exited, now).and_then(|e| e.matched), Some(Matched::Exit));
    }

    #[test]
    fn a_wrong_or_huge_pattern_is_refused() {
        let now = Instant::now();
        for pattern in ["(", "(a{1000}){1000}"] {
            let wait = Wait { regex: Some(Text::cut(pattern)), ..wait() };
            let read = Read { call: 1, id: 1, wait: Some(wait), scrollback: None, formatted: false };
            assert!(matches!(Waiting::new(read, now), Err(Refusal::Regex(_))), "{pattern}");
        }
    }
}
