//! The command line, and the variables that stand in for it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use shoal_place::Vars;
use shoal_proto::section::QUOTAS;

/// Shown after every error of the command line.
pub(crate) const USAGE: &str = "usage: shoal-kernel [--session NAME] [--socket PATH] [--state-dir PATH] [--policy FILE] \
[--config DIR] [--require-token] [--idle-ttl SECONDS] [--limit NAME=VALUE]... [--ephemeral] [--verbose]";

/// Variables that are settings of their own, and the quota names they travel under.
const SETTINGS: &[(&str, &str)] = &[
    ("SHOAL_CAPTURE_CAP_BYTES", "capture_cap_bytes"),
    ("SHOAL_CAPTURE_STORE_CAP_BYTES", "capture_store_cap_bytes"),
    ("SHOAL_CAPTURE_SESSION_CAP_BYTES", "capture_session_cap_bytes"),
    ("SHOAL_CAPTURE_TOTAL_CAP_BYTES", "capture_total_cap_bytes"),
    ("SHOAL_FRAME_READ_TIMEOUT_MS", "frame_read_timeout_ms"),
];

/// What the kernel was asked to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Session name, for the socket's file name and listings.
    pub(crate) session: String,
    /// Socket path, when one was named.
    pub(crate) socket: Option<PathBuf>,
    /// State directory, when one was named.
    pub(crate) state_dir: Option<PathBuf>,
    /// Policy file, when one was named: it must exist then.
    pub(crate) policy: Option<PathBuf>,
    /// Configuration directory, when one was named.
    pub(crate) config: Option<PathBuf>,
    /// Refuse tokenless connections.
    pub(crate) require_token: bool,
    /// Seconds an unused session lives, for sections that say nothing.
    pub(crate) idle_ttl: Option<u64>,
    /// Changed quotas.
    pub(crate) limits: BTreeMap<String, u64>,
    /// State in a private temporary directory, gone at exit.
    pub(crate) ephemeral: bool,
    /// More log lines.
    pub(crate) verbose: bool,
}

/// Why a command line is refused; ends in the usage.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {USAGE}")]
pub(crate) struct UsageError {
    what: String,
}

fn refused(what: impl Into<String>) -> UsageError {
    UsageError { what: what.into() }
}

impl Options {
    /// Reads the words after the program's name, over what the variables say.
    pub(crate) fn parse(words: impl IntoIterator<Item = OsString>, vars: &Vars) -> Result<Self, UsageError> {
        let mut options = Self::from_vars(vars)?;
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let word = word.into_string().map_err(|word| refused(format!("{} is not UTF-8", word.display())))?;
            let (flag, inline) = match word.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag.to_owned(), Some(OsString::from(value))),
                Some(_) | None => (word, None),
            };
            options.flag(&flag, inline, &mut words)?;
        }
        if options.ephemeral && options.state_dir.is_some() {
            return Err(refused("--ephemeral has a directory of its own; drop --state-dir"));
        }
        Ok(options)
    }

    fn from_vars(vars: &Vars) -> Result<Self, UsageError> {
        let session = match vars.get("SHOAL_SESSION") {
            Some(name) => name.to_str().ok_or_else(|| refused("SHOAL_SESSION is not UTF-8"))?.to_owned(),
            None => "default".to_owned(),
        };
        let mut limits = BTreeMap::new();
        for name in QUOTAS {
            let variable = format!("SHOAL_MAX_{}", name.to_ascii_uppercase());
            if let Some(value) = vars.get(&variable) {
                limits.insert((*name).to_owned(), number(&variable, value)?);
            }
        }
        for (variable, name) in SETTINGS {
            if let Some(value) = vars.get(variable) {
                limits.insert((*name).to_owned(), number(variable, value)?);
            }
        }
        let (socket, state_dir) = (vars.path("SHOAL_SOCKET"), vars.path("SHOAL_STATE_DIR"));
        Ok(Self { session, socket, state_dir, policy: vars.path("SHOAL_POLICY"), limits, ..Self::default() })
    }

    fn flag(
        &mut self,
        flag: &str,
        inline: Option<OsString>,
        words: &mut impl Iterator<Item = OsString>,
    ) -> Result<(), UsageError> {
        if let Some(switch) = self.switch(flag) {
            *switch = true;
            return match inline {
                Some(_) => Err(refused(format!("{flag} takes no value"))),
                None => Ok(()),
            };
        }
        if !matches!(
            flag,
            "--session" | "--socket" | "--state-dir" | "--policy" | "--config" | "--idle-ttl" | "--limit"
        ) {
            return Err(refused(format!("unknown argument {flag:?}")));
        }
        let value = inline.or_else(|| words.next()).filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| refused(format!("{flag} takes a value")))?;
        match flag {
            "--session" => {
                self.session = value.into_string().map_err(|_raw| refused("--session takes UTF-8"))?;
            }
            "--socket" => self.socket = Some(value.into()),
            "--state-dir" => self.state_dir = Some(value.into()),
            "--policy" => self.policy = Some(value.into()),
            "--config" => self.config = Some(value.into()),
            "--idle-ttl" => self.idle_ttl = Some(number(flag, &value)?),
            _limit => self.limit(&value)?,
        }
        Ok(())
    }

    fn switch(&mut self, flag: &str) -> Option<&mut bool> {
        match flag {
            "--require-token" => Some(&mut self.require_token),
            "--ephemeral" => {
                // A variable of the environment does not contradict the flag; the flag wins.
                self.state_dir = None;
                Some(&mut self.ephemeral)
            }
            "--verbose" => Some(&mut self.verbose),
            _ => None,
        }
    }

    fn limit(&mut self, value: &OsStr) -> Result<(), UsageError> {
        let text = value.to_str().unwrap_or_default();
        let (name, value) =
            text.split_once('=').ok_or_else(|| refused(format!("--limit takes NAME=VALUE, got {text:?}")))?;
        if !QUOTAS.contains(&name) {
            return Err(refused(format!("--limit knows no {name:?}; one of {}", QUOTAS.join(" "))));
        }
        let value = number("--limit", OsStr::new(value))?;
        self.limits.insert(name.to_owned(), value);
        Ok(())
    }
}

fn number(of: &str, value: &OsStr) -> Result<u64, UsageError> {
    let number = value.to_str().and_then(|value| value.parse().ok());
    number.ok_or_else(|| refused(format!("{of} takes a whole number, got {:?}", value.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str], vars: &Vars) -> Result<Options, UsageError> {
        Options::parse(words.iter().map(OsString::from), vars)
    }

    #[test]
    fn flags_lie_over_variables() {
        let vars = Vars::from_pairs(&[
            ("SHOAL_SESSION", "a"),
            ("SHOAL_SOCKET", "/s"),
            ("SHOAL_MAX_PTYS", "3"),
            ("SHOAL_POLICY", ""),
        ]);
        let options =
            parse(&["--session", "b", "--limit", "tasks=7", "--idle-ttl=60", "--require-token"], &vars).unwrap();
        assert_eq!(options.session, "b");
        assert_eq!(options.socket, Some("/s".into()));
        assert_eq!(options.policy, None);
        assert_eq!(options.idle_ttl, Some(60));
        assert!(options.require_token);
        assert_eq!(options.limits, BTreeMap::from([("ptys".to_owned(), 3), ("tasks".to_owned(), 7)]));
    }

    #[test]
    fn the_default_session_is_default() {
        assert_eq!(parse(&[], &Vars::default()).unwrap().session, "default");
    }

    #[test]
    fn settings_travel_as_limits() {
        let vars = Vars::from_pairs(&[("SHOAL_FRAME_READ_TIMEOUT_MS", "500")]);
        assert_eq!(parse(&[], &vars).unwrap().limits["frame_read_timeout_ms"], 500);
    }

    #[test]
    fn each_mistake_has_its_sentence() {
        for (words, sentence) in [
            (&["--nope"][..], "unknown argument \"--nope\""),
            (&["--socket"], "--socket takes a value"),
            (&["--verbose=1"], "--verbose takes no value"),
            (&["--idle-ttl", "soon"], "--idle-ttl takes a whole number, got \"soon\""),
            (&["--limit", "tasks"], "--limit takes NAME=VALUE, got \"tasks\""),
            (&["--limit", "cats=1"], "--limit knows no \"cats\"; one of connections unattached"),
            (&["--ephemeral", "--state-dir", "/x"], "--ephemeral has a directory of its own"),
        ] {
            let error = parse(words, &Vars::default()).unwrap_err().to_string();
            assert!(error.starts_with(sentence), "{error}");
            assert!(error.ends_with(USAGE));
        }
        assert!(parse(&[], &Vars::from_pairs(&[("SHOAL_MAX_TASKS", "x")])).is_err());
    }
}
