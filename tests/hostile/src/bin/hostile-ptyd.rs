//! Stands in for a session's ptyd and is hostile: it puts on the ptyd's own confinement, takes terminals, and does what
//! is typed into one: every attack (the targets as JSON) or one violation of the protocol (`violate NAME`). The outcomes
//! are on the screen.
#![forbid(unsafe_code)]

use std::io;
use std::os::fd::AsFd as _;

use shoal_chan::Chan;
use shoal_hostile::violations::{Raw, hello, ptyd_violation};
use shoal_hostile::{Targets, run_all};
use shoal_proto::broker_ptyd::{self, Input, PtyCall, Screen, Sent};
use shoal_proto::{List, Text, launcher_ptyd};
use shoal_sys::poll::{Ready, poll};

/// Rows of every screen it shows.
const ROWS: usize = 400;

struct Ptyd {
    launcher: Chan<launcher_ptyd::ToLauncher, launcher_ptyd::ToPtyd>,
    broker: Raw<broker_ptyd::ToBroker, broker_ptyd::ToPtyd>,
    text: String,
}

fn main() -> io::Result<()> {
    shoal_sys::prctl::set_name("shoal-ptyd")?;
    shoal_sys::signal::ignore_pipe();
    let (launcher, broker) = (shoal_sys::fd::inherited(3)?, shoal_sys::fd::inherited(4)?);
    shoal_jail::confine::ptyd().map_err(|failed| io::Error::other(failed.to_string()))?;
    std::panic::set_hook(Box::new(|_| {}));
    let mut ptyd = Ptyd { launcher: Chan::from_fd(launcher)?, broker: Raw::new(broker)?, text: String::new() };
    let told = launcher_ptyd::ToLauncher::Hello(hello());
    ptyd.launcher.send(&told, &[]).map_err(|error| io::Error::other(error.to_string()))?;
    ptyd.broker.send(&broker_ptyd::ToBroker::Hello(hello()))?;
    loop {
        let interests = [(ptyd.launcher.as_fd(), Ready::READ), (ptyd.broker.as_fd(), Ready::READ)];
        let ready = poll(&interests, None)?;
        if ready.first().is_some_and(|ready| ready.any()) && ptyd.launcher.recv().is_err() {
            return Ok(());
        }
        if ready.get(1).is_some_and(|ready| ready.any()) {
            let message = ptyd.broker.recv()?;
            ptyd.on_broker(message)?;
        }
    }
}

impl Ptyd {
    fn on_broker(&mut self, message: broker_ptyd::ToPtyd) -> io::Result<()> {
        use broker_ptyd::{ToBroker, ToPtyd};
        match message {
            ToPtyd::Send(send) => {
                let typed = send.input.as_slice().iter().filter_map(|input| match input {
                    Input::Text(text) => Some(text.to_string()),
                    Input::Key(_) | Input::Raw(_) => None,
                });
                let typed: String = typed.collect();
                if let Some(name) = typed.strip_prefix("violate ") {
                    return ptyd_violation(&mut self.broker, name, send.call);
                }
                self.text = Targets::from_text(&typed).map_or(typed, |targets| run_all(&targets));
                self.broker.send(&ToBroker::Sent(Sent { call: send.call, sent: 0, complete: true }))
            }
            ToPtyd::Read(read) => {
                let screen = self.screen(read.call);
                self.broker.send(&ToBroker::Screen(screen))
            }
            ToPtyd::Resize(resize) => self.broker.send(&ToBroker::Done(PtyCall { call: resize.call, id: resize.id })),
            ToPtyd::Close(close) => self.broker.send(&ToBroker::Done(close)),
            ToPtyd::Hello(_) | ToPtyd::Expect(_) | ToPtyd::CancelRead(_) => Ok(()),
        }
    }

    fn screen(&self, call: u64) -> Screen {
        let lines = self.text.lines().chain(std::iter::repeat("")).take(ROWS);
        let rows: Vec<_> = lines.map(Text::cut).collect();
        Screen {
            call,
            cols: 80,
            rows: List::new(rows).unwrap_or_default(),
            row: 0,
            col: 0,
            hidden: false,
            changed: true,
            reset: false,
            exit: None,
            waited_ms: 0,
            matched: None,
            timed_out: false,
            scrollback_len: 0,
            scrollback: List::default(),
            formatted: Default::default(),
            output: 0,
        }
    }
}
