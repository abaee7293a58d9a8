//! Directories, files and programs, as far as they can be looked at without a kernel.

use std::io::IsTerminal as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;
use std::process::Command;

use super::Check;
use crate::context::Context;
use crate::siblings;

/// Bytes that fit into a socket path.
const SOCKET_PATH: usize = 103;
/// Under this much room the journal is about to stop everything.
const LITTLE: u64 = 256 * 1024 * 1024;

pub(super) fn checks(context: &Context) -> Vec<Check> {
    let mut checks = vec![runtime_variable(context), runtime_dir(context), socket(context), state_dir(context)];
    checks.extend([config_dir(context), policy(context), tty()]);
    checks.extend(["sh", "git", "rg", "cargo"].map(program));
    checks
}

fn euid() -> u32 {
    shoal_sys::process::uid()
}

/// Without the variable every client has to guess, and most MCP clients pass none on.
fn runtime_variable(context: &Context) -> Check {
    const NAME: &str = "XDG_RUNTIME_DIR";
    let usual = format!("/run/user/{}", euid());
    match context.vars().path(NAME) {
        None if Path::new(&usual).is_dir() => Check::ok(NAME, format!("not set; {usual} is used as if it were")),
        None => Check::ok(NAME, "not set and no /run/user/UID: the socket lies below the temporary directory"),
        Some(path) => match std::fs::metadata(&path) {
            Err(e) => Check::fail(NAME, format!("{}: {e}", path.display()), format!("unset it, or set it to {usual}")),
            Ok(meta) if meta.uid() != euid() => Check::fail(
                NAME,
                format!("{} belongs to uid {}; it came from another user's environment", path.display(), meta.uid()),
                format!("set it to {usual} (after su or sudo: use `machinectl shell` or `sudo -i`)"),
            ),
            Ok(_) => Check::ok(NAME, path.display().to_string()),
        },
    }
}

/// Whether a directory is ours alone.
fn private(name: &str, path: &Path) -> Check {
    match std::fs::symlink_metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            Check::ok(name, format!("{} is made at the first start", path.display()))
        }
        Err(e) => Check::fail(name, format!("{}: {e}", path.display()), "choose another place, or mend its parents"),
        Ok(meta) if meta.is_symlink() => {
            Check::fail(name, format!("{} is a symbolic link", path.display()), format!("rm {}", path.display()))
        }
        Ok(meta) if meta.uid() != euid() => Check::fail(
            name,
            format!("{} belongs to uid {}", path.display(), meta.uid()),
            "run as its owner, or choose another place",
        ),
        Ok(meta) if meta.mode() & 0o077 != 0 => {
            Check::fail(name, format!("{} lets others in", path.display()), format!("chmod 700 {}", path.display()))
        }
        Ok(_) => Check::ok(name, path.display().to_string()),
    }
}

fn runtime_dir(context: &Context) -> Check {
    match context.config.socket.parent() {
        Some(folder) => private("runtime dir", folder),
        None => Check::fail("runtime dir", "the socket path has no folder", "set SHOAL_SOCKET to an absolute path"),
    }
}

/// The length of the path, and what lies there.
fn socket(context: &Context) -> Check {
    const NAME: &str = "socket path";
    let path = &context.config.socket;
    let bytes = path.as_os_str().len();
    if bytes > SOCKET_PATH {
        return Check::fail(
            NAME,
            format!("{} has {bytes} bytes, at most {SOCKET_PATH} fit", path.display()),
            "set SHOAL_SOCKET or a shorter XDG_RUNTIME_DIR",
        );
    }
    let room = format!("{} ({bytes} of {SOCKET_PATH} bytes)", path.display());
    match std::fs::symlink_metadata(path) {
        Err(_) => Check::ok(NAME, format!("{room}, nobody listens yet")),
        Ok(meta) if !meta.file_type().is_socket() => Check::fail(
            NAME,
            format!("{} is no socket", path.display()),
            format!("it is never removed: mv {0} {0}.old", path.display()),
        ),
        Ok(_) => match std::os::unix::net::UnixStream::connect(path) {
            Ok(_) => Check::ok(NAME, room),
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionRefused => Check::warn(
                NAME,
                format!("{room}: a kernel left it behind, nobody listens"),
                "the next kernel replaces it: shoal kernel start",
            ),
            Err(e) => Check::fail(NAME, format!("{room}: {e}"), "run as the user the kernel runs as"),
        },
    }
}

/// Whether it is private, on what it lies, and whether there is room.
fn state_dir(context: &Context) -> Check {
    const NAME: &str = "state dir";
    let Some(path) = &context.config.state_dir else {
        return Check::fail(NAME, "there is no home directory", "set SHOAL_STATE_DIR, or HOME");
    };
    let private = private(NAME, path);
    if private.remedy.is_some() {
        return private;
    }
    // What is not made yet will lie where its nearest parent does.
    if let Some(nearest) = path.ancestors().find(|dir| dir.exists())
        && let Err(e) = rustix::fs::access(nearest, rustix::fs::Access::WRITE_OK)
    {
        let detail = format!("{} cannot be made: {}: {e}", path.display(), nearest.display());
        return Check::fail(NAME, detail, "name a place you can write to: SHOAL_STATE_DIR");
    }
    let Some(place) = path.ancestors().find_map(|dir| shoal_sys::file_system::of(dir).ok()) else { return private };
    let here = format!("{} on {}", private.detail, place.name);
    if place.is_network {
        return Check::fail(
            NAME,
            format!("{here}, whose locks cannot be relied on"),
            "choose a local one: SHOAL_STATE_DIR",
        );
    }
    if place.free < LITTLE {
        return Check::warn(
            NAME,
            format!("{here}, {} MiB free", place.free / (1024 * 1024)),
            "free some space, or collect old outputs: shoal history gc --apply",
        );
    }
    if place.is_memory {
        return Check::warn(
            NAME,
            format!("{here}: the journal is gone after the next start of the machine"),
            "choose a directory on a disk: SHOAL_STATE_DIR",
        );
    }
    Check::ok(NAME, here)
}

fn config_dir(context: &Context) -> Check {
    const NAME: &str = "config dir";
    match context.config_dir() {
        None => {
            Check::warn(NAME, "there is no home directory, so no policy file is found", "set XDG_CONFIG_HOME, or HOME")
        }
        Some(dir) => match std::fs::metadata(&dir) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                Check::ok(NAME, format!("{} is not there", dir.display()))
            }
            Err(e) => Check::fail(NAME, format!("{}: {e}", dir.display()), "make it readable for you"),
            Ok(meta) if meta.mode() & 0o022 != 0 => Check::fail(
                NAME,
                format!("{}: others may change your policy", dir.display()),
                format!("chmod 700 {}", dir.display()),
            ),
            Ok(_) => Check::ok(NAME, dir.display().to_string()),
        },
    }
}

/// Compiles the policy files with the program that the kernel uses.
fn policy(context: &Context) -> Check {
    const NAME: &str = "policy";
    let leash = context.vars().path("SHOAL_POLICY").or_else(|| Some(context.config_dir()?.join("leash.toml")));
    let Some(leash) = leash.filter(|path| path.exists()) else {
        return Check::ok(NAME, "no leash.toml: the built-in policy allows you everything");
    };
    let home = context.vars().path("HOME").unwrap_or_default();
    let compiled = siblings::find("shoal-policy").map_err(|e| e.to_string()).and_then(|program| {
        let words = ["--uid", "0", "--home"];
        let output = Command::new(program).args(words).arg(&home).arg("--check").arg(&leash).output();
        match output {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(e) => Err(e.to_string()),
        }
    });
    match compiled {
        Ok(()) => Check::ok(NAME, leash.display().to_string()),
        Err(why) => Check::fail(NAME, why, format!("edit {}, then: shoal policy check", leash.display())),
    }
}

/// What the interactive commands need.
fn tty() -> Check {
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let detail = if is_terminal { "attach and top can be used" } else { "none here: attach and top need one" };
    Check::ok("tty", detail)
}

fn program(tool: &str) -> Check {
    let name = format!("tool {tool}");
    let path = std::env::var_os("PATH").unwrap_or_default();
    match std::env::split_paths(&path).map(|folder| folder.join(tool)).find(|p| p.is_file()) {
        Some(path) => Check::ok(&name, path.display().to_string()),
        None if tool == "sh" => Check::fail(&name, "not in PATH: `sh { }` blocks cannot run", "add /bin to PATH"),
        None => Check::ok(&name, "not in PATH; only needed by those who use it"),
    }
}
