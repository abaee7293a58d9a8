//! A launcher that has nothing to end: every ladder succeeds at once, but for that of a session that starts in `/climbing`,
//! which never ends.

use std::time::Duration;

use shoal_chan::{Chan, ChanError};
use shoal_proto::List;
use shoal_proto::broker_launcher::{Listing, ToBroker, ToLauncher};
use shoal_proto::launcher_worker::Receipt;

use crate::kernel::hello;
use crate::worker::Memory;

/// Plays the launcher until its end closes.
pub(crate) fn serve(mut edge: Chan<ToBroker, ToLauncher>, memory: &Memory) {
    edge.send(&ToBroker::Hello(hello()), &[]).ok();
    loop {
        let message = match edge.recv_deadline(Duration::from_millis(100)) {
            Ok(received) => received.msg,
            Err(ChanError::TimedOut) if memory.is_over() => return,
            Err(ChanError::TimedOut) => continue,
            Err(_) => return,
        };
        let answer = match message {
            ToLauncher::Cancel(_) if memory.starts_in("/climbing") => continue,
            ToLauncher::Cancel(cancel) => ToBroker::Receipt(Receipt {
                call: cancel.call,
                ended: List::new(vec![48]).expect("few"),
                survived: List::default(),
                escalated: Some(cancel.rung),
            }),
            ToLauncher::Suspend(order) | ToLauncher::Resume(order) => ToBroker::Done(order),
            ToLauncher::List(order) => {
                ToBroker::Listing(Listing { call: order.call, running: List::default(), processes: 1 })
            }
            ToLauncher::Hello(_) | ToLauncher::SpawnPty(_) | ToLauncher::KillPty(_) => continue,
        };
        edge.send(&answer, &[]).ok();
    }
}
