//! Stdin and stdout, each on a thread of its own: a blocked pipe blocks nothing else.
//!
//! Both are bounded. Stdin holds one unfinished line and a few finished ones; stdout holds [`QUEUED_FRAMES`] frames,
//! and while they wait the loop reads no further line, which is how a client that does not read is slowed down.

use std::io::{self, Read, Write};

use shoal_wire::frame::{Fed, FrameReader};
use shoal_wire::limits;
use tokio::sync::{mpsc, oneshot};

/// Lines read ahead of the loop.
const READ_AHEAD: usize = 4;
/// Frames waiting for the client to read.
const QUEUED_FRAMES: usize = 64;
/// Longest line: a frame of 16 MiB and its LF, as MCP clients count it.
const LINE_BYTES: usize = limits::FRAME_BYTES + 1;
/// Bytes asked for in one read.
const READ_BYTES: usize = 64 * 1024;

/// What stdin brought.
pub(crate) enum Input {
    /// A line without its end.
    Line(Vec<u8>),
    /// A line longer than a frame; it was dropped.
    TooLong,
}

/// Starts reading `stdin`. The channel closes at its end.
pub(crate) fn read_from(mut stdin: impl Read + Send + 'static) -> mpsc::Receiver<Input> {
    let (inputs, incoming) = mpsc::channel(READ_AHEAD);
    std::thread::spawn(move || {
        let mut cutter = FrameReader::new(LINE_BYTES);
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let count = match stdin.read(&mut buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // A broken stdin is an end like any other.
                Err(_) => 0,
            };
            if count == 0 {
                break;
            }
            if !cut(&mut cutter, &buffer[..count], &inputs) {
                return;
            }
        }
        if let Some(line) = cutter.finish() {
            // The loop is gone only when the process ends.
            drop(inputs.blocking_send(Input::Line(line)));
        }
    });
    incoming
}

fn cut(cutter: &mut FrameReader, mut bytes: &[u8], inputs: &mpsc::Sender<Input>) -> bool {
    loop {
        let input = match cutter.feed(&mut bytes) {
            Fed::NeedMore => return true,
            Fed::Frame(line) => Input::Line(line),
            Fed::TooLong => Input::TooLong,
        };
        if inputs.blocking_send(input).is_err() {
            return false;
        }
    }
}

struct Frame {
    bytes: Vec<u8>,
    written: Option<oneshot::Sender<()>>,
}

/// The way to stdout. Clones share it.
#[derive(Clone)]
pub(crate) struct Output {
    frames: mpsc::Sender<Frame>,
}

/// Stdout is closed: the client is gone.
#[derive(Debug)]
pub(crate) struct Gone;

impl Output {
    /// Starts writing to `stdout`. The future resolves when everything is written or the client is gone.
    pub(crate) fn to(mut stdout: impl Write + Send + 'static) -> (Output, oneshot::Receiver<()>) {
        let (frames, mut queued) = mpsc::channel::<Frame>(QUEUED_FRAMES);
        let (done, ended) = oneshot::channel();
        std::thread::spawn(move || {
            while let Some(frame) = queued.blocking_recv() {
                if stdout.write_all(&frame.bytes).and_then(|()| stdout.flush()).is_err() {
                    break;
                }
                if let Some(written) = frame.written {
                    // Whoever waited may have given up.
                    written.send(()).ok();
                }
            }
            done.send(()).ok();
        });
        (Output { frames }, ended)
    }

    /// Queues a frame, LF included; waits while the queue is full.
    pub(crate) async fn send(&self, bytes: Vec<u8>) -> Result<(), Gone> {
        self.frames.send(Frame { bytes, written: None }).await.map_err(|_| Gone)
    }

    /// Queues a frame and waits until the client's pipe has taken it.
    pub(crate) async fn send_through(&self, bytes: Vec<u8>) -> Result<(), Gone> {
        let (written, done) = oneshot::channel();
        self.frames.send(Frame { bytes, written: Some(written) }).await.map_err(|_| Gone)?;
        done.await.map_err(|_| Gone)
    }

    /// Waits until the queue has room.
    pub(crate) async fn room(&self) -> Result<(), Gone> {
        self.frames.reserve().await.map(drop).map_err(|_| Gone)
    }
}
