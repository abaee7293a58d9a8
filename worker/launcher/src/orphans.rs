//! Descendants that lost their parent and became children of the launcher.
//!
//! They are known by name so that the end of a command costs one small read: only when the launcher has a child that is
//! no program, no role and no known orphan can that command have left something new.

use std::collections::HashMap;

use crate::commands::Commands;
use crate::lineage::{Serial, Tree, read_below, unknown_children};

/// The known ones, and whether records may have become empty.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    known: HashMap<i32, Option<Serial>>,
    stale: bool,
}

impl Orphans {
    /// An orphan was reaped: what it belonged to may be gone now.
    pub(crate) fn reaped(&mut self, pid: i32) {
        self.known.remove(&pid);
        self.stale = true;
    }

    /// Whether [`Orphans::look`] should drop empty records.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale
    }

    /// Whether the end of this program needs a look at the process table.
    pub(crate) fn may_have_left(&self, serial: Serial, commands: &Commands, roles: &[i32]) -> bool {
        if self.known.values().any(|owner| *owner == Some(serial)) {
            return true;
        }
        let known =
            |pid: i32| commands.leaders().contains_key(&pid) || roles.contains(&pid) || self.known.contains_key(&pid);
        unknown_children(known).unwrap_or(true)
    }

    /// Reads the process table, learns the orphans in it and drops the records of programs that left nothing.
    pub(crate) fn look(&mut self, commands: &mut Commands, roles: &[i32]) -> Tree {
        let tree = read_below(shoal_sys::process::pid());
        let owners = tree.owners(commands.leaders());
        let owner = |pid: i32| owners.iter().find(|(_, pids)| pids.contains(&pid)).map(|(serial, _)| *serial);
        let orphans = tree.children().filter(|pid| !commands.leaders().contains_key(pid) && !roles.contains(pid));
        self.known = orphans.map(|pid| (pid, owner(pid))).collect();
        self.stale = false;
        for serial in commands.left_behind() {
            if !owners.contains_key(&serial) {
                commands.forget(serial);
            }
        }
        tree
    }
}
