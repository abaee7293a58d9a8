//! Packages and service managers: what is installed is what runs. Each test is a script in a throw-away machine (see
//! `machine`), with the package made from the programs of this build.
//!
//! Making namespaces needs root; for anybody else these tests say so and pass.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "tests start processes and read files")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use shoal_harness::{Client, Place, processes, until};

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging")
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Why a test cannot run here, printed so that nobody takes it for done.
fn needs_root() -> bool {
    let is_root = shoal_harness::place::is_root();
    if !is_root {
        eprintln!("not run: throw-away machines need root");
    }
    !is_root
}

/// Runs a command to its end and returns what it printed; a failure shows everything.
fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}\n{errors}", output.status);
    text
}

/// Makes a package of the programs of this build.
fn package(kind: &str, into: &Path) -> PathBuf {
    let script = repository().join("packaging").join(kind);
    let made = run(Command::new(script)
        .arg(shoal_harness::programs::built())
        .arg(into)
        .envs([("STAGE_STRIP", "1"), ("DEB_LEVEL", "1")]));
    PathBuf::from(made.trim())
}

/// Runs a script in a machine over `root`.
fn in_machine(how: &str, root: &Path, script: &str, files: &[PathBuf]) {
    let mut command = Command::new(here().join("machine"));
    command.arg(how).arg(root).arg(here().join(script)).args(files);
    command.args(["lib.sh", "main-job.sh"].map(|name| here().join(name)));
    let said = run(command.env("MACHINE_TIMEOUT", "110"));
    assert!(said.trim_end().ends_with("passed"), "{said}");
}

/// A minimal system without anything of this machine; made once, kept beside the build.
fn clean_root() -> PathBuf {
    let root = shoal_harness::programs::built().join("../packaging/root");
    run(Command::new(here().join("clean-root")).arg(&root));
    root
}

#[test]
fn the_package_works_in_a_clean_root_and_goes() {
    if needs_root() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let deb = package("deb", dir.path());
    in_machine("enter", &clean_root(), "deb.sh", &[deb]);
}

#[test]
fn the_tarball_works_for_one_user_and_goes() {
    if needs_root() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let tarball = package("tarball", dir.path());
    let sum = PathBuf::from(format!("{}.sha256", tarball.display()));
    in_machine("enter", &clean_root(), "tarball.sh", &[tarball, sum]);
}

#[test]
fn a_build_is_installed_works_and_goes() {
    let place = Place::new();
    let home = place.path("home");
    // A build directory whose release programs are those of this build.
    let target = place.path("run").join("target");
    std::fs::create_dir(&target).expect("a directory");
    let install = |words: &[&str]| {
        let mut command = Command::new(repository().join("packaging/install"));
        // Not the kernel of whoever runs the tests.
        command.args(words).env("HOME", &home).env("XDG_RUNTIME_DIR", place.path("run"));
        let output = command.env("CARGO_TARGET_DIR", &target).output();
        let output = output.expect("the installer runs");
        let said = [&output.stdout[..], &output.stderr[..]].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    };
    let (code, said) = install(&[]);
    assert!(code == Some(1) && said.contains("cargo build --release --workspace --bins"), "{said}");
    std::os::unix::fs::symlink(shoal_harness::programs::built(), target.join("release")).expect("a link");
    let (code, said) = install(&[]);
    assert!(code == Some(0) && said.contains("shoal exec '6 * 7'"), "{said}");
    assert_eq!(run(Command::new(home.join(".local/bin/shoal")).arg("--version")).split(' ').next(), Some("shoal"));
    let (code, said) = install(&["--uninstall"]);
    assert!(code == Some(0) && said.contains("state and configuration are kept"), "{said}");
    assert!(!home.join(".local/bin").exists() && !home.join(".local/libexec").exists());
}

#[test]
fn the_user_service_under_a_real_systemd() {
    if needs_root() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let deb = package("deb", dir.path());
    in_machine("boot", Path::new("/"), "systemd.sh", &[deb]);
}

#[test]
fn a_socket_is_taken_from_whoever_made_it() {
    let place = Place::new();
    let socket = place.path("run").join("a.sock");
    let state = place.path("state");
    let mut activate = place.command("systemd-socket-activate");
    activate.arg("-l").arg(&socket).arg("--fdname=shoal").arg(place.program("shoal-kernel"));
    // What a service manager would set besides.
    activate.arg("--state-dir").arg(&state).env("MAINPID", "1").stdout(Stdio::null()).stderr(Stdio::null());
    let mut kernel = activate.spawn().expect("systemd-socket-activate runs");
    until("the socket is there", || socket.exists());
    // The first connection is what starts the kernel, and it is served.
    let mut client = Client::connect(&socket);
    client.attach("default");
    assert_eq!(client.render("6 * 7"), "42");
    let environment = client.render("^env");
    let is_left = |name: &str| environment.lines().any(|line| line.starts_with(name));
    for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "NOTIFY_SOCKET", "WATCHDOG_USEC", "MAINPID"] {
        assert!(!is_left(name), "{name} reached a command:\n{environment}");
    }
    let open = client.render("sh { ls /proc/self/fd }");
    // 0, 1, 2 and the directory itself.
    assert_eq!(open.split_whitespace().count(), 4, "{open}");
    let pid = i32::try_from(kernel.id()).expect("a pid");
    let below = processes::tree(pid);
    assert!(below.iter().any(|process| process.comm == "shoal-broker"), "{below:?}");
    processes::signal(pid, nix::sys::signal::Signal::SIGTERM);
    until("the kernel ends", || kernel.try_wait().expect("a child of ours").is_some());
    for process in below {
        assert!(!processes::is_running(process.pid), "{process:?} is left");
    }
    assert!(socket.exists(), "the socket is not the kernel's to remove");
}

#[test]
fn man_pages_and_completions_are_well_formed() {
    let place = Place::new();
    let dir = place.path("tmp").join("man");
    let written = run(place.shoal("shoal").args(["man", "--dir"]).arg(&dir));
    assert!(written.contains("pages"), "{written}");
    let own = std::fs::read_dir(repository().join("packaging/man")).expect("pages").flatten().map(|e| e.path());
    let made = std::fs::read_dir(&dir).expect("pages").flatten().map(|e| e.path());
    let mut pages: Vec<PathBuf> = own.chain(made).collect();
    pages.sort();
    assert!(pages.len() > 20, "{pages:?}");
    for page in pages {
        let output = Command::new("man")
            .args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"])
            .arg(&page)
            .env("MANWIDTH", "100")
            .stdin(Stdio::null())
            .output()
            .expect("man runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{}: {said}", page.display());
    }
    let script = place.write("completion.bash", run(place.shoal("shoal").args(["completions", "bash"])));
    let asked = "source $0; COMP_WORDS=(shoal ses); COMP_CWORD=1; _shoal shoal ses shoal; echo ${COMPREPLY[@]}";
    let completed = run(place.command("bash").arg("-c").arg(asked).arg(&script));
    assert_eq!(completed.trim(), "session");
    for shell in ["zsh", "fish"] {
        assert!(run(place.shoal("shoal").args(["completions", shell])).contains("session"), "{shell}");
    }
}

#[test]
fn examples_of_policies_compile() {
    let place = Place::new();
    for entry in std::fs::read_dir(repository().join("packaging/examples")).expect("examples").flatten() {
        let path = place.write("leash.toml", std::fs::read(entry.path()).expect("readable"));
        let said = run(place.shoal("shoal").args(["policy", "check"]).arg(&path));
        assert!(said.contains("well formed"), "{}: {said}", entry.path().display());
    }
}

#[test]
fn the_agent_of_launchd_is_a_property_list_with_known_keys() {
    let text = std::fs::read_to_string(repository().join("packaging/launchd/dev.shoal.kernel.plist")).expect("there");
    let script = "import plistlib, sys, json; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))";
    let mut python = Command::new("python3")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("runs");
    std::io::Write::write_all(&mut python.stdin.take().expect("piped"), text.as_bytes()).expect("read");
    let output = python.wait_with_output().expect("ends");
    let agent: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a property list");
    assert_eq!(agent["Sockets"]["shoal"]["SockPathMode"], json!(0o600));
    assert_eq!(agent["RunAtLoad"], json!(false));
    // From launchd.plist(5).
    let known = [
        "Label",
        "ProgramArguments",
        "Sockets",
        "RunAtLoad",
        "KeepAlive",
        "ExitTimeOut",
        "ProcessType",
        "LimitLoadToSessionType",
        "Umask",
        "SoftResourceLimits",
        "StandardErrorPath",
    ];
    for key in agent.as_object().expect("a dictionary").keys() {
        assert!(known.contains(&key.as_str()), "{key}");
    }
}
