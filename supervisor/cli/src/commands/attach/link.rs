//! The connection behind the prompt: a loop of its own, so that events arrive while the person types, and an attachment
//! that is made again when the kernel was replaced.

use std::collections::VecDeque;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reedline::ExternalPrinter;
use serde_json::{Value, json};
use shoal_client::{Attached, Client, Connection};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::notice::{self, Notice};
use crate::context::{self, Context};
use crate::fail::Fail;

/// Channels a person at the prompt hears about.
const CHANNELS: [&str; 4] = ["session", "approval", "journal", "kernel"];
/// Notices that may wait for the editor, which shows them ten times a second; what is beyond is counted.
const WAITING: usize = 256;
/// How long a call that starts no work may take: a frozen worker does not answer.
const AT_ONCE: Duration = Duration::from_secs(3);
/// Own tasks that are remembered so that their end is not announced twice.
const REMEMBERED: usize = 64;

/// Where the next line will run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    pub(crate) session: String,
    pub(crate) cwd: String,
    pub(crate) failed: bool,
}

/// The attached connection and its loop.
pub(crate) struct Link {
    client: Client,
    handle: Handle,
    shared: Arc<Shared>,
    /// Dropping it ends the loop.
    _stop: oneshot::Sender<()>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    printer: SyncSender<String>,
}

#[derive(Debug, Default)]
struct State {
    attached: Option<Arc<Attached>>,
    place: Place,
    /// A run is in front: notices wait, because one of them may be about it.
    held: Option<Vec<Notice>>,
    own_tasks: VecDeque<String>,
    lost: u64,
}

impl Link {
    /// Connects, attaches and subscribes; the printer shows notices between the lines of the editor.
    pub(crate) fn open(context: &Context, owner: Option<String>) -> Result<(Self, ExternalPrinter<String>), Fail> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| Fail::Said(format!("cannot start: {e}")))?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new()
            .name("shoal-events".to_owned())
            .spawn(move || {
                // Ends when the sender is dropped, which is the only thing that ever happens to it.
                drop(runtime.block_on(stopped));
            })
            .map_err(|e| Fail::Said(format!("cannot start a thread: {e}")))?;
        let mut attach = context.attachment();
        attach.owner = owner;
        let printer = ExternalPrinter::new(WAITING);
        let shared = Arc::new(Shared { state: Mutex::default(), printer: printer.sender() });
        let link = Self { client: Client::new(context.config.clone(), attach), handle, shared, _stop: stop };
        link.handle.block_on(link.connection())?;
        link.refresh_place(None, false);
        Ok((link, printer))
    }

    /// What the newest attach said.
    pub(crate) fn attached(&self) -> Arc<Attached> {
        self.shared.locked().attached.clone().unwrap_or_else(|| {
            // `open` returns no link without an attachment.
            unreachable!("a link is attached")
        })
    }

    /// Where the next line will run.
    pub(crate) fn place(&self) -> Place {
        self.shared.locked().place.clone()
    }

    /// Notes whether the last run failed and the directory it ended in; without one the kernel is asked.
    pub(crate) fn refresh_place(&self, cwd: Option<String>, failed: bool) {
        let session = self.attached().session.clone();
        let cwd = cwd.unwrap_or_else(|| {
            // A kernel that does not answer is told about by the next line that is run.
            let snapshot = self.call("session.snapshot", json!({})).unwrap_or_default();
            snapshot.get("cwd").map(|cwd| context::text(cwd, "display")).unwrap_or_default()
        });
        self.shared.locked().place = Place { session, cwd, failed };
    }

    /// Calls a method that answers at once, connecting again first when the kernel was replaced.
    pub(crate) fn call(&self, method: &str, params: Value) -> Result<Value, Fail> {
        self.block_on(async {
            let connection = self.connection().await?;
            let answer = tokio::time::timeout(AT_ONCE, context::call(&connection, method, params)).await;
            answer.unwrap_or_else(|_| {
                let session = &self.attached().session;
                Err(Fail::Said(format!(
                    "no answer within {} s; a frozen session goes on with: shoal session thaw {session}",
                    AT_ONCE.as_secs()
                )))
            })
        })
    }

    /// Runs a future on this thread while the loop goes on beside it.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.handle.block_on(work)
    }

    /// The connection; a new one is subscribed before it is handed out.
    pub(crate) async fn connection(&self) -> Result<Connection, Fail> {
        let (connection, attached, is_new) = self.client.attached().await?;
        if is_new {
            let again = self.shared.locked().attached.replace(attached).is_some();
            for channel in CHANNELS {
                match connection.subscribe(channel, None, None).await {
                    Ok((_, events)) => drop(tokio::spawn(notice::follow(events, self.hearer()))),
                    // A principal that may not hear a channel still has its prompt.
                    Err(shoal_client::CallError::Kernel(_)) => {}
                    Err(other) => return Err(other.into()),
                }
            }
            if again {
                self.shared.tell(Notice::text("connected to the kernel again"));
            }
        }
        Ok(connection)
    }

    fn hearer(&self) -> impl Fn(Notice) + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move |notice| shared.tell(notice)
    }

    /// Who this connection acts as: its own runs are no news.
    pub(crate) fn principal(&self) -> String {
        self.attached().principal.clone()
    }

    /// Holds notices back while a run is in front.
    pub(crate) fn hold_notices(&self) {
        self.shared.locked().held = Some(Vec::new());
    }

    /// Shows what was held back, without what was about `task`, the run that was in front. The end of one that goes on
    /// is news again.
    pub(crate) fn release_notices(&self, task: Option<&str>, goes_on: bool) {
        let held = {
            let mut state = self.shared.locked();
            if let Some(task) = task.filter(|_| !goes_on) {
                state.own_tasks.push_back(task.to_owned());
                if state.own_tasks.len() > REMEMBERED {
                    state.own_tasks.pop_front();
                }
            }
            state.held.take().unwrap_or_default()
        };
        for notice in held.into_iter().filter(|notice| notice.task.as_deref() != task || task.is_none()) {
            self.shared.tell(notice);
        }
    }
}

impl Shared {
    fn locked(&self) -> MutexGuard<'_, State> {
        // Every change is one assignment, so a panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, notice: Notice) {
        let mut state = self.locked();
        if let Some(held) = &mut state.held {
            if held.len() < WAITING {
                held.push(notice);
            } else {
                state.lost += 1;
            }
            return;
        }
        let own_principal = state.attached.as_ref().map(|a| a.principal.clone()).unwrap_or_default();
        let is_own = notice.task.as_ref().is_some_and(|task| state.own_tasks.contains(task))
            || notice.principal.as_ref().is_some_and(|principal| *principal == own_principal);
        if is_own {
            return;
        }
        let text = match std::mem::take(&mut state.lost) {
            0 => notice.text,
            lost => format!("{} ({lost} notices before it were dropped)", notice.text),
        };
        if self.printer.try_send(text).is_err() {
            state.lost += 1;
        }
    }
}
