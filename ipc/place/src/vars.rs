//! Environment variables, taken once.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Variables of an environment. An empty one counts as unset.
#[derive(Clone, Debug, Default)]
pub struct Vars(BTreeMap<OsString, OsString>);

impl Vars {
    /// Those of this process.
    pub fn of_process() -> Vars {
        Vars(std::env::vars_os().filter(|(_, value)| !value.is_empty()).collect())
    }

    /// Given ones.
    pub fn from_pairs(pairs: &[(&str, &str)]) -> Vars {
        let set = pairs.iter().filter(|(_, value)| !value.is_empty());
        Vars(set.map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// A variable.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// A variable that is UTF-8.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.to_str().map(str::to_owned)
    }

    /// A variable as a path.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    /// All variables whose names and values are UTF-8, by name.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)))
    }
}

/// Variables that a session takes over from the kernel, and from the client that creates it.
const SESSION_VARS: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "NO_COLOR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "JAVA_HOME",
    "NVM_DIR",
    "SSH_AUTH_SOCK",
];

/// Whether a session begins with a variable of this name; `also` holds more names, each with an optional trailing `*`.
pub fn is_session_var(name: &str, also: &[String]) -> bool {
    let matches = |pattern: &str| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    };
    SESSION_VARS.iter().any(|pattern| matches(pattern)) || also.iter().any(|pattern| matches(pattern))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_is_unset() {
        let vars = Vars::from_pairs(&[("A", ""), ("B", "/b")]);
        assert_eq!((vars.get("A"), vars.path("B")), (None, Some("/b".into())));
        assert_eq!(vars.texts().collect::<Vec<_>>(), [("B", "/b")]);
    }

    #[test]
    fn sessions_begin_with_listed_variables() {
        let also = ["MY_*".to_owned()];
        for (name, allowed) in
            [("PATH", true), ("LC_ALL", true), ("MY_A", true), ("AWS_SECRET", false), ("PATHS", false)]
        {
            assert_eq!(is_session_var(name, &also), allowed, "{name}");
        }
    }
}
