//! The tasks that touch client sockets: accepting, cutting frames, writing queues. They decide nothing but limits.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use shoal_wire::frame::{Fed, FrameReader};
use shoal_wire::limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use super::{ConnId, Life, Outgoing};
use crate::wake::Wake;

/// Bytes of one read from a client.
const READ: usize = 64 * 1024;

/// Who is at the other end, as the OS tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Process that connected, when the OS tells.
    pub(crate) pid: Option<i32>,
}

/// The share of a connection's budget that a request holds until it is answered.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    _request: Option<OwnedSemaphorePermit>,
    _bytes: Option<OwnedSemaphorePermit>,
}

/// A frame and its share of the budget.
#[derive(Debug)]
pub(crate) struct Frame {
    /// The line without its end.
    pub(crate) bytes: Vec<u8>,
    /// Its share.
    pub(crate) hold: Hold,
}

impl Frame {
    #[cfg(test)]
    pub(crate) fn test(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), hold: Hold::default() }
    }
}

/// Accepts connections of the kernel's own uid while there is a place among those that have said nothing. Ends when the loop is gone.
pub(crate) async fn accept(listener: UnixListener, uid: u32, places: Arc<Semaphore>, wakes: mpsc::Sender<Wake>) {
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of descriptors or memory: connections in the backlog wait until something is given back.
                if wakes.send(Wake::AcceptFailed(error)).await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Ok(cred) = stream.peer_cred() else { continue };
        if cred.uid() != uid {
            continue;
        }
        let peer = Peer { pid: cred.pid() };
        if wakes.send(Wake::Accepted { stream, peer, place }).await.is_err() {
            return;
        }
    }
}

/// Starts the two tasks of a connection.
pub(crate) fn serve(
    id: ConnId,
    stream: UnixStream,
    out: Rc<Outgoing>,
    attached: Rc<Cell<bool>>,
    wakes: &mpsc::Sender<Wake>,
    frame_time: Duration,
) -> [AbortHandle; 2] {
    let (read, write) = stream.into_split();
    let (reader_wakes, writer_wakes) = (wakes.clone(), wakes.clone());
    let reader_out = out.clone();
    let reader = tokio::task::spawn_local(async move {
        // Whatever ends the reader ends the connection: the reasons differ for nobody.
        let why = read_frames(id, read, &attached, &reader_wakes, frame_time).await.err();
        reader_out.with(|queue| queue.end(Life::Over));
        if let Some(why) = why {
            log_violation(id, &why);
        }
        // The loop may be gone already; then nobody has to know.
        reader_wakes.send(Wake::ClientGone(id)).await.ok();
    });
    let writer = tokio::task::spawn_local(async move {
        if write_frames(id, write, &out, &writer_wakes).await.is_err() {
            out.with(|queue| queue.end(Life::Over));
        }
        writer_wakes.send(Wake::ClientGone(id)).await.ok();
    });
    [reader.abort_handle(), writer.abort_handle()]
}

/// One line on stderr about a connection that broke a rule.
fn log_violation(id: ConnId, why: &io::Error) {
    if why.kind() == io::ErrorKind::InvalidData {
        crate::log::line(format_args!("connection {}: {why}; closed", id.0));
    }
}

/// Cuts frames until the connection ends or breaks a limit.
async fn read_frames(
    id: ConnId,
    mut read: OwnedReadHalf,
    attached: &Cell<bool>,
    wakes: &mpsc::Sender<Wake>,
    frame_time: Duration,
) -> io::Result<()> {
    let requests = Arc::new(Semaphore::new(limits::PIPELINED_REQUESTS));
    let budget = Arc::new(Semaphore::new(limits::PIPELINED_BYTES));
    let mut reader = FrameReader::new(limits::FRAME_BYTES);
    let mut buffer = vec![0; READ];
    let mut begun: Option<Instant> = None;
    let mut last_frame = Instant::now();
    let mut silence = Duration::from_millis(limits::UNATTACHED_SILENCE_MS);
    loop {
        let until = match begun {
            Some(begun) => Some(begun + frame_time),
            None => (!attached.get()).then(|| last_frame + silence),
        };
        let n = match until {
            Some(until) => timeout_at(until, read.read(&mut buffer)).await,
            None => Ok(read.read(&mut buffer).await),
        };
        let n = match n {
            Ok(n) => n?,
            // A silent connection that was attached meanwhile may stay.
            Err(_) if begun.is_none() && attached.get() => continue,
            Err(_) => return Err(violation("no whole frame in time")),
        };
        let mut input = buffer.get(..n).unwrap_or_default();
        if input.is_empty() {
            return Ok(());
        }
        loop {
            match reader.feed(&mut input) {
                Fed::Frame(bytes) => {
                    let hold = hold(&requests, &budget, bytes.len()).await?;
                    wakes.send(Wake::Frame(id, Frame { bytes, hold })).await.map_err(|_| closed())?;
                    last_frame = Instant::now();
                    silence = Duration::from_millis(limits::UNATTACHED_PAUSE_MS);
                    begun = None;
                }
                Fed::TooLong => return Err(violation("frame above 16 MiB")),
                Fed::NeedMore => break,
            }
        }
        if reader.is_partial() {
            begun = begun.or_else(|| Some(Instant::now()));
        }
    }
}

/// Waits until the connection may have one more request in work.
async fn hold(requests: &Arc<Semaphore>, budget: &Arc<Semaphore>, len: usize) -> io::Result<Hold> {
    let share = u32::try_from(len).map_err(|_| closed())?;
    let request = requests.clone().acquire_owned().await.map_err(|_| closed())?;
    let bytes = budget.clone().acquire_many_owned(share).await.map_err(|_| closed())?;
    Ok(Hold { _request: Some(request), _bytes: Some(bytes) })
}

/// Writes the queue until the connection ends.
async fn write_frames(
    id: ConnId,
    mut write: OwnedWriteHalf,
    out: &Outgoing,
    wakes: &mpsc::Sender<Wake>,
) -> io::Result<()> {
    loop {
        let (batch, life) = out.peek(|queue| (queue.take(), queue.life()));
        if life == Life::Over {
            return Ok(());
        }
        if batch.bytes.is_empty() {
            if life == Life::Finishing {
                return write.shutdown().await;
            }
            out.changed().await;
            continue;
        }
        tokio::select! {
            written = write.write_all(&batch.bytes) => written?,
            () = given_up(out) => return Ok(()),
        }
        out.peek(|queue| queue.written(batch.bytes.len()));
        for sub in batch.drained {
            wakes.send(Wake::Drained(id, sub)).await.map_err(|_| closed())?;
        }
    }
}

/// Resolves when the connection is given up while a write is stuck.
async fn given_up(out: &Outgoing) {
    while out.peek(|queue| queue.life()) != Life::Over {
        out.changed().await;
    }
}

fn violation(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn closed() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}
