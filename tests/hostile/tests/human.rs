//! The user's other program, outside.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use shoal_harness::Place;
use shoal_hostile::Targets;

/// A running `human`. It takes its files away when it is dropped.
#[derive(Debug)]
pub(crate) struct Human {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    pub(crate) targets: Targets,
}

impl Human {
    pub(crate) fn start(place: &Place) -> Self {
        let program = place.program("human");
        let mut command = place.command(program);
        command.arg(place.path("home")).arg(place.path("run")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the human's program starts");
        let stdin = child.stdin.take();
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("its first line");
        let targets = Targets::from_text(&line).expect("targets");
        Self { child, stdin, stdout, targets }
    }

    /// The signals it got since the last question.
    pub(crate) fn report(&mut self) -> serde_json::Value {
        self.stdin.as_mut().expect("open").write_all(b"report\n").expect("it reads");
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).expect("JSON")
    }
}

impl Drop for Human {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let mut left = String::new();
        let said = self.stdout.read_line(&mut left);
        let ended = self.child.wait();
        if !std::thread::panicking() {
            assert!(matches!(said, Ok(0)), "left behind: {left}");
            assert!(ended.is_ok_and(|status| status.success()));
        }
    }
}
