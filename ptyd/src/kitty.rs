//! The keyboard mode of the kitty protocol, as far as it is offered: flag 1, "disambiguate escape codes".
//!
//! Main and alternate screen have a stack each. Flags beyond 1 are asked for by programs and not taken, so the query
//! says truthfully what is on.

/// "Disambiguate escape codes", the one flag that is kept.
const DISAMBIGUATE: u16 = 1;
/// Programs push one each; older entries fall out.
const MAX_STACK: usize = 16;

/// Flags in force and those saved, per screen.
#[derive(Debug, Default)]
pub(crate) struct Kitty {
    main: Stack,
    alternate: Stack,
}

#[derive(Debug, Default)]
struct Stack {
    flags: u16,
    saved: Vec<u16>,
}

impl Kitty {
    /// The flags in force.
    pub(crate) fn flags(&self, alternate: bool) -> u16 {
        if alternate { self.alternate.flags } else { self.main.flags }
    }

    pub(crate) fn disambiguates(&self, alternate: bool) -> bool {
        self.flags(alternate) & DISAMBIGUATE != 0
    }

    /// `CSI > flags u` pushes, `CSI < count u` pops, `CSI = flags ; how u` sets (1), adds (2) or removes (3).
    pub(crate) fn change(&mut self, alternate: bool, marker: u8, first: Option<u16>, second: Option<u16>) {
        let stack = if alternate { &mut self.alternate } else { &mut self.main };
        let flags = first.unwrap_or_default() & DISAMBIGUATE;
        match (marker, second.unwrap_or(1)) {
            (b'>', _) => stack.push(flags),
            (b'<', _) => stack.pop(first.unwrap_or(1).max(1)),
            (b'=', 1) => stack.flags = flags,
            (b'=', 2) => stack.flags |= flags,
            (b'=', 3) => stack.flags &= !flags,
            _ => {}
        }
    }
}

impl Stack {
    fn push(&mut self, flags: u16) {
        if self.saved.len() == MAX_STACK {
            self.saved.remove(0);
        }
        self.saved.push(self.flags);
        self.flags = flags;
    }

    /// More pops than pushes leave the mode off.
    fn pop(&mut self, count: u16) {
        for _ in 0..count {
            match self.saved.pop() {
                Some(flags) => self.flags = flags,
                None => {
                    self.flags = 0;
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screens_have_their_own_stacks() {
        let mut kitty = Kitty::default();
        kitty.change(false, b'>', Some(31), None);
        assert_eq!((kitty.flags(false), kitty.flags(true)), (1, 0));
        kitty.change(true, b'=', Some(1), Some(2));
        kitty.change(false, b'<', None, None);
        assert!(!kitty.disambiguates(false) && kitty.disambiguates(true));
        kitty.change(true, b'=', Some(1), Some(3));
        assert!(!kitty.disambiguates(true));
    }

    #[test]
    fn a_stack_is_bounded_and_popped_to_nothing() {
        let mut kitty = Kitty::default();
        for _ in 0..100 {
            kitty.change(false, b'>', Some(1), None);
        }
        assert_eq!(kitty.main.saved.len(), MAX_STACK);
        kitty.change(false, b'<', Some(u16::MAX), None);
        assert_eq!(kitty.flags(false), 0);
    }
}
