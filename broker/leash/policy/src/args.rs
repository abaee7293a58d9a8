//! The command line.

use std::path::PathBuf;

/// Usage, shown with every error of the command line.
const USAGE: &str = "usage: shoal-policy --uid N --home PATH [--built-in] [--check LEASH [SHOAL]]";

/// What the supervisor (or a person, with `--check`) asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Args {
    /// Uid of the kernel, for the built-in policy.
    pub(crate) uid: u32,
    /// What a leading `~/` stands for; empty when there is no home.
    pub(crate) home: String,
    /// There is no policy file: compile the built-in policy.
    pub(crate) built_in: bool,
    /// Only check these files.
    pub(crate) check: Option<Vec<PathBuf>>,
}

impl Args {
    /// Reads the words after the program's name.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut args = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--uid" => {
                    let text = words.next().unwrap_or_default();
                    args.uid = text.parse().map_err(|_| format!("--uid takes a number, got {text:?}; {USAGE}"))?;
                }
                "--home" => args.home = words.next().ok_or_else(|| format!("--home takes a path; {USAGE}"))?,
                "--built-in" => args.built_in = true,
                "--check" => {
                    let paths: Vec<PathBuf> = words.by_ref().map(PathBuf::from).collect();
                    if paths.is_empty() || paths.len() > 2 {
                        return Err(format!("--check takes one or two files; {USAGE}"));
                    }
                    args.check = Some(paths);
                }
                other => return Err(format!("unknown argument {other:?}; {USAGE}")),
            }
        }
        Ok(args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Args, String> {
        Args::parse(words.iter().map(|w| (*w).to_owned()))
    }

    #[test]
    fn words() {
        let args = parse(&["--uid", "1000", "--home", "/home/me", "--built-in"]).expect("parses");
        assert_eq!(args, Args { uid: 1000, home: "/home/me".into(), built_in: true, check: None });
        assert!(parse(&["--uid", "x"]).unwrap_err().contains("--uid takes a number"));
        assert!(parse(&["--nope"]).unwrap_err().contains("unknown argument"));
        assert!(parse(&["--check"]).unwrap_err().contains("one or two files"));
    }
}
