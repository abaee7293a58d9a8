//! Launcher and ptyd: leaders of terminals.

use bincode::{Decode, Encode};

use crate::broker_launcher::{PtyExited, PtyId};
use crate::hello::Hello;
use crate::message::edge;
use crate::supervisor_launcher::Generation;

/// A terminal whose leader is in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Leader {
    /// The broker's number.
    pub id: PtyId,
    /// Pid of the program inside the jail.
    pub pid: i32,
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
    /// The emulator before this one died: start blank and make the program repaint.
    pub again: bool,
}

edge! {
    /// Launcher to ptyd.
    ToPtyd = "launcher to ptyd" {
        /// First message.
        1 Hello(Hello) Control [0;],
        /// A fresh end of broker-ptyd.
        2 Adopt(Generation) Control [1; Socket],
        /// A terminal to host.
        3 Leader(Leader) Control [1; Leader],
        /// A terminal's program ended.
        4 Exited(PtyExited) Control [0;],
    }
}

edge! {
    /// Ptyd to launcher.
    ToLauncher = "ptyd to launcher" {
        /// First message, after the ptyd confined itself.
        1 Hello(Hello) Control [0;],
    }
}
