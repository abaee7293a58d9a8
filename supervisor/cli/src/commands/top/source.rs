//! What the screen reads: the kernel over one connection, the insides of sessions over one more each.

use std::collections::HashSet;

use serde_json::{Value, json};
use shoal_client::{Attach, CallError, Connection, Enter};
use tokio::sync::mpsc;

use super::board::{Board, Inside, SessionName, session_name};
use super::rates::{CHANNELS, Rates};
use crate::context::{Context, call, items};
use crate::fail::Fail;

/// Events that may wait to be counted; a look at what they are about is due anyway.
const WAITING: usize = 1024;
/// Sessions whose connections are kept: one that is looked into again leaves no second row in its journal. More than a
/// person goes to and fro between, and few of the connections a kernel has.
const KEPT: usize = 8;
/// Plans shown at most.
const PLANS: u64 = 100;

/// The connections of the screen.
pub(super) struct Source {
    context: Context,
    connection: Connection,
    principal: String,
    /// Sessions that were looked into, the newest last.
    inside: Vec<(SessionName, Connection)>,
    /// Owners whose channels are followed.
    followed: HashSet<String>,
    tell: mpsc::Sender<String>,
    events: mpsc::Receiver<String>,
}

impl Source {
    /// Attaches to a running kernel.
    pub(super) async fn open(context: &Context) -> Result<Self, Fail> {
        let (connection, attached) = context.administer().await?;
        let (tell, events) = mpsc::channel(WAITING);
        Ok(Self {
            context: context.clone(),
            connection,
            principal: attached.principal,
            inside: Vec::new(),
            followed: HashSet::new(),
            tell,
            events,
        })
    }

    /// Waits for an event and counts all that are there. Never ends: the sender lives here.
    pub(super) async fn changed(&mut self, rates: &mut Rates) {
        if let Some(channel) = self.events.recv().await {
            rates.count(&channel);
        }
        while let Ok(channel) = self.events.try_recv() {
            rates.count(&channel);
        }
    }

    /// Reads everything the board shows, connecting again when the kernel was replaced.
    pub(super) async fn look(&mut self, board: &mut Board) -> Result<(), Fail> {
        if self.connection.is_lost() {
            self.connection = self.context.administer().await?.0;
            self.followed.clear();
            self.inside.clear();
            board.message = "connected to the kernel again".to_owned();
        }
        match self.read(board).await {
            // The next look connects again, or says that nobody is there.
            Err(Fail::Call(CallError::Lost)) => Ok(()),
            other => other,
        }
    }

    async fn read(&mut self, board: &mut Board) -> Result<(), Fail> {
        let (no, plans) = (json!({}), json!({"state": "pending", "limit": PLANS}));
        let (status, sessions, approvals) = tokio::try_join!(
            call(&self.connection, "kernel.status", no.clone()),
            call(&self.connection, "session.list", no),
            call(&self.connection, "approval.list", plans),
        )?;
        board.status = status;
        board.take_sessions(items(&sessions, "sessions").to_vec());
        board.take_approvals(items(&approvals, "approvals").to_vec());
        let owners: HashSet<String> = board.sessions.iter().map(|row| session_name(row).owner).collect();
        self.follow(owners).await?;
        self.look_inside(board).await
    }

    /// Subscribes to the channels of owners that are new here.
    async fn follow(&mut self, owners: HashSet<String>) -> Result<(), Fail> {
        for owner in owners {
            if !self.followed.insert(owner.clone()) {
                continue;
            }
            let is_own = owner == self.principal;
            for channel in CHANNELS.into_iter().filter(|channel| is_own || *channel != "kernel") {
                let asked = self.connection.subscribe(channel, None, (!is_own).then_some(owner.as_str())).await;
                let mut events = match asked {
                    Ok((_, events)) => events,
                    Err(CallError::Kernel(_)) => continue,
                    Err(other) => return Err(other.into()),
                };
                let tell = self.tell.clone();
                tokio::spawn(async move {
                    while events.next().await.is_some() {
                        // A full queue means a look is due already; only the count is short then.
                        drop(tell.try_send(channel.to_owned()));
                    }
                });
            }
        }
        Ok(())
    }

    /// Reads tasks and terminals of the selected session. Those of others are looked into only when asked: attaching
    /// leaves a row in their journal.
    async fn look_inside(&mut self, board: &mut Board) -> Result<(), Fail> {
        board.inside.clear();
        board.closed = None;
        let Some(session) = board.session() else { return Ok(()) };
        if session.owner != self.principal && !board.is_entered(&session) {
            board.closed = Some("not yours: Enter looks into it, and its journal records that");
            return Ok(());
        }
        match self.inside_of(&session).await {
            Ok(inside) => board.inside = inside,
            Err(Fail::Call(CallError::Kernel(_)) | Fail::Connect(_)) => {
                self.inside.retain(|(kept, _)| *kept != session);
                board.closed = Some("cannot be looked into now");
            }
            Err(other) => return Err(other),
        }
        Ok(())
    }

    async fn inside_of(&mut self, session: &SessionName) -> Result<Vec<Inside>, Fail> {
        let connection = self.attached_to(session).await?;
        let (tasks, ptys) =
            tokio::try_join!(call(&connection, "task.list", json!({})), call(&connection, "pty.list", json!({})))?;
        let mut tasks: Vec<Value> = tasks.as_array().cloned().unwrap_or_default();
        // What runs comes first, then the newest.
        tasks.reverse();
        tasks.sort_by_key(|task| !matches!(task["state"].as_str(), Some("running" | "suspended" | "cancelling")));
        let ptys = items(&ptys, "ptys").iter().cloned().map(Inside::Pty);
        Ok(tasks.into_iter().map(Inside::Task).chain(ptys).collect())
    }

    /// A connection attached to a session.
    async fn attached_to(&mut self, session: &SessionName) -> Result<Connection, Fail> {
        self.inside.retain(|(_, connection)| !connection.is_lost());
        if let Some((_, connection)) = self.inside.iter().find(|(kept, _)| kept == session) {
            return Ok(connection.clone());
        }
        let owner = (session.owner != self.principal).then(|| session.owner.clone());
        let name = session.session.clone();
        let attach = Attach { session: name, owner, enter: Enter::Existing, ..self.context.attachment() };
        let connection = Connection::find(&self.context.config).await?;
        connection.attach(&attach).await?;
        if self.inside.len() == KEPT {
            self.inside.remove(0);
        }
        self.inside.push((session.clone(), connection.clone()));
        Ok(connection)
    }

    /// Makes a call, in a session when it is about one's inside.
    pub(super) async fn call(
        &mut self,
        method: &str,
        params: Value,
        session: Option<&SessionName>,
    ) -> Result<Value, Fail> {
        match session {
            None => call(&self.connection, method, params).await,
            Some(session) => {
                let connection = self.attached_to(session).await?;
                call(&connection, method, params).await
            }
        }
    }
}
