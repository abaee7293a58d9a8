//! The journal's file against other programs of the same user, outside every session: its lock is never let go while the
//! kernel runs, and a file that somebody prepared is not trusted.

use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::json;
use shoal_harness::{Kernel, Place};

/// Runs a script of Python with the database's path as its argument.
fn python(place: &Place, script: &str) -> Output {
    let database = place.state().join("journal.db");
    place.command("python3").args(["-c", script]).arg(database).output().expect("python3 runs")
}

/// Whether another process gets to write: the one thing that must never be.
fn can_write(place: &Place) -> bool {
    let script = "import sqlite3, sys\n\
                  db = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)\n\
                  try:\n    db.execute('BEGIN IMMEDIATE'); print('free')\n\
                  except sqlite3.OperationalError as error:\n    print(error)\n";
    let output = python(place, script);
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(said == "free" || said.contains("locked"), "{said} {output:?}");
    said == "free"
}

/// A24: a process loses all its POSIX locks on a file when it closes any descriptor of it.
#[test]
fn whatever_the_kernel_does_it_never_lets_go_of_its_journal() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut client = kernel.attach("default");
    let blob = client.ok("exec", json!({"src": "'x'.repeat(300000)", "position": "value"}))["ref"].clone();
    assert!(!can_write(&place), "after a row and a stored value");
    let calls = [
        ("value.get", json!({"ref": blob})),
        ("journal.query", json!({})),
        ("journal.verify", json!({})),
        ("journal.gc", json!({"ttl_s": 0, "apply": true})),
        ("kernel.status", json!({})),
        ("token.create", json!({"principal": "agent:x"})),
        ("token.list", json!({})),
        ("session.list", json!({})),
    ];
    for (method, params) in calls {
        // Some are refused; what counts is what they leave behind.
        client.call(method, params).ok();
        assert!(!can_write(&place), "after {method}");
    }
    // Enough rows for the log to be moved into the database.
    for n in 0..40 {
        client.ok("exec", json!({"src": format!("'{n}'.repeat(200000)"), "position": "value"}));
    }
    assert!(!can_write(&place), "after a checkpoint");
    assert!(kernel.stop().success());
    assert!(can_write(&place), "the kernel is gone");
}

/// A25: schemas with something of their own, and a link in the place of the file.
#[test]
fn a_journal_that_somebody_prepared_is_refused_by_name() {
    let plants = [
        "CREATE TRIGGER planted AFTER INSERT ON entry BEGIN DELETE FROM link; END",
        "CREATE VIEW planted AS SELECT load_extension('/tmp/x')",
        "CREATE TABLE planted (x)",
        "CREATE INDEX planted ON entry (status)",
        "DROP INDEX entry_ts",
        "PRAGMA user_version = 99",
        "PRAGMA application_id = 7",
    ];
    for plant in plants {
        let place = Place::new();
        Kernel::start(&place).stop();
        let script =
            format!("import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1])\ndb.execute(\"{plant}\")\ndb.commit()");
        let planted = python(&place, &script);
        assert!(planted.status.success(), "{plant}: {planted:?}");
        refused(&place, plant);
    }
    let place = Place::new();
    Kernel::start(&place).stop();
    let (database, elsewhere) = (place.state().join("journal.db"), place.state().join("elsewhere.db"));
    std::fs::rename(&database, &elsewhere).expect("moved");
    std::os::unix::fs::symlink(&elsewhere, &database).expect("a link");
    refused(&place, "a link");
}

/// A kernel on this state directory serves nobody and says why, by the file's name.
fn refused(place: &Place, what: &str) {
    let socket = place.path("run").join("k.sock");
    let mut command = place.shoal("shoal-kernel");
    command.arg("--socket").arg(&socket).arg("--state-dir").arg(place.state());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let said = first_line_about(&mut child, Path::new("journal.db"));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id().cast_signed()), nix::sys::signal::Signal::SIGTERM)
        .expect("ours");
    child.wait().expect("it ends");
    assert!(said.is_some(), "{what}: a kernel that said nothing of it");
}

/// The first line on its stderr that names the file.
fn first_line_about(child: &mut std::process::Child, file: &Path) -> Option<String> {
    use std::io::BufRead as _;
    let stderr = std::io::BufReader::new(child.stderr.take()?);
    stderr.lines().map_while(Result::ok).find(|line| line.contains(&*file.to_string_lossy()))
}
