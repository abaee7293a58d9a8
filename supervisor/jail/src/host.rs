//! What a host offers and holds, the same on every system.

use std::path::Path;

use crate::order::Protected;

/// What holds on this host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// A jail with namespaces can be made.
    pub namespaces: bool,
    /// Landlock ABI, 0 when absent.
    pub landlock_abi: u32,
    /// Filters can be installed.
    pub seccomp: bool,
    /// Claims that hold, bit `n - 1` for `Cn`.
    pub claims: u16,
    /// Why there is no full jail and what to do, empty when there is one.
    pub missing: String,
}

impl Host {
    /// `L3` with namespaces, Landlock and seccomp; `L2` without namespaces; `L1` with seccomp alone; `L0` with nothing.
    pub fn level(&self) -> &'static str {
        /// Scopes keep signals inside; without a pid namespace nothing else does.
        const SCOPES: u32 = 6;
        match (self.seccomp, self.namespaces, self.landlock_abi) {
            (true, true, 1..) => "L3",
            (true, false, SCOPES..) => "L2",
            (true, _, _) => "L1",
            (false, _, _) => "L0",
        }
    }
}

/// What the canary attacks.
#[derive(Clone, Debug)]
pub struct Target<'a> {
    /// The kernel's own places.
    pub kernel: &'a Protected,
    /// The state directory.
    pub state: &'a Path,
    /// The public socket, listening.
    pub socket: &'a Path,
}
