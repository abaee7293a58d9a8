//! Broker and ptyd: keys in, screens out. The ptyd can never ask for a program.

use bincode::{Decode, Encode};

use crate::bounded::{Bytes, List, Text};
use crate::broker_launcher::{PtyExited, PtyId};
use crate::hello::Hello;
use crate::message::edge;

/// Input of one call, decoded.
pub const MAX_INPUT: usize = 1024 * 1024;
/// A rendered row: 1,000 columns of a base character and its marks.
pub const MAX_ROW: usize = 32 * 1024;

/// A terminal that will come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Expect {
    /// The broker's number.
    pub id: PtyId,
    /// Columns, 1..=1000.
    pub cols: u16,
    /// Rows, 1..=1000.
    pub rows: u16,
}

/// One piece of input.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Input {
    /// Text as typed; with `paste` in the call it is wrapped when the program asked for that.
    Text(Text<MAX_INPUT>),
    /// A named key, encoded by the modes in force.
    Key(Text<32>),
    /// Bytes as they are.
    Raw(Bytes<MAX_INPUT>),
}

/// Write to a terminal.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Send {
    /// Number of the request.
    pub call: u64,
    /// The terminal.
    pub id: PtyId,
    /// What, in order.
    pub input: List<Input, 4096>,
    /// Wrap text in the bracketed-paste markers if the mode is on.
    pub paste: bool,
}

/// Conditions of a read; the first that holds ends it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Wait {
    /// This text is on the screen.
    pub text: Option<Text<1024>>,
    /// This pattern matches the screen.
    pub regex: Option<Text<1024>>,
    /// No output for this long.
    pub quiet_ms: Option<u32>,
    /// The program ended.
    pub exit: bool,
    /// End of the wait.
    pub timeout_ms: u32,
}

/// Read a screen.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Read {
    /// Number of the request.
    pub call: u64,
    /// The terminal.
    pub id: PtyId,
    /// Wait first.
    pub wait: Option<Wait>,
    /// Lines of scrollback wanted, `start..end` counted from the oldest kept line.
    pub scrollback: Option<(u32, u32)>,
    /// The formatted screen (escape sequences) besides the text, for a person's own terminal.
    pub formatted: bool,
}

/// Order about one terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PtyCall {
    /// Number of the request.
    pub call: u64,
    /// The terminal.
    pub id: PtyId,
}

/// New size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Resize {
    /// Number of the request.
    pub call: u64,
    /// The terminal.
    pub id: PtyId,
    /// Columns, 1..=1000.
    pub cols: u16,
    /// Rows, 1..=1000.
    pub rows: u16,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Sent {
    /// Number of the request.
    pub call: u64,
    /// Bytes written.
    pub sent: u64,
    /// All of it.
    pub complete: bool,
}

/// Which condition ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Matched {
    /// Text was on the screen.
    Text,
    /// The pattern matched.
    Regex,
    /// It was quiet.
    Quiet,
    /// The program ended.
    Exit,
}

/// A screen as it is.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Screen {
    /// Number of the request.
    pub call: u64,
    /// Columns.
    pub cols: u16,
    /// Exactly this many rows, trailing blanks removed.
    pub rows: List<Text<MAX_ROW>, 1000>,
    /// Cursor row, from 0.
    pub row: u16,
    /// Cursor column, from 0.
    pub col: u16,
    /// Cursor hidden.
    pub hidden: bool,
    /// Something changed since the previous read.
    pub changed: bool,
    /// The emulator had to be rebuilt; said once.
    pub reset: bool,
    /// How the program ended, when it did.
    pub exit: Option<crate::hello::ExitStatus>,
    /// How long the wait took.
    pub waited_ms: u32,
    /// What ended the wait.
    pub matched: Option<Matched>,
    /// The wait ran out.
    pub timed_out: bool,
    /// Lines of scrollback kept.
    pub scrollback_len: u32,
    /// The lines asked for.
    pub scrollback: List<Text<MAX_ROW>, 10_000>,
    /// The formatted screen, empty unless asked for.
    pub formatted: Bytes<{ 8 * 1024 * 1024 }>,
    /// Count of output bytes so far.
    pub output: u64,
}

/// Why a call was refused.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Refusal {
    /// No such terminal here.
    Unknown,
    /// A key nobody knows.
    Key(Text<64>),
    /// The pattern does not compile.
    Regex(Text<1024>),
    /// A line longer than the terminal's canonical buffer.
    LineTooLong {
        /// The longest that fits, in bytes.
        max: u32,
    },
    /// The program is gone.
    Closed,
}

/// A refused call.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Refused {
    /// Number of the request.
    pub call: u64,
    /// Why.
    pub why: Refusal,
}

/// Something changed on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Tick {
    /// The terminal.
    pub id: PtyId,
    /// Count of output bytes so far.
    pub output: u64,
}

/// A terminal that was hosted for another broker before this one came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Hosted {
    /// The number it was given.
    pub id: PtyId,
    /// Pid of the program inside the jail.
    pub pid: i32,
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
}

edge! {
    /// Broker to ptyd.
    ToPtyd = "broker to ptyd" {
        /// First message.
        1 Hello(Hello) Control [0;],
        /// A terminal will come from the launcher.
        2 Expect(Expect) Control [0;],
        /// Write.
        3 Send(Send) Control [0;],
        /// Read.
        4 Read(Read) Control [0;],
        /// Resize.
        5 Resize(Resize) Control [0;],
        /// Forget.
        6 Close(PtyCall) Control [0;],
        /// The reader of a read is gone.
        7 CancelRead(PtyCall) Control [0;],
    }
}

edge! {
    /// Ptyd to broker.
    ToBroker = "ptyd to broker" {
        /// First message.
        1 Hello(Hello) Control [0;],
        /// Written.
        2 Sent(Sent) Control [0;],
        /// A screen.
        3 Screen(Screen) Control [0;],
        /// Resized or forgotten.
        4 Done(PtyCall) Control [0;],
        /// Refused.
        5 Refused(Refused) Control [0;],
        /// Output came; at most one per terminal and 50 ms.
        6 Tick(Tick) Event [0;],
        /// The program ended and its last output is on the screen.
        7 Exited(PtyExited) Control [0;],
        /// After hello to a later broker: what is here. From a later ptyd: what it was given again.
        8 Hosted(Hosted) Control [0;],
    }
}
