//! Where a watched resource is subscribed and read.

use std::sync::{Arc, Weak};

use serde_json::json;
use shoal_proto::broker_worker::UpMethod;
use shoal_resources::page::{Content, Page};
use shoal_resources::read::{Reading, Step};
use shoal_resources::topic;
use shoal_watch::progress::Body;
use shoal_wire::{Method, RpcError};

use super::inbox::Inbox;
use crate::session::Session;

/// The server of a resource, for one watch.
pub(crate) trait Source: Send + Sync {
    /// Name of the server.
    fn server(&self) -> &str;

    /// Subscribes; returns once that is acknowledged. Changes and the end of the subscription go to `inbox`.
    fn subscribe(&self, inbox: &Arc<Inbox>) -> Result<(), RpcError>;

    /// Reads the resource.
    fn read(&self) -> Result<Body, RpcError>;

    /// Ends the subscription, if there is one.
    fn unsubscribe(&self, inbox: &Arc<Inbox>);
}

/// Name of the session's own resources among servers.
pub(crate) const OWN: &str = "shoal";

/// A resource of the session itself.
pub(crate) struct Own {
    session: Weak<Session>,
    uri: String,
    channel: String,
}

impl Own {
    /// A resource that can be watched; others are `not_subscribable`.
    pub(crate) fn new(session: Weak<Session>, name: &str, uri: &str) -> Result<Self, RpcError> {
        let refused = |message: &str| RpcError::watch_failed(uri, Some(OWN), "not_subscribable", message, "");
        let Some((channel, _)) = topic::of(uri) else {
            return Err(refused(&format!("`{uri}` cannot be watched; list_resources() tells what can")));
        };
        if channel == format!("watch.{name}") {
            return Err(refused("a watch cannot watch its own notices"));
        }
        Ok(Self { session, uri: uri.to_owned(), channel })
    }

    fn session(&self) -> Result<Arc<Session>, RpcError> {
        self.session.upgrade().ok_or_else(|| RpcError::internal("the session is over"))
    }
}

impl Source for Own {
    fn server(&self) -> &str {
        OWN
    }

    fn subscribe(&self, inbox: &Arc<Inbox>) -> Result<(), RpcError> {
        let session = self.session()?;
        session.watches.listen(&session, &self.channel, inbox)
    }

    fn read(&self) -> Result<Body, RpcError> {
        let page = read(&*self.session()?, &self.uri)?;
        let text = match page.content {
            Content::Text(text) | Content::Blob(text) => text,
        };
        Ok(Body { mime: page.mime.to_owned(), text })
    }

    fn unsubscribe(&self, inbox: &Arc<Inbox>) {
        if let Ok(session) = self.session() {
            session.watches.forget_listener(&session, &self.channel, inbox);
        }
    }
}

/// Reads a resource of the session by way of the broker, which answers what it holds and asks us for the rest.
pub(crate) fn read(session: &Session, uri: &str) -> Result<Page, RpcError> {
    let (mut reading, mut method, mut params) = Reading::begin(uri)?;
    loop {
        match reading.answered(ask(session, method, &params)?)? {
            Step::Call(next, with) => (method, params) = (next, with),
            Step::Done(page) => return Ok(page),
        }
    }
}

/// Asks for a reading method of the kernel.
pub(crate) fn ask(
    session: &Session,
    method: Method,
    params: &serde_json::Value,
) -> Result<serde_json::Value, RpcError> {
    session.broker.request(UpMethod::Resource, &json!({"method": method.name(), "params": params}))
}
