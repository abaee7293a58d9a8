//! `shoal top`: the kernel live, full screen, with the few actions a person needs at once: kill, freeze, approve.
//!
//! [`board`] is what is known and selected, [`keys`] turns keys into actions, [`view`] draws the board, [`source`] reads
//! the kernel. Events of the kernel ask for a fresh look; figures that have no event (memory) are read once a second.

mod board;
mod keys;
mod rates;
mod source;
mod view;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use crossterm::event::{Event, KeyEventKind};
use ratatui::DefaultTerminal;
use tokio::sync::mpsc;

use crate::context::Context;
use crate::fail::Fail;
use board::Board;
use keys::Action;
use source::Source;

/// How often figures without an event are read.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Events within this time share one look.
const GATHER: Duration = Duration::from_millis(80);
/// Keys that may wait while a call is under way: more than anybody types meanwhile.
const KEYS: usize = 64;

/// Shows the kernel until the person quits; it never starts one.
pub(crate) fn run(context: Context) -> Result<ExitCode, Fail> {
    if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
        return Err(Fail::Usage("top needs a terminal; for one look use: shoal status (or --json)".to_owned()));
    }
    let context = context.running_only();
    let color = crate::style::on_stdout();
    context.block_on(async {
        // Before the screen is taken, so that a kernel that does not answer is said in plain text.
        let mut source = Source::open(&context).await?;
        let mut board = Board::new(color);
        source.look(&mut board).await?;
        let mut terminal = ratatui::try_init().map_err(|e| Fail::Said(format!("cannot take the terminal: {e}")))?;
        let ended = serve(&mut terminal, &mut source, &mut board).await;
        ratatui::restore();
        ended
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(terminal: &mut DefaultTerminal, source: &mut Source, board: &mut Board) -> Result<(), Fail> {
    let mut keys = typed();
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut hang_up = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .map_err(|e| Fail::Said(format!("cannot take signals: {e}")))?;
    loop {
        terminal
            .draw(|frame| view::draw(frame, board))
            .map_err(|e| Fail::Said(format!("the terminal cannot be written: {e}")))?;
        let action = tokio::select! {
            typed = keys.recv() => match typed {
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => keys::action(board, key),
                Some(_) => Action::None,
                None => Action::Quit,
            },
            _ = look.tick() => { board.rates.tick(); Action::Look }
            () = source.changed(&mut board.rates) => {
                // What comes right behind it is seen by the same look.
                tokio::time::sleep(GATHER).await;
                Action::Look
            }
            _ = hang_up.recv() => Action::Quit,
        };
        match action {
            Action::None => {}
            Action::Quit => return Ok(()),
            Action::Look => source.look(board).await?,
            Action::Call { method, params, owner } => {
                let said = source.call(method, params, owner.as_ref()).await;
                board.say(method, said);
                source.look(board).await?;
            }
        }
    }
}

/// Keys from a thread of their own: reading a terminal blocks. The thread ends with the process, or with its reader.
fn typed() -> mpsc::Receiver<Event> {
    let (tell, keys) = mpsc::channel(KEYS);
    std::thread::spawn(move || {
        while let Ok(event) = crossterm::event::read() {
            if tell.blocking_send(event).is_err() {
                break;
            }
        }
    });
    keys
}
