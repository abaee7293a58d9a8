//! A user with a home, a repository, a program of their own and a kernel: what an attack is tried on.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use shoal_harness::{Client, ControlGroup, Kernel, Place};
use shoal_hostile::Targets;

use crate::human::Human;

/// Attack and what came of it.
pub(crate) type Outcomes = BTreeMap<String, String>;

/// Files that programs obey by themselves, in the home and in the repository.
const OBEYED: &[&str] = &[
    "../home/.bashrc",
    "../home/.ssh/authorized_keys",
    "../home/.config/autostart/x.desktop",
    "../home/.gitconfig",
    "repo/.envrc",
    "repo/.vscode/tasks.json",
    "repo/.git/HEAD",
    "repo/.git/config",
    "repo/.git/hooks/README",
    "repo/.git/info/attributes",
];

/// Who a session belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Principal {
    /// The user, who may do everything.
    Permissive,
    /// An agent with one directory, no network and limits.
    Scoped,
}

impl Principal {
    pub(crate) const BOTH: [Self; 2] = [Self::Permissive, Self::Scoped];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Permissive => "permissive",
            Self::Scoped => "scoped",
        }
    }
}

/// The place of an attack, everything in it but the kernel.
#[derive(Debug)]
pub(crate) struct Ground {
    human: Human,
    pub(crate) place: Place,
    /// A program that runs as root whoever starts it.
    set_user_id: PathBuf,
}

impl Ground {
    /// `replaced` are programs of the kernel that another one stands in for.
    pub(crate) fn new(replaced: &[(&str, &Path)]) -> Self {
        let place = Place::visible(env!("CARGO_TARGET_TMPDIR")).with_programs(replaced);
        for (name, source) in [("attacker", env!("CARGO_BIN_EXE_attacker")), ("human", env!("CARGO_BIN_EXE_human"))] {
            std::fs::copy(source, place.program(name)).expect("a copied program");
        }
        let set_user_id = set_user_id(&place);
        for name in OBEYED {
            place.write(name, "# mine\n");
        }
        place.write("../home/.config/shoal/leash.toml", policy(&place));
        let human = Human::start(&place);
        Self { human, place, set_user_id }
    }

    fn targets(&self) -> Targets {
        Targets {
            state: self.place.state().to_path_buf(),
            socket: self.place.path("run").join("k.sock"),
            home: self.place.path("home"),
            work: self.place.work().join("repo"),
            programs: self.place.program(""),
            setuid: self.set_user_id.clone(),
            ..self.human.targets.clone()
        }
    }

    /// The outcomes of a run; what only the attacked can tell is asked there.
    fn judge(&mut self, text: &str) -> Outcomes {
        let lines = text.lines().filter_map(|line| line.trim().split_once(' '));
        let mut outcomes: Outcomes = lines.map(|(id, outcome)| (id.to_owned(), outcome.to_owned())).collect();
        let report = self.human.report();
        for (id, reached) in
            [("A03-everybody", report["sigwinch"] != json!(0)), ("A04-sigio", report["sigio"] != json!(0))]
        {
            if let Some(outcome) = outcomes.get_mut(id).filter(|outcome| *outcome == "ok" && !reached) {
                *outcome = "missed".to_owned();
            }
        }
        outcomes
    }
}

/// A program of root's with the bit set: made by root, else one that the system has.
fn set_user_id(place: &Place) -> PathBuf {
    if shoal_sys::process::uid() == 0 {
        let own = place.program("set-user-id");
        std::fs::copy(env!("CARGO_BIN_EXE_attacker"), &own).expect("a copied program");
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o4755)).expect("a mode");
        return own;
    }
    let is_one = |path: &&str| {
        let found = std::fs::metadata(path);
        found.is_ok_and(|found| found.uid() == 0 && found.mode() & 0o4001 == 0o4001)
    };
    let found = ["/usr/bin/su", "/usr/bin/passwd", "/usr/bin/mount", "/usr/bin/sudo"].into_iter().find(is_one);
    found
        .expect("no set-user-id program of root's (su, passwd, mount, sudo): install one, or run the tests as root")
        .into()
}

/// A ground with a kernel on it.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) kernel: Kernel,
    bearer: String,
    pub(crate) ground: Ground,
    /// The part of the host's control groups that the kernel has; `None` where this user can give it none.
    pub(crate) group: Option<ControlGroup>,
}

impl Field {
    /// Starts a kernel on a ground; `change` may extend its command line.
    pub(crate) fn start(ground: Ground, change: impl FnOnce(&mut Command)) -> Self {
        let group = ControlGroup::new(&ground.place);
        let kernel = start_kernel(&ground, group.as_ref(), change);
        let mut human = kernel.connect();
        let attached = human.attach("human");
        assert_eq!(attached["session"], json!("human"), "{attached}");
        let token = human.ok("token.create", json!({"principal": "agent:scoped"}));
        human.ok("session.kill", json!({"session": "human"}));
        let bearer = token["token"].as_str().expect("a bearer").to_owned();
        Self { kernel, bearer, ground, group }
    }

    /// Starts another kernel in the place of one that was killed.
    pub(crate) fn restart(&mut self) {
        self.kernel = start_kernel(&self.ground, self.group.as_ref(), |_| {});
    }

    /// Starts a kernel with other programs in the places of some of its own.
    pub(crate) fn with(replaced: &[(&str, &Path)]) -> Self {
        Self::start(Ground::new(replaced), |_| {})
    }

    /// Starts a kernel that has some layers taken away, by their names in the table, separated by commas.
    pub(crate) fn without(layers: &str) -> Self {
        let ground = Ground::new(&[("shoal-kernel", Path::new(env!("CARGO_BIN_EXE_weak-kernel")))]);
        Self::start(ground, |command| {
            command.env("SHOAL_TEST_WITHOUT", layers);
        })
    }

    /// The same with a hostile worker and a hostile ptyd in every session.
    pub(crate) fn with_hostile_roles(layers: &str) -> Self {
        let ground = Ground::new(&[
            ("shoal-kernel", Path::new(env!("CARGO_BIN_EXE_weak-kernel"))),
            ("shoal-worker", Path::new(env!("CARGO_BIN_EXE_hostile-worker"))),
            ("shoal-ptyd", Path::new(env!("CARGO_BIN_EXE_hostile-ptyd"))),
        ]);
        Self::start(ground, |command| {
            command.env("SHOAL_TEST_WITHOUT", layers);
        })
    }

    /// The level the kernel says it has.
    pub(crate) fn level(&self) -> String {
        let status = self.kernel.attach("human").ok("kernel.status", json!({}));
        status["level"].as_str().expect("a level").to_owned()
    }

    /// A connection attached to a session in the repository.
    pub(crate) fn session(&self, principal: Principal, name: &str) -> Client {
        let mut client = self.kernel.connect();
        let mut params = json!({
            "session": name, "client": {"kind": "test"}, "create": {"cwd": self.ground.place.work().join("repo")},
        });
        if principal == Principal::Scoped {
            params["token"] = json!(self.bearer);
        }
        client.ok("session.attach", params);
        client
    }

    /// What an attacker is told.
    pub(crate) fn targets(&self) -> Targets {
        let one = |name: &str| self.kernel.pids_of(name).first().copied().unwrap_or_default();
        Targets {
            supervisor: self.kernel.pid(),
            broker: one("shoal-broker"),
            group: self.group.as_ref().map(|group| group.dir().join("kernel")).unwrap_or_default(),
            ..self.ground.targets()
        }
    }

    /// Tries everything as the user, outside every session.
    pub(crate) fn attack_outside(&mut self) -> Outcomes {
        let targets = self.targets();
        // A parent of the same user, as a launcher would be.
        let script = "\"$0\" all \"$1\"; exit 0";
        let mut command: Command = self.ground.place.command("/bin/sh");
        command.args(["-c", script]).arg(self.ground.place.program("attacker")).arg(targets.to_text());
        command.current_dir(&targets.work).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let output = command.output().expect("it runs");
        self.ground.judge(&String::from_utf8_lossy(&output.stdout))
    }

    /// Tries everything as a command of a session.
    pub(crate) fn attack_as_command(&mut self, principal: Principal) -> Outcomes {
        let targets = self.ground.place.write("targets.json", self.targets().to_text());
        let mut client = self.session(principal, "command");
        let program = self.ground.place.program("attacker");
        let source = format!("sh {{ '{}' all '@{}' }}", program.display(), targets.display());
        let answer = client.ok("exec", json!({"src": source, "position": "value", "elide": {"max_bytes": 65536}}));
        let text = answer["render"].as_str().expect("a render").to_owned();
        self.end(&mut client, principal, "command");
        self.ground.judge(&text)
    }

    /// Tries everything as a program in a terminal.
    pub(crate) fn attack_in_terminal(&mut self, principal: Principal) -> Outcomes {
        let targets = self.ground.place.write("targets.json", self.targets().to_text());
        let mut client = self.session(principal, "terminal");
        let program = self.ground.place.program("attacker");
        let argument = format!("@{}", targets.display());
        let opened = client.ok("pty.open", json!({"cmd": program, "args": ["all", argument], "cols": 80, "rows": 400}));
        let wait = json!({"exit": true, "timeout_ms": 40_000});
        let screen = client.ok("pty.read", json!({"pty_id": opened["pty_id"], "wait": wait}));
        assert_eq!(screen["alive"], json!(false), "{screen}");
        let rows: Vec<&str> = screen["screen"].as_array().expect("rows").iter().filter_map(|r| r.as_str()).collect();
        self.end(&mut client, principal, "terminal");
        self.ground.judge(&rows.join("\n"))
    }

    /// Tries everything inside a hostile worker.
    pub(crate) fn attack_as_worker(&mut self, principal: Principal) -> Outcomes {
        let mut client = self.session(principal, "worker");
        let source = self.targets().to_text();
        let answer = client.ok("exec", json!({"src": source, "position": "value", "elide": {"max_bytes": 65536}}));
        let text = answer["render"].as_str().expect("a render").to_owned();
        self.end(&mut client, principal, "worker");
        self.ground.judge(&text)
    }

    /// Tries everything inside a hostile ptyd.
    pub(crate) fn attack_as_ptyd(&mut self, principal: Principal) -> Outcomes {
        let mut client = self.session(principal, "ptyd");
        let opened = client.ok("pty.open", json!({"cmd": "/bin/sleep", "args": ["654.3"], "cols": 80, "rows": 400}));
        client.ok("pty.send", json!({"pty_id": opened["pty_id"], "input": self.targets().to_text()}));
        let screen = client.ok("pty.read", json!({"pty_id": opened["pty_id"]}));
        let rows: Vec<&str> = screen["screen"].as_array().expect("rows").iter().filter_map(|r| r.as_str()).collect();
        self.end(&mut client, principal, "ptyd");
        self.ground.judge(&rows.join("\n"))
    }

    pub(crate) fn end(&self, client: &mut Client, principal: Principal, name: &str) {
        let mut human = self.kernel.attach("human");
        let mut params = json!({"session": name});
        if principal == Principal::Scoped {
            params["owner"] = json!("agent:scoped");
        }
        let receipt = human.ok("session.kill", params);
        assert_eq!(receipt["survived"], json!([]), "{receipt}");
        // Told to whoever was attached.
        assert!(client.call("session.snapshot", json!({})).is_err());
    }
}

fn start_kernel(ground: &Ground, group: Option<&ControlGroup>, change: impl FnOnce(&mut Command)) -> Kernel {
    Kernel::start_by(&ground.place, |kernel| {
        let mut command = match group {
            Some(group) => group.command(&ground.place, kernel),
            None => ground.place.command(kernel),
        };
        change(&mut command);
        command
    })
}

fn policy(place: &Place) -> String {
    let (human, work, programs) = (place.unbounded(), place.work(), place.program(""));
    let (work, programs) = (work.display(), programs.display());
    format!(
        r#"
[default]
opaque = "allow"
auto_apply = "in-grant"
session_write = true
fs.read = ["/**"]

{human}network = "open"

[principal."agent:scoped"]
opaque = "allow"
auto_apply = "in-grant"
session_write = true
time = true
env_read = ["*"]
env_write = ["*"]
fs.read = ["{work}/**", "{programs}**"]
fs.write = ["{work}/**"]
fs.delete = ["{work}/**"]
limits = {{ memory = "1gib", pids = 256 }}
"#
    )
}
