//! The attack list against a stand-in of the kernel, from four places.
//!
//! Every attack has its control: without a jail it succeeds, or the list says why it cannot on any machine. The
//! expected results are a table beside this file.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::Path;

use shoal_jail::Step;
use shoal_jail::plan::Plan;
use shoal_proto::section::{Network, Section};
use shoal_proto::supervisor_launcher::Domain;
use shoal_sys::spawn::{Child, Command, Program};

use crate::Test;
use crate::rig::{Rig, globs, permissive};

pub(crate) const TESTS: &[Test] = &[
    ("attacks_fail_inside_and_succeed_outside", attacks_fail_inside_and_succeed_outside),
    ("every_layer_shows", every_layer_shows),
];

const SCRIPT: &str = include_str!("attacks.py");
const EXPECTED: &str = include_str!("attacks.txt");

struct Targets {
    victim: Child,
    _abstract: UnixListener,
    abstract_name: String,
    tcp: std::net::TcpListener,
    terminal: shoal_sys::pty::Pty,
    mark: std::path::PathBuf,
    _udp: std::net::UdpSocket,
}

impl Targets {
    fn new() -> Self {
        use std::os::linux::net::SocketAddrExt;
        let words = ["sleep", "1000"].map(|word| std::ffi::CString::new(word).unwrap()).to_vec();
        let null = shoal_sys::fd::null().unwrap();
        let command = Command::new(Program::Path(c"/bin/sleep".to_owned()), words);
        let victim = command.fds(vec![null.as_fd(); 3]).spawn().unwrap();
        let abstract_name = format!("shoal-attack-{}", std::process::id());
        let name = std::os::unix::net::SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = tcp.local_addr().unwrap();
        let mark = std::env::temp_dir().join(format!("shoal-attack-{}", victim.pid));
        std::fs::write(&mark, "host").unwrap();
        Self {
            victim,
            _abstract: UnixListener::bind_addr(&name).unwrap(),
            abstract_name,
            tcp,
            terminal: shoal_sys::pty::open(80, 24).unwrap(),
            mark,
            _udp: std::net::UdpSocket::bind(address).unwrap(),
        }
    }

    /// The script with what it attacks.
    fn script(&self, rig: &Rig) -> String {
        let terminal = std::fs::read_link(format!("/proc/self/fd/{}", fd(&self.terminal.follower))).unwrap();
        format!(
            "python3 - {} {} {} {} {} {} {} <<'END'\n{SCRIPT}\nEND\n",
            self.victim.pid,
            rig.home("state"),
            rig.home("run/k.sock"),
            rig.dir.join("home").display(),
            self.abstract_name,
            self.tcp.local_addr().unwrap().port(),
            terminal.display(),
        )
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        let _gone = shoal_sys::process::kill(self.victim.pid, libc::SIGKILL);
        let _removed = std::fs::remove_file(&self.mark);
    }
}

fn fd(of: &impl AsFd) -> i32 {
    std::os::fd::AsRawFd::as_raw_fd(&of.as_fd())
}

fn results(text: &str) -> BTreeMap<String, String> {
    let pair = |line: &str| line.split_once(' ').map(|(name, result)| (name.to_owned(), result.to_owned()));
    text.lines().filter_map(pair).collect()
}

fn attacks_fail_inside_and_succeed_outside() {
    let rig = Rig::new();
    let targets = Targets::new();
    let host = rig.host();
    let mut weak = host.clone();
    weak.namespaces = false;
    let scoped = Section { fs_read: globs(&[&format!("{}/**", rig.home("work"))]), ..Section::default() };
    let home = globs(&[&format!("{}/**", rig.dir.join("home/work").display())]);
    let narrow = Section { fs_read: home.clone(), fs_write: home, network: Network::None, ..Section::default() };
    let plans = [
        ("permissive", rig.plan(&permissive(), &host, Path::new("/"), None)),
        ("scoped", rig.plan(&scoped, &host, Path::new("/"), None)),
        ("L2", rig.plan(&narrow, &weak, Path::new("/"), None)),
    ];
    let script = targets.script(&rig);
    let mut got = vec![("none", results(&Rig::shell_outside(&script)))];
    got.extend(plans.iter().map(|(name, plan)| (*name, results(&rig.shell_in(plan, &script)))));
    let mut table = format!("{:<20}", "attack");
    for (name, _) in &got {
        table.push_str(&format!("{name:<14}"));
    }
    for attack in got[0].1.keys() {
        table.push_str(&format!("\n{attack:<20}"));
        for (_, results) in &got {
            table.push_str(&format!("{:<14}", results.get(attack).map_or("missing", String::as_str)));
        }
    }
    let wrong: Vec<&str> =
        table.lines().filter(|line| !EXPECTED.lines().any(|expected| fits(expected, line))).collect();
    assert!(wrong.is_empty(), "\nnot as in attacks.txt:\n{}\n\nall:\n{table}", wrong.join("\n"));
    let rows = |text: &str| text.lines().filter(|line| line.starts_with('A')).count();
    assert_eq!(rows(&table), rows(EXPECTED), "every attack of attacks.txt was tried");
}

/// A layer is taken off a permissive session's jail, and the attack it is there for gives another result.
///
/// Layers are data, so taking one off is editing a plan; no build has a switch for it.
fn every_layer_shows() {
    let rig = Rig::new();
    let targets = Targets::new();
    let script = targets.script(&rig);
    let host = rig.host();
    let intact = || rig.plan(&permissive(), &host, Path::new("/"), None);
    let run = |plan: &Plan| results(&rig.shell_in(plan, &script));
    let (state, socket, rc) = (rig.home("state"), rig.home("run/k.sock"), rig.home(".bashrc"));
    let without = |off: &dyn Fn(&Step) -> bool| {
        let mut plan = intact();
        let before = plan.steps.len();
        plan.steps.retain(|step| !off(step));
        assert!(plan.steps.len() < before, "no such step");
        plan
    };
    let is = |path: &Path, name: &str| path == Path::new(name);
    let off: Vec<(&str, Plan, &[&str])> = vec![
        (
            "filter",
            Plan { domain: Domain { filter: false, ..intact().domain }, ..intact() },
            &["A49-uring", "A50-keyctl"],
        ),
        ("domain", Plan { domain: Domain { files: None, ..intact().domain }, ..intact() }, &["A41-abstract"]),
        (
            "hole",
            without(&|step| matches!(step, Step::Hide(path) if is(path, &state))),
            &["A20-open", "A20-list", "A21-chmod", "A33-link"],
        ),
        (
            "pins",
            without(
                &|step| matches!(step, Step::Pin(path) if state.starts_with(path.to_str().unwrap()) && !is(path, &state)),
            ),
            &["A22-swap-ancestor"],
        ),
        ("cover", without(&|step| matches!(step, Step::Cover(path) if is(path, &socket))), &["A40-connect"]),
        ("read-only", without(&|step| matches!(step, Step::ReadOnly(path, _) if is(path, &rc))), &["A28-rc"]),
        ("tmp", without(&|step| matches!(step, Step::Memory(path, _) if is(path, "/tmp"))), &["A27-tmp"]),
        (
            "nested",
            Plan {
                domain: Domain { filter: false, ..intact().domain },
                ..without(&|step| matches!(step, Step::Setting(..)))
            },
            &["A52-userns"],
        ),
    ];
    let sound = run(&intact());
    for (layer, plan, attacks) in off {
        let weak = run(&plan);
        if layer == "tmp" {
            // Without a directory of its own the jail made its mount point in the host's.
            let _absent_for_users = std::fs::remove_dir("/tmp/.dev");
        }
        for attack in attacks {
            assert_ne!(weak.get(*attack), sound.get(*attack), "{layer} does nothing against {attack}");
            // A50 has a second layer: the keyring of another user namespace.
            let through = *attack == "A50-keyctl" || weak.get(*attack).is_some_and(|result| result == "ok");
            assert!(through, "{layer} off, {attack}: {:?}", weak.get(*attack));
        }
    }
}

/// Whether a row is the expected one. A cell `x|y` is `x` for root and `y` for others.
fn fits(expected: &str, row: &str) -> bool {
    let root = shoal_sys::process::uid() == 0;
    let choose = |cell: &str| match cell.split_once('|') {
        Some((by_root, by_others)) => if root { by_root } else { by_others }.to_owned(),
        None => cell.to_owned(),
    };
    expected.split_whitespace().map(choose).eq(row.split_whitespace().map(str::to_owned))
}
