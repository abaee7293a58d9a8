//! Watches: standing interests in resources, their events, filters, batches and notices.
//!
//! A [`Watch`] is a state machine without clock or socket. Its driver tells it what happened (a subscription was
//! acknowledged, something changed, a read came back, time passed) and carries out the [`Act`]s it answers with. It
//! asks to be woken only while a batch, a wait or a retry is under way, so nothing polls.
//!
//! From a change to a notice: a read is compared with what was there before ([`progress`]), each difference is an
//! event, the filter or the default makes a line of it ([`mod@line`]), equal lines are dropped and bursts are gathered
//! ([`batch`]), and a batch becomes one [`Notice`].
//!
//! Servers other than the session's own are spoken to by [`peer::Peer`], which reads and writes lines and knows
//! nothing of processes; [`route`] finds the server of a URI.
#![forbid(unsafe_code)]

pub mod batch;
mod diff;
pub mod filter;
mod key;
pub mod limits;
pub mod line;
pub mod notice;
pub mod peer;
pub mod progress;
pub mod route;
mod spec;
mod watch;

pub use notice::Notice;
pub use spec::{Account, Shape, Spec, State};
pub use watch::{Act, Ended, Log, Watch};

/// Milliseconds on the driver's monotonic clock.
pub type Millis = u64;
