//! Reads that wait for something to happen on a screen. Time is handed in.

use std::time::{Duration, Instant};

use regex::{Regex, RegexBuilder};
use shoal_proto::Text;
use shoal_proto::broker_ptyd::{Matched, Read, Refusal, Wait};

/// A compiled pattern of the longest text a call may have fits many times.
const MAX_PATTERN: usize = 1024 * 1024;

/// What a read wants besides the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Want {
    /// Lines of scrollback.
    pub(crate) scrollback: Option<(u32, u32)>,
    /// The screen with its colours.
    pub(crate) formatted: bool,
}

impl Want {
    pub(crate) fn of(read: &Read) -> Self {
        Self { scrollback: read.scrollback, formatted: read.formatted }
    }
}

/// A read that has not been answered.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) call: u64,
    pub(crate) want: Want,
    pub(crate) since: Instant,
    text: Option<String>,
    regex: Option<Regex>,
    quiet: Option<Duration>,
    exit: bool,
    ends: Option<Instant>,
}

/// What a wait is judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    /// Rows joined by newlines.
    pub(crate) screen: &'a str,
    /// The same with the blanks before the cursor, where that is different.
    pub(crate) to_cursor: Option<&'a str>,
    /// When output came last.
    pub(crate) last_output: Option<Instant>,
    /// The program ended and all it wrote is on the screen.
    pub(crate) exited: bool,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    /// The condition that held.
    pub(crate) matched: Option<Matched>,
    /// The time was over.
    pub(crate) timed_out: bool,
}

impl Waiting {
    /// A wait that begins now; refused when its pattern does not compile.
    pub(crate) fn new(call: u64, want: Want, wait: Wait, now: Instant) -> Result<Self, Refusal> {
        let regex = wait.regex.map(|pattern| {
            let built = RegexBuilder::new(&pattern).multi_line(true).size_limit(MAX_PATTERN).build();
            built.map_err(|error| Refusal::Regex(Text::cut(&error.to_string())))
        });
        Ok(Self {
            call,
            want,
            since: now,
            text: wait.text.map(Text::into_string),
            regex: regex.transpose()?,
            quiet: wait.quiet_ms.map(|ms| Duration::from_millis(ms.into())),
            exit: wait.exit,
            ends: now.checked_add(Duration::from_millis(wait.timeout_ms.into())),
        })
    }

    /// Whether the text of the screen decides.
    pub(crate) fn looks_at_screen(&self) -> bool {
        self.text.is_some() || self.regex.is_some()
    }

    /// How the wait has ended, if it has.
    pub(crate) fn judge(&self, facts: Facts<'_>, now: Instant) -> Option<Ended> {
        let shows = |holds: &dyn Fn(&str) -> bool| holds(facts.screen) || facts.to_cursor.is_some_and(holds);
        let matched = if self.text.as_deref().is_some_and(|text| shows(&|screen| screen.contains(text))) {
            Some(Matched::Text)
        } else if self.regex.as_ref().is_some_and(|regex| shows(&|screen| regex.is_match(screen))) {
            Some(Matched::Regex)
        } else if self.exit && facts.exited {
            Some(Matched::Exit)
        } else if self.quiet_due(facts.last_output).is_some_and(|due| due <= now) {
            Some(Matched::Quiet)
        } else {
            None
        };
        let timed_out = matched.is_none() && !facts.exited && self.ends.is_none_or(|ends| ends <= now);
        (matched.is_some() || timed_out || facts.exited).then_some(Ended { matched, timed_out })
    }

    /// When [`Waiting::judge`] may have something to say without output.
    pub(crate) fn due(&self, last_output: Option<Instant>) -> Option<Instant> {
        self.quiet_due(last_output).into_iter().chain(self.ends).min()
    }

    /// Quiet counts from the beginning of the wait: what was typed just before has to have a chance to answer.
    fn quiet_due(&self, last_output: Option<Instant>) -> Option<Instant> {
        let from = last_output.map_or(self.since, |last| last.max(self.since));
        from.checked_add(self.quiet?)
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "an arbitrary first instant; the tests move it")]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn none() -> Wait {
        Wait { text: None, regex: None, quiet_ms: None, exit: false, timeout_ms: 10_000 }
    }

    fn judged(wait: Wait, screen: &str, last_output: Option<Duration>, exited: bool, after: Duration) -> Option<Ended> {
        let start = Instant::now();
        let waiting = Waiting::new(1, Want::default(), wait, start).expect("a good wait");
        let facts = Facts { screen, to_cursor: None, last_output: last_output.map(|after| start + after), exited };
        waiting.judge(facts, start + after)
    }

    fn by(matched: Matched) -> Option<Ended> {
        Some(Ended { matched: Some(matched), timed_out: false })
    }

    #[test]
    fn text_and_pattern_look_at_the_whole_screen() {
        let text = Wait { text: Some(Text::new("a\nb").unwrap()), ..none() };
        assert_eq!(judged(text.clone(), "xa\nbc", None, false, SECOND), by(Matched::Text));
        assert_eq!(judged(text, "a b", None, false, SECOND), None);
        let regex = Wait { regex: Some(Text::new("^>>> $").unwrap()), ..none() };
        assert_eq!(judged(regex.clone(), "x\n>>> \ny", None, false, SECOND), by(Matched::Regex));
        assert_eq!(judged(regex, "x >>> ", None, false, SECOND), None);
    }

    #[test]
    fn a_prompt_is_found_with_and_without_its_blank() {
        let now = Instant::now();
        let facts = Facts { screen: ">>>", to_cursor: Some(">>> "), last_output: None, exited: false };
        for pattern in ["^>>> $", "^>>>$"] {
            let wait = Wait { regex: Some(Text::new(pattern).unwrap()), ..none() };
            let waiting = Waiting::new(1, Want::default(), wait, now).expect("a good wait");
            assert_eq!(waiting.judge(facts, now), by(Matched::Regex), "{pattern}");
        }
    }

    #[test]
    fn quiet_counts_from_the_last_output_and_not_before_the_wait() {
        let quiet = Wait { quiet_ms: Some(2000), ..none() };
        assert_eq!(judged(quiet.clone(), "", None, false, SECOND), None);
        assert_eq!(judged(quiet.clone(), "", None, false, 2 * SECOND), by(Matched::Quiet));
        assert_eq!(judged(quiet.clone(), "", Some(SECOND), false, 2 * SECOND), None);
        assert_eq!(judged(quiet, "", Some(SECOND), false, 3 * SECOND), by(Matched::Quiet));
    }

    #[test]
    fn an_exit_ends_every_wait() {
        let exit = Wait { exit: true, ..none() };
        assert_eq!(judged(exit.clone(), "", None, true, SECOND), by(Matched::Exit));
        assert_eq!(judged(exit, "", None, false, SECOND), None);
        let text = Wait { text: Some(Text::new("x").unwrap()), ..none() };
        assert_eq!(judged(text.clone(), "x", None, true, SECOND), by(Matched::Text));
        assert_eq!(judged(text, "", None, true, 20 * SECOND), Some(Ended::default()));
    }

    #[test]
    fn time_ends_a_wait_and_a_condition_that_holds_then_wins() {
        assert_eq!(judged(none(), "", None, false, 10 * SECOND), Some(Ended { matched: None, timed_out: true }));
        let text = Wait { text: Some(Text::new("x").unwrap()), timeout_ms: 0, ..none() };
        assert_eq!(judged(text, "x", None, false, SECOND), by(Matched::Text));
    }

    #[test]
    fn timers_are_armed_for_the_nearest_end() {
        let start = Instant::now();
        let wait = Wait { quiet_ms: Some(500), ..none() };
        let waiting = Waiting::new(1, Want::default(), wait, start).expect("a good wait");
        assert_eq!(waiting.due(None), Some(start + SECOND / 2));
        assert_eq!(waiting.due(Some(start + 9 * SECOND + SECOND * 3 / 4)), Some(start + 10 * SECOND));
    }

    #[test]
    fn a_bad_pattern_is_refused_with_its_fault() {
        let wait = Wait { regex: Some(Text::new("(").unwrap()), ..none() };
        let refused = Waiting::new(1, Want::default(), wait, Instant::now()).expect_err("refused");
        assert!(matches!(refused, Refusal::Regex(fault) if fault.contains("unclosed group")));
        let wait = Wait { regex: Some(Text::new(r"\w{1000}{1000}").unwrap()), ..none() };
        assert!(Waiting::new(1, Want::default(), wait, Instant::now()).is_err());
    }
}
