//! Stand-ins for live handles that are read back from their wire form: they show what they were and do nothing.

use crate::{Alias, Callable, Str, StreamSource, TaskHandle};

/// A closure or alias of which only the text is left.
pub(super) struct GoneCallable(pub(super) String);

impl Callable for GoneCallable {
    fn repr(&self) -> String {
        self.0.clone()
    }
}

/// An alias of which only the text is left.
pub(super) struct GoneAlias(pub(super) Str);

impl Alias for GoneAlias {
    fn head(&self) -> Str {
        self.0.clone()
    }
}

/// A stream of which only the label is left.
pub(super) struct GoneStream(pub(super) Str);

impl StreamSource for GoneStream {
    fn label(&self) -> Str {
        self.0.clone()
    }
}

/// A task of which only the number is left.
pub(super) struct GoneTask {
    pub(super) id: u64,
    pub(super) done: bool,
}

impl TaskHandle for GoneTask {
    fn id(&self) -> u64 {
        self.id
    }

    fn is_done(&self) -> bool {
        self.done
    }
}
