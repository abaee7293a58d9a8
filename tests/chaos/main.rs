//! Chaos: every role is killed at a moment nobody chose, while clients work. What was acknowledged is still there, what
//! was asked once happened at most once, and nothing hangs.
//!
//! `SHOAL_CHAOS_SEED` repeats a run, `SHOAL_CHAOS_ROUNDS` makes more of them, each with a kernel of its own.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "tests start processes and read files")]

mod killer;
mod ledger;
mod teller;

use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::Signal;
use serde_json::json;
use shoal_harness::{Kernel, Place, processes, until};

use killer::Killer;
use ledger::Ledger;
use teller::Teller;

/// Clients, each with a session of its own.
const TELLERS: usize = 4;
/// Strikes of a round.
const STRIKES: usize = 12;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|e| panic!("{variable}={text}: {e}")))
}

#[test]
fn what_was_acknowledged_survives_the_death_of_any_role() {
    let seed = number("SHOAL_CHAOS_SEED").unwrap_or_else(|| fastrand::u64(..));
    for round in 0..number("SHOAL_CHAOS_ROUNDS").unwrap_or(1) {
        let seed = seed.wrapping_add(round);
        eprintln!("SHOAL_CHAOS_SEED={seed}");
        one_round(seed);
    }
}

fn one_round(seed: u64) {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let ledgers: Vec<Ledger> = (0..TELLERS).map(|n| Ledger::new(&place, n)).collect();
    let closing = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for ledger in &ledgers {
            let (socket, closing) = (kernel.socket(), &closing);
            scope.spawn(move || Teller::new(socket, ledger).work_until(closing));
        }
        // A panic of the killer must end the clients too, or the scope waits for ever.
        let _closed = CloseAtEnd(&closing);
        let mut killer = Killer::new(&kernel, seed);
        for _ in 0..STRIKES {
            let before = ledgers.iter().map(Ledger::told).sum::<usize>();
            let wanted = before + killer.patience();
            until("clients get answers", || ledgers.iter().map(Ledger::told).sum::<usize>() >= wanted);
            killer.strike();
        }
        until("every client gets answers again", || ledgers.iter().all(Ledger::was_answered_since_asked));
    });
    let mut human = kernel.attach("audit");
    for ledger in &ledgers {
        ledger.check_against_the_file();
        ledger.check_against_the_journal(&mut human);
    }
    assert_eq!(human.ok("journal.verify", json!({}))["ok"], json!(true));
}

/// Ends the clients' work when the scope ends, however it ends.
struct CloseAtEnd<'a>(&'a AtomicBool);

impl Drop for CloseAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn what_was_acknowledged_survives_the_death_of_the_supervisor() {
    let place = Place::new();
    let ledger = Ledger::new(&place, 0);
    let first = Kernel::start(&place);
    let mut teller = Teller::new(first.socket(), &ledger);
    for _ in 0..20 {
        teller.tell();
    }
    let mut hanging = first.attach("hanging");
    hanging.send("exec", json!({"src": "/bin/sleep 633.1", "key": "hangs"}));
    until("the command runs", || !first.pids_of("sleep").is_empty());
    let tree = processes::tree(first.pid());
    processes::signal(first.pid(), Signal::SIGKILL);
    // The supervisor too: its broker may be gone while it is still closing what it held, the lock among that.
    for process in &tree {
        until(&format!("{} ends", process.comm), || !processes::is_running(process.pid));
    }
    std::mem::forget(first);

    let second = Kernel::start(&place);
    let mut human = second.attach("audit");
    ledger.check_against_the_file();
    ledger.check_against_the_journal(&mut human);
    let rows = human.ok("journal.query", json!({"session": "hanging", "kinds": ["exec"]}));
    assert_eq!(rows[0]["ended"], json!("interrupted"), "{rows}");
    assert_eq!(human.ok("journal.verify", json!({}))["ok"], json!(true));
    let mut again = second.attach("hanging");
    let interrupted = again.err("exec", json!({"src": "/bin/sleep 633.1", "key": "hangs"}));
    assert_eq!((interrupted.code, &interrupted.data["entry_id"]), (-32050, &rows[0]["id"]), "{interrupted:?}");
}
