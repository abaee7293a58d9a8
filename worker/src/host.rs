//! The worker as the evaluator sees it: the ports behind one object.

use std::sync::Arc;

use shoal_eval::host::{Bus, Clock, Files, Host, Journal, Processes, Resources, Store, System};
use shoal_value::{Record, Str};

use crate::clock::SystemClock;
use crate::commands::Commands;
use crate::files::LocalFiles;
use crate::machine;

/// The ports that only a session has, all of them by way of the broker.
pub(crate) trait SessionPorts: Store + Journal + Bus + Resources + Send + Sync {
    /// The `config` record of the policy.
    fn config(&self) -> Record;
}

/// All ports.
pub(crate) struct WorkerHost {
    pub(crate) files: LocalFiles,
    commands: Commands,
    user: Option<Str>,
    session: Option<Arc<dyn SessionPorts>>,
    manifests: bool,
}

impl WorkerHost {
    /// A host without broker: no journal, store, resources or plans of others. `manifests` says whether a manifest in the
    /// directory of the program decides which file the name of a tool means.
    pub(crate) fn local(files: LocalFiles, commands: Commands, user: Option<Str>, manifests: bool) -> Self {
        Self { files, commands, user, session: None, manifests }
    }

    /// A session's host.
    pub(crate) fn session(
        files: LocalFiles,
        commands: Commands,
        user: Option<Str>,
        session: Arc<dyn SessionPorts>,
    ) -> Self {
        Self { files, commands, user, session: Some(session), manifests: false }
    }
}

impl Host for WorkerHost {
    fn files(&self) -> &dyn Files {
        &self.files
    }

    fn processes(&self) -> &dyn Processes {
        &self.commands
    }

    fn clock(&self) -> &dyn Clock {
        &SystemClock
    }

    fn system(&self) -> System {
        machine::facts(self.user.clone())
    }

    fn reads_manifests(&self) -> bool {
        self.manifests
    }

    fn store(&self) -> Option<&dyn Store> {
        self.session.as_ref().map(|ports| &**ports as &dyn Store)
    }

    fn journal(&self) -> Option<&dyn Journal> {
        self.session.as_ref().map(|ports| &**ports as &dyn Journal)
    }

    fn bus(&self) -> Option<&dyn Bus> {
        self.session.as_ref().map(|ports| &**ports as &dyn Bus)
    }

    fn resources(&self) -> Option<&dyn Resources> {
        self.session.as_ref().map(|ports| &**ports as &dyn Resources)
    }

    fn config(&self) -> Record {
        self.session.as_ref().map_or_else(Record::empty, |ports| ports.config())
    }
}
