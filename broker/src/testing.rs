//! A broker without processes, for what its own loop would have to wait for: tests move its time.

use std::rc::Rc;
use std::time::Duration;

use shoal_chan::pair;
use shoal_journal::{Journal, Settings};
use shoal_leash::{Section, Sections};
use shoal_proto::List;
use shoal_proto::supervisor_broker::{Start, ToBroker, ToSupervisor};

use crate::broker::{Broker, Parts};
use crate::bus::Bus;
use crate::edge::{Peer, hello};
use crate::numbers::Numbers;
use crate::plans::Plans;
use crate::policy::Policy;
use crate::ptys::Ptys;
use crate::quotas::Quotas;
use crate::sessions::{Recipe, Sid, Stage};
use crate::tokens::Tokens;
use crate::wake::Wake;

/// A broker and what its journal has answered.
pub(crate) struct World {
    /// The broker.
    pub(crate) broker: Broker,
    jobs: tokio::sync::mpsc::UnboundedReceiver<crate::wake::JobDone>,
}

impl World {
    /// Goes on with everything the journal was asked before.
    pub(crate) fn settle(&mut self) {
        self.broker.journal.wait(|_| Ok(())).expect("a journal");
        while let Ok((ticket, result)) = self.jobs.try_recv() {
            self.broker.on_job_done(ticket, result);
        }
    }

    /// Somebody sets the wall clock; no time passes.
    pub(crate) fn step_clock(&mut self, by_ns: i64) {
        self.settle();
        self.broker.now.ns += by_ns;
        self.broker.on_due();
        self.settle();
    }

    /// Lets so much time pass, and does what is due.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.settle();
        self.broker.now.mono += time;
        self.broker.now.ns += i64::try_from(time.as_nanos()).expect("not for ever");
        self.broker.on_due();
        self.settle();
    }
}

/// A section that grants nothing.
pub(crate) fn section(principal: &str) -> Section {
    Section { principal: shoal_proto::Text::cut(principal), ..Section::default() }
}

/// Runs a test with a broker whose policy has these sections.
pub(crate) fn with_broker(sections: &[Section], test: impl FnOnce(&mut World)) {
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    let dir = tempfile::Builder::new().permissions(private).tempdir().expect("a directory");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let (ours, _theirs) = pair::<ToSupervisor, ToBroker>().expect("a pair");
        let (wakes, _woken) = tokio::sync::mpsc::channel(16);
        let (done, jobs) = tokio::sync::mpsc::unbounded_channel();
        let compiled = Sections { sections: List::new(sections.to_vec()).expect("few"), ..Sections::default() };
        let supervisor = Peer::over(ours, 0, &wakes, |_, arrived| Wake::Supervisor(arrived)).expect("an edge");
        let settings = Settings { without_reserve: true, ..Settings::default() };
        let broker = Broker::new(Parts {
            start: start(),
            policy: Policy { sections: compiled, loaded_ns: 0, rejected: None },
            quotas: Quotas::default(),
            captures: crate::capture::Captures::default(),
            journal: Journal::open(dir.path(), settings).expect("a journal"),
            tokens: Tokens::none(),
            bus: Bus::default(),
            plans: Plans::of(&[]),
            numbers: Numbers::above(0, 0, []),
            ptys: Ptys::after(&[]),
            open_rows: Vec::new(),
            supervisor,
            wakes,
            done,
        });
        test(&mut World { broker, jobs });
    });
}

fn start() -> Start {
    Start {
        hello: hello(0),
        started_ns: 1,
        restarts: 0,
        session: shoal_proto::Text::cut("default"),
        socket: shoal_proto::Text::cut(""),
        state_dir: shoal_proto::Text::cut(""),
        policy: shoal_proto::Text::cut(""),
        start_dir: shoal_proto::Text::cut("/"),
        env: List::default(),
        require_token: false,
        uid: 1000,
        claims: 0,
        level: shoal_proto::Text::cut("L0"),
        isolation: Default::default(),
        adopt: 0,
    }
}

/// A session that works.
pub(crate) fn session(broker: &mut Broker, owner: &str, name: &str) -> Sid {
    let recipe = Recipe {
        owner: Rc::from(owner),
        name: Rc::from(name),
        cwd: b"/".to_vec(),
        cwd_wanted: false,
        env: Vec::new(),
        limits: Default::default(),
        output_cap: None,
        last_out: 0,
    };
    let sid = broker.sessions.create(recipe, broker.now.ns, broker.now.mono);
    if let Some(session) = broker.sessions.at_mut(sid) {
        session.stage = Stage::Up;
    }
    sid
}
