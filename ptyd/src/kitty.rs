//! The keyboard protocol of kitty: which enhancements a program switched on, per screen.
//!
//! A program pushes flags when it starts and pops them when it ends; both screens have a stack of their own, so a
//! full-screen program that dies on the alternate screen does not confuse the shell on the main one.

/// Escape codes for keys that are ambiguous otherwise.
pub(crate) const DISAMBIGUATE: u8 = 1;
/// Every key as an escape code, Enter, Tab and Backspace too.
pub(crate) const ALL_KEYS: u8 = 8;
/// The flags that have any effect here; others are not reported back as set.
const SUPPORTED: u8 = DISAMBIGUATE | ALL_KEYS;
/// Entries of a stack; a push beyond it drops the oldest, as the protocol asks.
const MAX_STACK: usize = 16;

/// Flags of both screens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kitty {
    main: Vec<u8>,
    alternate: Vec<u8>,
}

impl Kitty {
    /// Flags in force on a screen.
    pub(crate) fn flags(&self, alternate: bool) -> u8 {
        let stack = if alternate { &self.alternate } else { &self.main };
        stack.last().copied().unwrap_or(0)
    }

    /// `CSI > FLAGS u`.
    pub(crate) fn push(&mut self, alternate: bool, flags: u16) {
        let stack = self.stack(alternate);
        if stack.len() == MAX_STACK {
            stack.remove(0);
        }
        stack.push(known(flags));
    }

    /// `CSI < COUNT u`.
    pub(crate) fn pop(&mut self, alternate: bool, count: u16) {
        let stack = self.stack(alternate);
        let rest = stack.len().saturating_sub(usize::from(count.max(1)));
        stack.truncate(rest);
    }

    /// `CSI = FLAGS ; MODE u`: 1 replaces, 2 adds, 3 takes away.
    pub(crate) fn set(&mut self, alternate: bool, flags: u16, mode: u16) {
        let old = self.flags(alternate);
        let flags = match mode {
            2 => old | known(flags),
            3 => old & !known(flags),
            _ => known(flags),
        };
        let stack = self.stack(alternate);
        match stack.last_mut() {
            Some(top) => *top = flags,
            None => stack.push(flags),
        }
    }

    fn stack(&mut self, alternate: bool) -> &mut Vec<u8> {
        if alternate { &mut self.alternate } else { &mut self.main }
    }
}

fn known(flags: u16) -> u8 {
    u8::try_from(flags & u16::from(SUPPORTED)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screens_have_their_own_stacks() {
        let mut kitty = Kitty::default();
        kitty.push(false, 1);
        kitty.push(true, 31);
        assert_eq!((kitty.flags(false), kitty.flags(true)), (DISAMBIGUATE, DISAMBIGUATE | ALL_KEYS));
        kitty.pop(true, 1);
        assert_eq!((kitty.flags(false), kitty.flags(true)), (DISAMBIGUATE, 0));
        kitty.set(false, 8, 2);
        assert_eq!(kitty.flags(false), 9);
        kitty.set(false, 1, 3);
        assert_eq!(kitty.flags(false), 8);
        kitty.pop(false, 99);
        assert_eq!(kitty.flags(false), 0);
    }

    #[test]
    fn a_stack_is_bounded() {
        let mut kitty = Kitty::default();
        (0..100).for_each(|_| kitty.push(false, 1));
        assert_eq!(kitty.main.len(), MAX_STACK);
    }
}
