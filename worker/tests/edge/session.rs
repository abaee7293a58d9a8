//! A session under test; the test is its supervisor and its broker.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value as Json, json};
use shoal_chan::Chan;
use shoal_proto::broker_worker::{
    Ack, Answer, Call, Cancel, Elide, Finished, Method, Position, Prepare, Prepared, Purpose, Run, Setup, Statement,
    ToBroker, ToWorker, UpCall, UpMethod, WorkerHello,
};
use shoal_proto::hello::{BUILD, EDGE_VERSION, Hello};
use shoal_proto::launcher_worker::Rung;
use shoal_proto::section::Section;
use shoal_proto::supervisor_broker::Limits;
use shoal_proto::{Bytes, List, Text, broker_launcher as bl, supervisor_launcher as sl};
use shoal_sys::spawn::{Command, Program};
use shoal_sys::{fd, memfd, socket};

/// Far beyond anything a healthy worker needs; only a hang meets it.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

pub(crate) struct Session {
    pub(crate) supervisor: Chan<sl::ToLauncher, sl::ToSupervisor>,
    pub(crate) launcher: Chan<bl::ToLauncher, bl::ToBroker>,
    pub(crate) worker: Chan<ToWorker, ToBroker>,
    pub(crate) hello: WorkerHello,
    pub(crate) dir: tempfile::TempDir,
    next: u64,
    /// Statements that ended so far.
    pub(crate) statements: Vec<Statement>,
}

/// A result with what was attached to it.
pub(crate) struct Done {
    pub(crate) finished: Finished,
    pub(crate) value: Json,
    pub(crate) detail: Json,
    pub(crate) stdout: Option<Vec<u8>>,
    pub(crate) full: Option<Vec<u8>>,
}

pub(crate) fn hello(generation: u32) -> Hello {
    Hello { version: EDGE_VERSION, build: Text::cut(BUILD), generation }
}

fn launcher_path() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_shoal-worker")).with_file_name("shoal-launcher");
    assert!(path.is_file(), "build it first: cargo build -p shoal-launcher");
    path
}

impl Session {
    pub(crate) fn start() -> Self {
        Self::start_with(1, &["PATH=/usr/bin:/bin", "A=1"])
    }

    pub(crate) fn start_with(next_out: u64, env: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let image = fd::open_program(&launcher_path()).expect("the launcher");
        let role = fd::open_program(Path::new(env!("CARGO_BIN_EXE_shoal-worker"))).expect("the worker");
        let null = fd::null().expect("the null device");
        let (ctl, far_ctl) = pair();
        let (launcher, far_launcher) = pair();
        let (worker, far_worker) = pair();
        let stderr = std::io::stderr();
        let fds = vec![null.as_fd(), null.as_fd(), stderr.as_fd(), far_ctl.as_fd(), role.as_fd(), role.as_fd()];
        Command::new(Program::Fd(image.as_fd()), vec![c"shoal-launcher".to_owned()]).fds(fds).spawn().expect("started");
        let mut supervisor: Chan<sl::ToLauncher, sl::ToSupervisor> = Chan::from_fd(ctl).expect("a socket");
        let section = memfd::sealed("section", &Section::default().encode().expect("encodes")).expect("a memfd");
        let birth = sl::Birth {
            hello: hello(1),
            limits: Limits::default(),
            roots: List::default(),
            domain: sl::Domain::default(),
            memory_events: false,
        };
        let fds = [section.as_fd(), far_launcher.as_fd(), far_worker.as_fd()];
        supervisor.send(&sl::ToLauncher::Birth(birth), &fds).expect("sent");
        drop((far_ctl, far_launcher, far_worker));
        let mut worker: Chan<ToWorker, ToBroker> = Chan::from_fd(worker).expect("a socket");
        let setup = setup(dir.path(), next_out, env, false);
        worker.send(&ToWorker::Setup(setup), &[]).expect("sent");
        let ToBroker::Hello(hello) = worker.recv_deadline(LIMIT).expect("a hello").msg else { panic!("no hello") };
        let started = supervisor.recv_deadline(LIMIT).expect("started").msg;
        assert!(matches!(started, sl::ToSupervisor::RoleStarted(_)), "{started:?}");
        let ready = supervisor.recv_deadline(LIMIT).expect("ready").msg;
        assert!(matches!(ready, sl::ToSupervisor::Ready(_)), "{ready:?}");
        let launcher = Chan::from_fd(launcher).expect("a socket");
        Self { supervisor, launcher, worker, hello, dir, next: 1, statements: Vec::new() }
    }

    /// Prepares a source; its number and claim.
    pub(crate) fn prepare(&mut self, source: &str, position: Position) -> (u64, Json) {
        let run = self.next;
        self.next += 1;
        (run, self.claim(run, source, position, Purpose::Run))
    }

    /// Prepares a source under a number; its claim.
    pub(crate) fn claim(&mut self, run: u64, source: &str, position: Position, purpose: Purpose) -> Json {
        let elide = Elide { max_bytes: 8192, max_rows: 100, max_bytes_raw: 4096, max_items: 500 };
        let prepare = Prepare {
            run,
            src: Text::new(source).expect("fits"),
            position,
            deadline_ms: None,
            elide,
            tty: false,
            human: true,
            bindings: Bytes::default(),
            purpose,
        };
        self.worker.send(&ToWorker::Prepare(prepare), &[]).expect("sent");
        loop {
            match self.message() {
                (ToBroker::Prepared(Prepared { run: of, claim, .. }), _) if of == run => {
                    return serde_json::from_slice(claim.as_slice()).expect("JSON");
                }
                (ToBroker::Progress(_), _) => {}
                (other, _) => panic!("unexpected {other:?}"),
            }
        }
    }

    /// Lets a prepared source run.
    pub(crate) fn begin(&mut self, source: &str, position: Position) -> u64 {
        let (run, claim) = self.prepare(source, position);
        assert!(claim.get("parse_error").is_none(), "{claim}");
        self.worker.send(&ToWorker::Run(Run { run }), &[]).expect("sent");
        run
    }

    /// Runs a source in value position to its end.
    pub(crate) fn run(&mut self, source: &str) -> Done {
        let run = self.begin(source, Position::Value);
        let done = self.done();
        assert_eq!(done.finished.run, run);
        done
    }

    /// Runs a source in statement position to its end.
    pub(crate) fn run_stmt(&mut self, source: &str) -> Done {
        self.begin(source, Position::Stmt);
        self.done()
    }

    /// The next result; it is recorded.
    pub(crate) fn done(&mut self) -> Done {
        loop {
            match self.message() {
                (ToBroker::Finished(finished), fds) => {
                    let run = finished.run;
                    self.worker.send(&ToWorker::Ack(Ack { run, stored: false, kept: true }), &[]).expect("sent");
                    return done(finished, fds);
                }
                (ToBroker::Progress(_), _) => {}
                (other, _) => panic!("unexpected {other:?}"),
            }
        }
    }

    pub(crate) fn cancel(&mut self, run: u64, deadline: bool) {
        let cancel = bl::Cancel { call: 1, run, rung: Rung::Int };
        self.launcher.send(&bl::ToLauncher::Cancel(cancel), &[]).expect("sent");
        self.worker.send(&ToWorker::Cancel(Cancel { run, rung: Rung::Int, deadline }), &[]).expect("sent");
    }

    /// Asks a method; its result or its error code and data.
    pub(crate) fn ask(&mut self, method: Method, params: &Json) -> Result<Json, (i32, Json)> {
        let call = self.next + 1000;
        self.next += 1;
        let params = Bytes::new(params.to_string()).expect("fits");
        self.worker.send(&ToWorker::Call(Call { call, method, params }), &[]).expect("sent");
        loop {
            match self.message() {
                (ToBroker::Answer(Answer { call: of, code, body, .. }), _) if of == call => {
                    let body = serde_json::from_slice(body.as_slice()).unwrap_or(Json::Null);
                    return if code == 0 { Ok(body) } else { Err((code, body)) };
                }
                (ToBroker::Progress(_), _) => {}
                (other, _) => panic!("unexpected {other:?}"),
            }
        }
    }

    /// Waits until a statement has ended.
    pub(crate) fn await_statement(&mut self) {
        match self.worker.recv_deadline(LIMIT).expect("a message").msg {
            ToBroker::Statement(_) => {}
            other => panic!("unexpected {other:?}"),
        }
    }

    fn answer(&mut self, call: &UpCall) {
        let body = Bytes::new(if call.method == UpMethod::Journal { "[]" } else { "{}" }).expect("fits");
        let answer = Answer { call: call.call, code: 0, message: Text::default(), body };
        self.worker.send(&ToWorker::Told(answer), &[]).expect("sent");
    }

    /// The next message that is no up-call and no statement; up-calls are answered with nothing.
    pub(crate) fn message(&mut self) -> (ToBroker, Vec<OwnedFd>) {
        loop {
            let received = self.worker.recv_deadline(LIMIT).expect("a message");
            match received.msg {
                ToBroker::UpCall(call) => self.answer(&call),
                ToBroker::Statement(ended) => self.statements.push(ended),
                other => return (other, received.fds),
            }
        }
    }

    /// Replaces the broker: fresh ends through the launcher, and the worker's hello to them.
    pub(crate) fn replace_broker(&mut self) -> WorkerHello {
        let (launcher, far_launcher) = pair();
        let (worker, far_worker) = pair();
        let adopt = sl::ToLauncher::Adopt(sl::Generation { generation: 2 });
        self.supervisor.send(&adopt, &[far_launcher.as_fd(), far_worker.as_fd()]).expect("sent");
        self.launcher = Chan::from_fd(launcher).expect("a socket");
        self.worker = Chan::from_fd(worker).expect("a socket");
        let setup = setup(self.dir.path(), 99, &[], true);
        self.worker.send(&ToWorker::Setup(setup), &[]).expect("sent");
        match self.worker.recv_deadline(LIMIT).expect("a hello").msg {
            ToBroker::Hello(hello) => hello,
            other => panic!("unexpected {other:?}"),
        }
    }
}

fn done(finished: Finished, fds: Vec<OwnedFd>) -> Done {
    let mut fds = fds.into_iter();
    let mut bytes = |is: bool| is.then(|| memfd::read_sealed(fds.next().expect("attached"), 1 << 28).expect("sealed"));
    let (stdout, _stderr, full) = (bytes(finished.stdout), bytes(finished.stderr), bytes(finished.full));
    let parse = |bytes: &[u8]| serde_json::from_slice(bytes).expect("JSON");
    let (value, detail) = (parse(finished.value.as_slice()), parse(finished.detail.as_slice()));
    Done { finished, value, detail, stdout, full }
}

fn setup(dir: &Path, next_out: u64, env: &[&str], adopted: bool) -> Setup {
    let state = json!({"session": "default", "owner": "uid:0", "policy": {"env_read": ["A"]}, "config": {"k": 1}});
    let env: Vec<_> = env.iter().map(|pair| Bytes::new(pair.as_bytes()).expect("fits")).collect();
    Setup {
        hello: hello(1),
        next_out,
        cwd: Bytes::new(dir.to_str().expect("text")).expect("fits"),
        env: List::new(env).expect("fits"),
        state: Bytes::new(state.to_string()).expect("fits"),
        restarted: false,
        adopted,
    }
}

fn pair() -> (OwnedFd, OwnedFd) {
    socket::pair(socket::Carrier::NATIVE).expect("a pair")
}
