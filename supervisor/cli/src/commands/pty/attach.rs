//! `shoal pty attach`: an agent's terminal, live in the person's own. Only its screen comes here, never what its program
//! prints, so no terminal query reaches the person's terminal and only one side answers them.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use shoal_client::{CallError, Connection, Subscription};
use shoal_wire::Code;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use unicode_width::UnicodeWidthChar as _;

use super::own_terminal::OwnTerminal;
use crate::context::{call, items};
use crate::fail::Fail;

/// Ctrl-].
const DETACH: u8 = 0x1d;
/// Typed pieces on their way; beyond them typing waits.
const AHEAD: usize = 64;

/// What is attached to, and how.
pub(super) struct Wanted {
    /// `pty:N`.
    pub(super) id: String,
    /// Owner of its session, when it is not the caller.
    pub(super) owner: Option<String>,
    /// Type into it, alone.
    pub(super) take: bool,
    /// The journal keeps what is typed.
    pub(super) record: bool,
}

/// Why it ended.
enum End {
    Detached,
    /// The program ended: status or signal.
    Exited(Value),
    /// The terminal was closed.
    Closed,
}

/// Shows it until the person detaches or its program ends. Returns what to say then.
pub(super) async fn attach(connection: &Connection, wanted: &Wanted) -> Result<String, Fail> {
    let id = &wanted.id;
    let channel = format!("pty.{}", id.rsplit(':').next().unwrap_or_default());
    let first = call(connection, "pty.read", json!({"pty_id": id})).await?;
    let (_, ticks) = connection.subscribe(&channel, None, wanted.owner.as_deref()).await?;
    if wanted.take {
        let params = json!({"pty_id": id, "action": "take", "record": wanted.record});
        call(connection, "pty.control", params).await?;
    }
    let own = OwnTerminal::enter()?;
    let watched = Watch { connection, wanted, own: &own, is_clipped: None }.run(ticks).await;
    drop(own);
    if wanted.take {
        give_back(connection, id, &first).await?;
    }
    Ok(match watched? {
        End::Detached => format!("detached from {id}"),
        End::Exited(exit) => match exit["signal"].as_str() {
            Some(signal) => format!("{id} ended by {signal}"),
            None => format!("{id} ended with status {}", exit["status"]),
        },
        End::Closed => format!("{id} was closed"),
    })
}

/// The terminal gets the size it had, and its session may type again. One that was closed meanwhile needs neither.
async fn give_back(connection: &Connection, id: &str, first: &Value) -> Result<(), Fail> {
    let size = json!({"pty_id": id, "cols": first["cols"], "rows": first["rows"]});
    for (method, params) in [("pty.resize", size), ("pty.control", json!({"pty_id": id, "action": "release"}))] {
        match call(connection, method, params).await {
            Ok(_) => {}
            Err(Fail::Call(error)) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_gone(error: &CallError) -> bool {
    error.kernel().is_some_and(|error| error.is(Code::UnknownPty))
}

struct Watch<'a> {
    connection: &'a Connection,
    wanted: &'a Wanted,
    own: &'a OwnTerminal,
    /// Whether the last picture was one that did not fit.
    is_clipped: Option<bool>,
}

impl Watch<'_> {
    async fn run(mut self, mut ticks: Subscription) -> Result<End, Fail> {
        let mut keys = OwnTerminal::keys()?;
        let mut resized = listen(SignalKind::window_change())?;
        let (mut terminated, mut hung_up) = (listen(SignalKind::terminate())?, listen(SignalKind::hangup())?);
        let (type_, mut typed) = mpsc::channel::<Vec<u8>>(AHEAD);
        let (connection, id) = (self.connection, self.wanted.id.as_str());
        let sending = async {
            while let Some(bytes) = typed.recv().await {
                send(connection, id, &bytes).await?;
            }
            Ok::<End, Fail>(End::Detached)
        };
        tokio::pin!(sending);
        self.fit().await?;
        loop {
            if let Some(end) = self.redraw().await? {
                return Ok(end);
            }
            tokio::select! {
                tick = ticks.next() => if tick.is_none() {
                    return Err(Fail::Said("the connection to the kernel was lost".to_owned()));
                },
                sent = &mut sending => return match sent {
                    Err(Fail::Call(error)) if is_gone(&error) => Ok(End::Closed),
                    other => other,
                },
                bytes = keys.recv() => {
                    let bytes = bytes.unwrap_or_else(|| vec![DETACH]);
                    let (before, detach) = match bytes.iter().position(|byte| *byte == DETACH) {
                        Some(at) => (bytes.get(..at).unwrap_or_default(), true),
                        None => (&bytes[..], false),
                    };
                    if self.wanted.take && !before.is_empty() {
                        type_.send(before.to_vec()).await.map_err(|_| Fail::Said("typing ended".to_owned()))?;
                    }
                    if detach {
                        drop(type_);
                        return sending.await;
                    }
                }
                _ = resized.recv() => {
                    self.is_clipped = None;
                    self.fit().await?;
                }
                _ = terminated.recv() => return Ok(End::Detached),
                _ = hung_up.recv() => return Ok(End::Detached),
            }
        }
    }

    /// A terminal that was taken gets the size of the person's own.
    async fn fit(&self) -> Result<(), Fail> {
        if self.wanted.take {
            let (cols, rows) = OwnTerminal::size();
            let params = json!({"pty_id": self.wanted.id, "cols": cols, "rows": rows});
            call(self.connection, "pty.resize", params).await?;
        }
        Ok(())
    }

    async fn redraw(&mut self) -> Result<Option<End>, Fail> {
        let params = json!({"pty_id": self.wanted.id, "formatted": true});
        let screen = match call(self.connection, "pty.read", params).await {
            Ok(screen) => screen,
            Err(Fail::Call(error)) if is_gone(&error) => return Ok(Some(End::Closed)),
            Err(error) => return Err(error),
        };
        let (cols, rows) = OwnTerminal::size();
        let fits = |side: &str, own: u16| screen[side].as_u64().is_some_and(|side| side <= u64::from(own));
        let clipped = !(fits("cols", cols) && fits("rows", rows));
        let mut picture = b"\x1b[?2026h".to_vec();
        if self.is_clipped != Some(clipped) {
            picture.extend_from_slice(b"\x1b[m\x1b[2J");
            self.is_clipped = Some(clipped);
        }
        match screen["formatted"].as_str().filter(|_| !clipped).map(|coded| STANDARD.decode(coded)) {
            Some(Ok(formatted)) => picture.extend(formatted),
            Some(Err(_)) | None => picture.extend(clip(&screen, cols, rows).into_bytes()),
        }
        picture.extend_from_slice(b"\x1b[?2026l");
        self.own.draw(&picture)?;
        Ok((screen["alive"] == json!(false)).then(|| End::Exited(screen["exit"].clone())))
    }
}

fn listen(kind: SignalKind) -> Result<Signal, Fail> {
    signal(kind).map_err(|e| Fail::Said(format!("signals: {e}")))
}

/// Types bytes. A line the terminal cannot take sounds the bell; everything else is an error.
async fn send(connection: &Connection, id: &str, bytes: &[u8]) -> Result<(), Fail> {
    let params = json!({"pty_id": id, "input": {"bytes": STANDARD.encode(bytes)}});
    match call(connection, "pty.send", params).await {
        Err(Fail::Call(error)) if error.kernel().is_some_and(|e| e.reason() == Some("line_too_long")) => {
            std::io::stderr().write_all(b"\x07").map_err(|e| Fail::Said(format!("stderr: {e}")))
        }
        other => other.map(drop),
    }
}

/// The upper left part of a screen that is larger than the person's terminal, without colours.
fn clip(screen: &Value, cols: u16, rows: u16) -> String {
    let mut text = String::from("\x1b[m\x1b[?25h");
    let shown = items(screen, "screen").iter().filter_map(Value::as_str).take(usize::from(rows));
    for (at, row) in shown.enumerate() {
        let mut room = usize::from(cols);
        let fits = |c: &char| {
            let width = c.width().unwrap_or(0);
            room = room.checked_sub(width).unwrap_or(usize::MAX);
            room != usize::MAX
        };
        let part: String = row.chars().take_while(fits).collect();
        text.push_str(&format!("\x1b[{};1H{part}\x1b[K", at + 1));
    }
    let place = |member: &str| screen["cursor"][member].as_u64().unwrap_or(0).saturating_add(1);
    text.push_str(&format!("\x1b[{};{}H", place("row"), place("col")));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_screen_is_clipped_at_whole_characters() {
        let screen = json!({"screen": ["abcdef", "\u{65e5}\u{65e5}\u{65e5}", "gone"], "cursor": {"row": 0, "col": 1}});
        let drawn = clip(&screen, 5, 2);
        assert_eq!(drawn, "\x1b[m\x1b[?25h\x1b[1;1Habcde\x1b[K\x1b[2;1H\u{65e5}\u{65e5}\x1b[K\x1b[1;2H");
    }
}
