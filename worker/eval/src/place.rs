//! Where an evaluator stands: working directory and environment, both plain values.

use std::collections::BTreeSet;
use std::sync::Arc;

use shoal_value::Str;

use crate::host::Dir;
use crate::reef::Overlay;

/// Variables by name; cloning shares it. Values are bytes of the operating system.
pub type Env = rpds::RedBlackTreeMapSync<Str, Arc<[u8]>>;

/// Working directory, the ones before it, and environment.
#[derive(Clone)]
pub struct Place {
    /// Working directory.
    pub cwd: Arc<dyn Dir>,
    /// The one before the last `cd`.
    pub previous: Option<Arc<dyn Dir>>,
    /// Directory stack below the working directory, innermost last.
    pub stack: Vec<Arc<dyn Dir>>,
    /// Environment.
    pub env: Env,
    /// The innermost `with reef:` block around.
    pub(crate) reef: Option<Arc<Overlay>>,
}

impl Place {
    /// A place without history.
    pub fn new(cwd: Arc<dyn Dir>, env: Env) -> Self {
        Self { cwd, previous: None, stack: Vec::new(), env, reef: None }
    }

    /// Makes `dir` the working directory.
    pub fn enter(&mut self, dir: Arc<dyn Dir>) {
        self.previous = Some(std::mem::replace(&mut self.cwd, dir));
    }

    /// Value of a variable as text, if it is set and UTF-8.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).and_then(|bytes| std::str::from_utf8(bytes).ok())
    }
}

/// What a request changed of its place, for the commit.
#[derive(Clone, Debug, Default)]
pub struct PlaceChanges {
    /// Variables set or removed.
    pub env: BTreeSet<Str>,
    /// Whether it changed directory.
    pub cwd: bool,
}
