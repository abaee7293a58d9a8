//! `shoal watch run`: a command for each notice, one at a time; what comes meanwhile makes one message.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Write as _};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use shoal_client::Connection;
use shoal_wire::envelope::Event;
use tokio::sync::mpsc;

use super::message::{Notice, is_reply, message};
use crate::args::WatchRun;
use crate::context::{Context, call, items, text};
use crate::fail::Fail;
use crate::out;

/// Pauses between attempts to attach again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(5);
/// Notices that wait for a running command; a reader this far behind is told of the newest ones it misses by their numbers.
const WAITING: usize = 1024;

/// Follows watches until interrupted.
pub(super) fn run(context: &Context, follow: &WatchRun) -> Result<ExitCode, Fail> {
    context.block_on(async {
        let mut seen = BTreeMap::new();
        let mut pause = FIRST_PAUSE;
        let mut connected = context.attach().await?.0;
        loop {
            follow_until_lost(connected, follow, &mut seen).await?;
            connected = loop {
                tokio::time::sleep(pause).await;
                match context.attach().await {
                    Ok((connection, _)) => break connection,
                    Err(error @ Fail::Call(_)) => return Err(error),
                    Err(_) => pause = (pause * 2).min(LAST_PAUSE),
                }
            };
            pause = FIRST_PAUSE;
        }
    })
}

/// One connection: subscribes to the watches there are and to those that start later.
async fn follow_until_lost(
    connection: Connection,
    follow: &WatchRun,
    seen: &mut BTreeMap<String, u64>,
) -> Result<(), Fail> {
    let connection = Arc::new(connection);
    let (sender, mut events) = mpsc::channel(WAITING);
    let mut followed = BTreeSet::new();
    forward(&connection, "session", None, &sender).await?;
    let listed = call(&connection, "watch.list", json!({})).await?;
    for name in items(&listed, "watches").iter().map(|watch| text(watch, "name")) {
        add(&connection, follow, &name, seen, &mut followed, &sender).await?;
    }
    while let Some(first) = next(&connection, &mut events).await {
        let mut notices = Vec::new();
        let mut arrived = Some(first);
        while let Some(event) = arrived {
            match started(&event) {
                Some(name) => add(&connection, follow, &name, seen, &mut followed, &sender).await?,
                None => notices.extend(noted(&event, seen)),
            }
            arrived = events.try_recv().ok();
        }
        if !notices.is_empty() {
            answer(&notices, follow).await?;
        }
    }
    Ok(())
}

/// The next event; `None` when the connection is lost.
async fn next(connection: &Connection, events: &mut mpsc::Receiver<Event>) -> Option<Event> {
    tokio::select! {
        event = events.recv() => event,
        () = connection.lost() => None,
    }
}

async fn add(
    connection: &Arc<Connection>,
    follow: &WatchRun,
    name: &str,
    seen: &BTreeMap<String, u64>,
    followed: &mut BTreeSet<String>,
    sender: &mpsc::Sender<Event>,
) -> Result<(), Fail> {
    let wanted = follow.watch.is_empty() || follow.watch.iter().any(|watch| watch == name);
    if !wanted || !followed.insert(name.to_owned()) {
        return Ok(());
    }
    let channel = format!("watch.{name}");
    let since = seen.get(&channel).copied();
    forward(connection, &channel, since, sender).await
}

/// Subscribes and hands the events on.
async fn forward(
    connection: &Arc<Connection>,
    channel: &str,
    since: Option<u64>,
    sender: &mpsc::Sender<Event>,
) -> Result<(), Fail> {
    let (_, mut subscription) = connection.subscribe(channel, since, None).await?;
    let sender = sender.clone();
    tokio::spawn(async move {
        while let Some(event) = subscription.next().await {
            if sender.send(event).await.is_err() {
                break;
            }
        }
    });
    Ok(())
}

/// The name of a watch that an event says has started.
fn started(event: &Event) -> Option<String> {
    if event.channel != "session" {
        return None;
    }
    let payload = shoal_wire::value::plain(&event.payload);
    Some(if payload["action"] == "watch_started" {
        payload["name"].as_str().unwrap_or_default().to_owned()
    } else {
        String::new()
    })
}

/// The notice of an event; each number once.
fn noted(event: &Event, seen: &mut BTreeMap<String, u64>) -> Option<Notice> {
    let last = seen.get(&event.channel).copied();
    if last.is_some_and(|last| event.seq <= last) {
        return None;
    }
    seen.insert(event.channel.clone(), event.seq);
    Notice::of(&event.payload)
}

/// Runs the command with one message, and shows its answer.
async fn answer(notices: &[Notice], follow: &WatchRun) -> Result<(), Fail> {
    let (text, command) = (message(notices), follow.on_notice.clone());
    let names: Vec<&str> = notices.iter().map(|notice| &*notice.name).collect::<BTreeSet<_>>().into_iter().collect();
    let uris: Vec<&str> = notices.iter().map(|notice| &*notice.uri).collect::<BTreeSet<_>>().into_iter().collect();
    let (named, uri) = (names.join(" "), uris.join(" "));
    let ran = tokio::task::spawn_blocking(move || run_command(&command, &named, &uri, text.as_bytes()));
    let ran = ran.await.map_err(|error| Fail::Said(format!("the command's thread: {error}")))?;
    match ran {
        Err(why) => out::note(&format!("shoal: --on-notice: {why}")),
        Ok(reply) if is_reply(&reply) => out::line(&reply)?,
        Ok(_) if follow.verbose => {
            out::note(&json!({"event": "reply.suppressed", "name": names.join(" ")}).to_string());
        }
        Ok(_) => {}
    }
    Ok(())
}

/// The output of a command, or why there is none to use.
fn run_command(command: &str, name: &str, uri: &str, text: &[u8]) -> Result<String, String> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .env("SHOAL_WATCH_NAME", name)
        .env("SHOAL_WATCH_URI", uri)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("sh: {error}"))?;
    // A command that does not read its message is as good as one that does; messages fit a pipe, so this does not wait.
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(text));
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(format!("its message: {error}")),
        _ => {}
    }
    if !output.status.success() {
        return Err(format!("{}; its output is discarded", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_wire::value;

    fn event(channel: &str, seq: u64, payload: serde_json::Value) -> Event {
        Event { channel: channel.into(), owner: None, seq, ts: 0, payload }
    }

    #[test]
    fn each_number_makes_one_notice() {
        let payload = value::record([("name", value::str("cm")), ("uri", value::str("u")), ("text", value::str("t"))]);
        let mut seen = BTreeMap::new();
        let mut noted = |seq| noted(&event("watch.cm", seq, payload.clone()), &mut seen).is_some();
        assert_eq!([4, 4, 3, 5].map(&mut noted), [true, false, false, true]);
    }

    #[test]
    fn later_watches_are_known_by_their_event() {
        let payload = |action| value::record([("action", value::str(action)), ("name", value::str("cm"))]);
        assert_eq!(started(&event("session", 1, payload("watch_started"))).as_deref(), Some("cm"));
        assert_eq!(started(&event("session", 1, payload("created"))).as_deref(), Some(""));
        assert_eq!(started(&event("watch.cm", 1, payload("watch_started"))), None);
    }

    #[test]
    fn commands_get_the_message_and_may_ignore_it() {
        let run = |command: &str| run_command(command, "cm", "u", b"hello");
        assert_eq!(run("cat; echo \" $SHOAL_WATCH_NAME\"").as_deref(), Ok("hello cm\n"));
        assert_eq!(run("echo x").as_deref(), Ok("x\n"));
        assert!(run("echo x; exit 3").is_err_and(|why| why.contains('3')));
    }
}
