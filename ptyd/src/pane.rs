//! One emulated screen, guarded: a panic of the emulator costs this screen its content and nothing else.

use std::num::NonZeroU16;
use std::panic::{AssertUnwindSafe, catch_unwind};

use vt100::Parser;

use crate::keys::Modes;
use crate::queries::Responder;
use crate::scan::{Kind, Scanner};
use crate::skip;
use crate::snapshot::{self, Snapshot};

/// Lines kept above the screen. At the widest screen that is 2,000,000 cells.
pub(crate) const SCROLLBACK: usize = 2000;
/// Largest side of a screen.
pub(crate) const MAX_SIDE: u16 = 1000;
/// Output that waits to be parsed; while there is more, the terminal is not read and its program waits. Much of it at
/// once is what makes the fast path fast.
const MAX_PENDING: usize = 1024 * 1024;
/// Room that is kept for the next output when all is parsed.
const KEPT_ROOM: usize = 16 * 1024;
/// Cells touched between two looks at the clock if every byte were a line feed: about 4 ms.
const CELLS_PER_PIECE: usize = 1_300_000;

/// Columns and rows, 1..=[`MAX_SIDE`] each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) cols: NonZeroU16,
    pub(crate) rows: NonZeroU16,
}

impl Size {
    /// The nearest size that is allowed.
    pub(crate) fn clamped(cols: u16, rows: u16) -> Self {
        let side = |n: u16| NonZeroU16::new(n.min(MAX_SIDE)).unwrap_or(NonZeroU16::MIN);
        Self { cols: side(cols), rows: side(rows) }
    }
}

/// A screen and the output it has not taken yet.
pub(crate) struct Pane {
    emulator: Parser<Responder>,
    scanner: Scanner,
    size: Size,
    /// Whether the scroll region is the whole screen: main, alternate.
    unbounded: (bool, bool),
    pending: Vec<u8>,
    /// `pending` is text alone: it asks nothing and changes no mode, so it can wait until somebody looks.
    text_alone: bool,
    /// The screen is blank because it had to be made anew; said once.
    rebuilt: bool,
    /// The program has to be told to repaint.
    wants_repaint: bool,
    /// Always on, but for one side of the oracle test.
    fast: bool,
}

impl Pane {
    pub(crate) fn new(size: Size) -> Self {
        Self {
            emulator: emulator(size),
            scanner: Scanner::default(),
            size,
            unbounded: (true, true),
            pending: Vec::new(),
            text_alone: true,
            rebuilt: false,
            wants_repaint: false,
            fast: true,
        }
    }

    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// Takes output; [`Pane::parse`] shows it.
    pub(crate) fn push(&mut self, output: &[u8]) {
        self.text_alone = self.text_alone && self.scanner.is_text(output);
        self.pending.extend_from_slice(output);
    }

    /// Whether more output should be read.
    pub(crate) fn has_room(&self) -> bool {
        self.pending.len() < MAX_PENDING
    }

    /// Whether pending output has to be parsed although nobody looks.
    pub(crate) fn must_parse(&self) -> bool {
        !self.has_room() || (!self.text_alone && !self.is_idle())
    }

    /// Whether all output is on the screen.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// Feeds pending output to the emulator, step by step until there is none or `over` says so.
    pub(crate) fn parse(&mut self, over: &mut dyn FnMut() -> bool) {
        let mut pending = std::mem::take(&mut self.pending);
        let mut at = 0_usize;
        while let Some(rest) = pending.get(at..).filter(|rest| !rest.is_empty()) {
            at = at.saturating_add(self.step(rest));
            if over() {
                break;
            }
        }
        pending.drain(..at.min(pending.len()));
        if pending.is_empty() {
            pending.shrink_to(KEPT_ROOM);
            self.text_alone = true;
        }
        self.pending = pending;
    }

    /// Feeds the beginning of `rest`; how many bytes are done with.
    fn step(&mut self, rest: &[u8]) -> usize {
        let step = self.scanner.step(rest);
        let bytes = rest.get(..step.len).unwrap_or(rest);
        match step.kind {
            Kind::Text => return self.text(bytes),
            Kind::Sequence => self.feed(bytes),
            Kind::Margins(whole) => {
                self.feed(bytes);
                self.set_unbounded(whole);
            }
            Kind::Reset => {
                self.feed(bytes);
                self.unbounded = (true, true);
                self.emulator.callbacks_mut().reset();
            }
        }
        step.len
    }

    fn text(&mut self, text: &[u8]) -> usize {
        let kept = skip::lines_kept(self.size.rows.get(), SCROLLBACK);
        let decisive = if self.fast && self.is_unbounded() { skip::decisive(text, kept) } else { None };
        let rest = decisive.unwrap_or(text);
        let skipped = text.len().saturating_sub(rest.len());
        let most = CELLS_PER_PIECE.checked_div(usize::from(self.size.cols.get())).unwrap_or(CELLS_PER_PIECE);
        let piece = rest.get(..most).unwrap_or(rest);
        self.feed(piece);
        skipped.saturating_add(piece.len())
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.guard(|emulator| emulator.process(bytes));
    }

    fn is_unbounded(&self) -> bool {
        if self.emulator.screen().alternate_screen() { self.unbounded.1 } else { self.unbounded.0 }
    }

    fn set_unbounded(&mut self, whole: bool) {
        if self.emulator.screen().alternate_screen() {
            self.unbounded.1 = whole;
        } else {
            self.unbounded.0 = whole;
        }
    }

    /// Runs the emulator; after a panic its state is not to be trusted, so there is a new one.
    fn guard<T>(&mut self, run: impl FnOnce(&mut Parser<Responder>) -> T) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(|| run(&mut self.emulator))) {
            Ok(value) => Some(value),
            Err(_panic) => {
                self.rebuild();
                None
            }
        }
    }

    /// Starts again with a blank screen.
    pub(crate) fn rebuild(&mut self) {
        self.emulator = emulator(self.size);
        self.scanner = Scanner::default();
        self.unbounded = (true, true);
        self.rebuilt = true;
        self.wants_repaint = true;
    }

    /// Whether the program has to be told to repaint; said once.
    pub(crate) fn take_wants_repaint(&mut self) -> bool {
        std::mem::take(&mut self.wants_repaint)
    }

    /// Whether the screen was made anew since the last call.
    pub(crate) fn take_rebuilt(&mut self) -> bool {
        std::mem::take(&mut self.rebuilt)
    }

    /// Answers to the program's queries since the last call.
    pub(crate) fn take_answers(&mut self) -> Vec<u8> {
        self.emulator.callbacks_mut().take_answers()
    }

    /// The modes that decide how keys are encoded.
    pub(crate) fn modes(&self) -> Modes {
        let screen = self.emulator.screen();
        Modes {
            application_cursor: screen.application_cursor(),
            bracketed_paste: screen.bracketed_paste(),
            disambiguate: self.emulator.callbacks().disambiguates(screen.alternate_screen()),
        }
    }

    /// Takes a new size. What was printed before should have been parsed.
    pub(crate) fn resize(&mut self, size: Size) {
        self.size = size;
        self.unbounded = (true, true);
        self.guard(|emulator| emulator.set_size(size.rows, size.cols));
    }

    pub(crate) fn snapshot(&mut self) -> Snapshot {
        let blank = Snapshot::blank(self.size.rows.get());
        self.guard(|emulator| Snapshot::of(emulator.screen())).unwrap_or(blank)
    }

    /// The screen with its colours, as escape sequences for a terminal of the same size.
    pub(crate) fn formatted(&mut self) -> Vec<u8> {
        self.guard(|emulator| snapshot::formatted(emulator.screen())).unwrap_or_default()
    }

    /// Lines above the screen; an alternate screen has none.
    pub(crate) fn scrollback_len(&self) -> usize {
        self.emulator.screen().scrollback_len()
    }

    /// Lines `start..end` above the screen, counted from the oldest that is kept.
    pub(crate) fn scrollback(&mut self, start: usize, end: usize) -> Vec<String> {
        self.guard(|emulator| snapshot::scrollback(emulator.screen_mut(), start, end)).unwrap_or_default()
    }
}

fn emulator(size: Size) -> Parser<Responder> {
    Parser::new_with_callbacks(size.rows, size.cols, SCROLLBACK, Responder::default())
}

#[cfg(test)]
mod tests;
