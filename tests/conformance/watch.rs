//! A watch client that misses nothing.

use shoal_harness::{Kernel, Place};

use crate::drive::{passes, python, server};

#[test]
fn nothing_is_missed_across_a_broker_that_is_killed() {
    let place = Place::new();
    let kernel = Kernel::start(&place);
    let mut command = python(&place, "python2", "watch2.py");
    let broker = format!("pgrep -x -P {} shoal-broker", kernel.pid());
    command.arg(broker).args(server(&place)).env("SHOAL_SOCKET", kernel.socket());
    passes(command);
}
