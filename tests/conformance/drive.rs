//! Running a driver: an installed client, its script here, and the server as the user of a place.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use shoal_harness::Place;

/// The folder of an installed client.
fn installed(client: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let clients = std::env::var_os("SHOAL_TEST_CLIENTS").map_or_else(|| root.join("target/clients"), PathBuf::from);
    let folder = clients.join(client);
    let marker = folder.join("installed");
    assert!(marker.exists(), "{} is missing: tests/run installs the clients", marker.display());
    folder
}

/// Where the scripts lie.
pub(crate) fn scripts() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../conformance/clients")
}

/// The words that start `shoal-mcp` as the user of a place. A client may lie where only root can reach it; the server
/// and the kernel it starts run as the test's user.
pub(crate) fn server(place: &Place) -> Vec<String> {
    let program = place.program("shoal-mcp").display().to_string();
    if nix::unistd::Uid::effective().as_raw() == place.uid() {
        return vec![program];
    }
    let uid = place.uid().to_string();
    let words = ["setpriv", "--reuid", &uid, "--regid", &uid, "--clear-groups", &program];
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A driver in the environment of a place.
fn in_place(place: &Place, program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env("HOME", place.path("home"))
        .env("XDG_RUNTIME_DIR", place.path("run"))
        .env("SHOAL_STATE_DIR", place.path("state"))
        .env("TMPDIR", place.path("tmp"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null());
    command
}

/// A driver of a Python client.
pub(crate) fn python(place: &Place, client: &str, script: &str) -> Command {
    let mut command = in_place(place, &installed(client).join("bin/python"));
    command.arg(scripts().join(script)).current_dir(place.work());
    command
}

/// A driver of a TypeScript client, which is found from the folder the driver is started in.
pub(crate) fn node(place: &Place, client: &str, script: &str) -> Command {
    let mut command = in_place(place, Path::new("node"));
    command.arg(scripts().join(script)).current_dir(installed(client));
    command
}

/// Runs a driver to its end: every check of it holds.
pub(crate) fn passes(mut command: Command) {
    let output = command.output().expect("the driver's interpreter is installed");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    assert!(out.lines().any(|line| line.starts_with("ok ")), "a driver that checked nothing: {out}\n{err}");
}
