//! Autostart on a cold machine. This program is the test and, started as `shoal-kernel`, the kernel it starts: it
//! keeps the lock, prints the readiness line or the winner's path, and answers attaches with its pid.
// A test program owns its temporary files.
#![allow(clippy::disallowed_methods, clippy::print_stdout)]

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use shoal_client::{Attach, Client, Config, ConnectError, Connection, Flags, StartError, Vars};
use shoal_wire::Method;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let value = |flag: &str| args.iter().position(|arg| arg == flag).and_then(|at| args.get(at + 1)).cloned();
    if let (Some(socket), Some(state)) = (value("--socket"), value("--state-dir")) {
        return kernel(Path::new(&socket), Path::new(&state));
    }
    const TESTS: [(&str, fn()); 4] = [
        ("twenty_clients_make_one_kernel", twenty_clients_make_one_kernel),
        ("the_lock_leads_to_another_socket", the_lock_leads_to_another_socket),
        ("a_kernel_that_ends_is_reported", a_kernel_that_ends_is_reported),
        ("who_only_renews_starts_no_kernel", who_only_renews_starts_no_kernel),
    ];
    let listing = args.iter().any(|arg| arg == "--list");
    let ignored = args.iter().any(|arg| arg == "--ignored");
    let named = |name: &str| !args.iter().skip(1).any(|arg| !arg.starts_with('-') && !name.contains(arg.as_str()));
    for (name, test) in TESTS.into_iter().filter(|(name, _)| !ignored && (listing || named(name))) {
        println!("{name}: test");
        if !listing {
            test();
        }
    }
    ExitCode::SUCCESS
}

fn kernel(socket: &Path, state: &Path) -> ExitCode {
    std::fs::create_dir_all(state).unwrap();
    let lock = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(state.join("lock")).unwrap();
    if lock.try_lock().is_err() {
        print!("{}", std::fs::read_to_string(state.join("lock")).unwrap());
        return ExitCode::from(3);
    }
    (&lock).write_all(format!("{}\n", socket.display()).as_bytes()).unwrap();
    OpenOptions::new().create(true).append(true).open(state.join("starts")).unwrap().write_all(b"start\n").unwrap();
    if state.join("broken").exists() {
        return ExitCode::from(1);
    }
    let listener = UnixListener::bind(socket).unwrap();
    println!("ready {}", socket.display());
    for stream in listener.incoming() {
        let stream = stream.unwrap();
        std::thread::spawn(move || serve(stream));
    }
    ExitCode::SUCCESS
}

#[allow(clippy::exit, reason = "the stand-in kernel ends as the real one does on kernel.shutdown")]
fn serve(stream: std::os::unix::net::UnixStream) {
    let mut writer = stream.try_clone().unwrap();
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        let request: Value = serde_json::from_str(&line).unwrap();
        if request["method"] == "kernel.shutdown" {
            std::process::exit(0);
        }
        let result = json!({"session":"default","owner":"uid:1","principal":"uid:1","created":false,"protocol":1,
            "pid":std::process::id(),"caps":{"approve":"human"}});
        writeln!(writer, "{}", json!({"jsonrpc":"2.0","id":request["id"],"result":result})).unwrap();
    }
}

struct Cold {
    dir: tempfile::TempDir,
}

impl Cold {
    fn new() -> Cold {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("bin")).unwrap();
        std::os::unix::fs::symlink(std::env::current_exe().unwrap(), dir.path().join("bin/shoal-kernel")).unwrap();
        Cold { dir }
    }

    fn config(&self, socket: &str) -> Config {
        let flags = Flags {
            socket: Some(self.dir.path().join(socket)),
            state_dir: Some(self.dir.path().join("state")),
            ..Flags::default()
        };
        let path = self.dir.path().join("bin").display().to_string();
        Config::resolve(flags, &Vars::from_pairs(&[("PATH", &path)])).unwrap()
    }

    fn client(&self, socket: &str) -> Client {
        Client::new(self.config(socket), Attach::new("default", "test"))
    }

    fn starts(&self) -> usize {
        std::fs::read_to_string(self.dir.path().join("state/starts")).unwrap().lines().count()
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

async fn stop(client: &Client) {
    let (connection, _, _) = client.attached().await.unwrap();
    assert!(connection.call(Method::KernelShutdown, &json!({})).await.is_err(), "the stand-in ends without a word");
}

fn twenty_clients_make_one_kernel() {
    let cold = Cold::new();
    run(async {
        let clients: Vec<Client> = (0..20).map(|_| cold.client("a.sock")).collect();
        let tasks: Vec<_> = clients
            .iter()
            .cloned()
            .map(|client| tokio::spawn(async move { client.attached().await.map(|(_, attached, _)| attached) }))
            .collect();
        let mut pids = Vec::new();
        for task in tasks {
            pids.push(task.await.unwrap().unwrap().all["pid"].clone());
        }
        pids.dedup();
        assert_eq!(pids.len(), 1, "{pids:?}");
        assert_eq!(cold.starts(), 1);
        stop(&clients[0]).await;
    });
}

fn the_lock_leads_to_another_socket() {
    let cold = Cold::new();
    run(async {
        let first = cold.client("a.sock");
        let pid = first.attached().await.unwrap().1.all["pid"].clone();
        let second = cold.client("b.sock");
        assert_eq!(second.attached().await.unwrap().1.all["pid"], pid);
        assert_eq!(cold.starts(), 1);
        // A lock whose kernel is gone leads nowhere, so a new kernel is started.
        stop(&first).await;
        std::fs::remove_file(cold.dir.path().join("a.sock")).unwrap();
        let third = cold.client("c.sock");
        assert_ne!(third.attached().await.unwrap().1.all["pid"], pid);
        assert_eq!(cold.starts(), 2);
        stop(&third).await;
    });
}

fn a_kernel_that_ends_is_reported() {
    let cold = Cold::new();
    std::fs::create_dir(cold.dir.path().join("state")).unwrap();
    drop(File::create(cold.dir.path().join("state/broken")).unwrap());
    let error = run(async { Connection::find(&cold.config("a.sock")).await.err() });
    match error {
        Some(ConnectError::Start(StartError::Ended { status, program })) => {
            assert_eq!(status, "exit status: 1");
            assert_eq!(program, cold.dir.path().join("bin").join(PathBuf::from("shoal-kernel")));
        }
        other => panic!("{other:?}"),
    }
}

fn who_only_renews_starts_no_kernel() {
    let cold = Cold::new();
    run(async {
        let client = cold.client("a.sock");
        let pid = client.attached().await.unwrap().1.all["pid"].clone();
        assert_eq!(client.attached_if_running().await.unwrap().1.all["pid"], pid);
        stop(&client).await;
        std::fs::remove_file(cold.dir.path().join("a.sock")).unwrap();
        let refused = client.attached_if_running().await.err();
        assert!(matches!(refused, Some(ConnectError::NoKernel { .. })), "{refused:?}");
        assert_eq!(cold.starts(), 1);
        let again = client.attached().await.unwrap().1.all["pid"].clone();
        assert_ne!(again, pid);
        assert_eq!(cold.starts(), 2);
        stop(&client).await;
    });
}
