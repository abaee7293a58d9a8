//! The official Python MCP client, cold start included.

use std::path::PathBuf;

use shoal_harness::{Place, processes};

/// Python with the client installed, as `tests/run` made it.
fn python() -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let venv = std::env::var_os("SHOAL_TEST_VENV").map_or_else(|| root.join("target/venv"), PathBuf::from);
    let python = venv.join("bin/python");
    assert!(python.exists(), "{} is missing: run the tests by tests/run, which installs the client", python.display());
    python
}

#[test]
fn the_main_job_over_the_official_client() {
    let place = Place::new();
    place.write("a.txt", "one");
    place.write("b.txt", "two");
    let script = include_str!("main_job.py");
    // The interpreter may lie where only root can reach it; the kernel that shoal-mcp starts runs as the test's user.
    let output = std::process::Command::new(python())
        .arg("-c")
        .arg(script)
        .env("SHOAL_MCP", place.program("shoal-mcp"))
        .env("PLACE_RUN", place.path("run"))
        .env("PLACE_STATE", place.path("state"))
        .env("PLACE_WORK", place.work())
        .env("PLACE_HOME", place.path("home"))
        .env("PLACE_UID", place.uid().to_string())
        .output()
        .expect("python runs");
    processes::end_kernels_of(&place);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.trim_end().ends_with("all good"), "{out}\n{err}");
}
