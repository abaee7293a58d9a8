//! The conversation with one MCP server over its pipes: requests wait here for their answers, streams for their changes.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value as Json;
use shoal_sys::poll::{self, Ready};
use shoal_watch::limits::{ACK_MS, PROBE_MS, READ_MS};
use shoal_watch::peer::{Number, Out, Peer, Said};

use super::inbox::Inbox;
use crate::clock;

/// A subscription; its number.
pub(crate) type Stream = Number;

/// A longer line ends the server: nothing it could say needs more.
const MAX_LINE: usize = 16 * 1024 * 1024;
/// A server that does not read its input for so long is stuck.
const WRITE_TIME: Duration = Duration::from_secs(5);

/// One server and what is open with it.
pub(crate) struct Dialog {
    talk: Mutex<Talk>,
    changed: Condvar,
}

struct Talk {
    peer: Peer,
    /// Its standard input, until it is over.
    input: Option<OwnedFd>,
    ready: Option<Result<(), String>>,
    answers: HashMap<Number, Option<Result<Json, String>>>,
    streams: HashMap<Number, Listening>,
    over: Option<String>,
}

struct Listening {
    inbox: Arc<Inbox>,
    acknowledged: Option<Vec<String>>,
    ended: Option<String>,
}

impl Dialog {
    /// Opens the conversation. Lines of the server go to [`Dialog::read_from`].
    pub(crate) fn open(input: OwnedFd) -> Arc<Self> {
        let (peer, probe) = Peer::connect();
        let (answers, streams) = (HashMap::new(), HashMap::new());
        let mut talk = Talk { peer, input: Some(input), ready: None, answers, streams, over: None };
        talk.write(&probe);
        Arc::new(Self { talk: Mutex::new(talk), changed: Condvar::new() })
    }

    /// Waits until the server can be used: it answers the probe, or, silent to that, the older handshake.
    pub(crate) fn until_ready(&self) -> Result<(), String> {
        let probe = Duration::from_millis(PROBE_MS);
        let ready = |talk: &mut Talk| talk.ready.clone();
        if let Some(ready) = self.wait(probe, ready) {
            return ready;
        }
        let mut talk = self.lock();
        let out = talk.peer.on_silence();
        talk.take(out);
        drop(talk);
        self.wait(probe, ready).unwrap_or_else(|| Err("it answers neither server/discover nor initialize".to_owned()))
    }

    /// Takes what the server says until it ends. Runs on a thread of its own.
    pub(crate) fn read_from(&self, output: &OwnedFd) {
        let mut lines = Lines::default();
        let why = loop {
            match lines.next(output) {
                Ok(Some(line)) => {
                    let mut talk = self.lock();
                    let out = talk.peer.on_line(&line);
                    talk.take(out);
                    drop(talk);
                    self.changed.notify_all();
                }
                Ok(None) => break "the server ended".to_owned(),
                Err(why) => break why,
            }
        };
        self.end(&why);
    }

    /// The conversation is over: whoever waits is told why.
    pub(crate) fn end(&self, why: &str) {
        let mut talk = self.lock();
        talk.over.get_or_insert_with(|| why.to_owned());
        talk.input = None;
        talk.streams.values().for_each(|stream| stream.inbox.ended(why));
        drop(talk);
        self.changed.notify_all();
    }

    /// Whether it is.
    pub(crate) fn is_over(&self) -> bool {
        self.lock().over.is_some()
    }

    /// Whether it can be watched.
    pub(crate) fn is_modern(&self) -> bool {
        self.lock().peer.is_modern()
    }

    /// Whether it offers subscriptions.
    pub(crate) fn subscribes(&self) -> bool {
        self.lock().peer.subscribes()
    }

    /// The version it speaks.
    pub(crate) fn version(&self) -> String {
        self.lock().peer.version().to_owned()
    }

    /// Asks and waits for the answer.
    pub(crate) fn request(&self, method: &str, params: Json) -> Result<Json, String> {
        let params = params.as_object().cloned().unwrap_or_default();
        let mut talk = self.lock();
        let (number, line) = talk.peer.request(method, params);
        talk.answers.insert(number, None);
        talk.write(&line);
        drop(talk);
        let answer = self.wait(Duration::from_millis(READ_MS), |talk| talk.answers.get_mut(&number)?.take());
        let mut talk = self.lock();
        talk.answers.remove(&number);
        let over = talk.over.clone();
        answer.unwrap_or_else(|| Err(over.unwrap_or_else(|| format!("no answer to {method} within 30 s"))))
    }

    /// Opens a stream and waits for its acknowledgement, which must name the URI.
    pub(crate) fn listen(&self, uri: &str, inbox: &Arc<Inbox>) -> Result<Stream, String> {
        let mut talk = self.lock();
        let (stream, line) = talk.peer.listen(uri);
        talk.streams.insert(stream, Listening { inbox: inbox.clone(), acknowledged: None, ended: None });
        talk.write(&line);
        drop(talk);
        let acknowledged = self.wait(Duration::from_millis(ACK_MS), |talk| {
            let listening = talk.streams.get(&stream)?;
            match (&listening.ended, &listening.acknowledged) {
                (Some(why), _) => Some(Err(why.clone())),
                (None, Some(uris)) => Some(Ok(uris.iter().any(|named| named == uri))),
                (None, None) => None,
            }
        });
        let refused = match acknowledged {
            Some(Ok(true)) => return Ok(stream),
            Some(Ok(false)) => format!("it offers no subscription to `{uri}`"),
            Some(Err(why)) => why,
            None => self.lock().over.clone().unwrap_or_else(|| "no acknowledgement within 10 s".to_owned()),
        };
        self.cancel(stream);
        Err(refused)
    }

    /// Ends a stream.
    pub(crate) fn cancel(&self, stream: Stream) {
        let mut talk = self.lock();
        if talk.streams.remove(&stream).is_some() {
            let line = talk.peer.cancel(stream);
            talk.write(&line);
        }
    }

    /// Waits until `found` finds something, the server is over, or the time is.
    fn wait<T>(&self, longest: Duration, mut found: impl FnMut(&mut Talk) -> Option<T>) -> Option<T> {
        let until = clock::now() + longest;
        let mut talk = self.lock();
        loop {
            if let Some(found) = found(&mut talk) {
                return Some(found);
            }
            let rest = until.saturating_duration_since(clock::now());
            if rest.is_zero() || talk.over.is_some() {
                return None;
            }
            talk = self.changed.wait_timeout(talk, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Talk> {
        self.talk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Talk {
    fn take(&mut self, out: Out) {
        out.lines.iter().for_each(|line| self.write(line));
        for said in out.said {
            match said {
                Said::Ready => self.ready = Some(Ok(())),
                Said::Refused(why) => self.ready = Some(Err(why)),
                Said::Answer(number, answer) => {
                    if let Some(waiting) = self.answers.get_mut(&number) {
                        *waiting = Some(answer);
                    }
                }
                Said::Acknowledged(stream, uris) => {
                    if let Some(listening) = self.streams.get_mut(&stream) {
                        listening.acknowledged = Some(uris);
                    }
                }
                Said::Updated(stream, _) => {
                    if let Some(listening) = self.streams.get(&stream) {
                        listening.inbox.changed();
                    }
                }
                Said::Ended(stream, why) => {
                    if let Some(listening) = self.streams.get_mut(&stream) {
                        listening.inbox.ended(&why);
                        listening.ended = Some(why);
                    }
                }
            }
        }
    }

    /// Writes a line; a server that does not take it is over.
    fn write(&mut self, line: &[u8]) {
        let Some(input) = &self.input else { return };
        if let Err(why) = write_all(input, line) {
            self.over.get_or_insert(why);
            self.input = None;
        }
    }
}

fn write_all(input: &OwnedFd, mut rest: &[u8]) -> Result<(), String> {
    while !rest.is_empty() {
        match rustix::io::write(input, rest) {
            Ok(n) => rest = rest.get(n..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => {
                if !poll::wait(input.as_fd(), Ready::WRITE, Some(WRITE_TIME)).unwrap_or(false) {
                    return Err("it does not read its input".to_owned());
                }
            }
            Err(error) => return Err(format!("its input is closed: {error}")),
        }
    }
    Ok(())
}

/// Lines of a pipe, each at most [`MAX_LINE`] bytes.
#[derive(Default)]
struct Lines {
    read: Vec<u8>,
    /// Bytes of `read` without a line end.
    searched: usize,
}

impl Lines {
    /// The next line without its end; `None` at the end.
    fn next(&mut self, output: &OwnedFd) -> Result<Option<Vec<u8>>, String> {
        loop {
            let rest = self.read.get(self.searched..).unwrap_or_default();
            if let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.read.drain(..=self.searched + at).collect();
                line.pop();
                self.searched = 0;
                return Ok(Some(line));
            }
            self.searched = self.read.len();
            if self.read.len() > MAX_LINE {
                return Err(format!("a line above {} MiB", MAX_LINE >> 20));
            }
            let mut part = [0; 16 * 1024];
            match rustix::io::read(output, &mut part) {
                Ok(0) => return Ok(None),
                Ok(n) => self.read.extend_from_slice(part.get(..n).unwrap_or_default()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(format!("its output: {error}")),
            }
        }
    }
}
