//! The stack of running functions. As with [`super::operands`], a frame is written where it is to be.

use std::ops::{Deref, DerefMut};

use super::frame::{Frame, Function};

/// Frames; as a slice, those that run.
#[derive(Default)]
pub(crate) struct Frames {
    /// Those from `height` on hold nothing that has to be dropped.
    slots: Vec<Frame>,
    height: usize,
}

impl Frames {
    /// Pushes a frame for the caller to write: it holds what an earlier one left, and nothing that has to be dropped.
    #[inline(always)]
    pub(super) fn push(&mut self) -> &mut Frame {
        if self.height == self.slots.len() {
            self.grow();
        }
        self.height += 1;
        &mut self.slots[self.height - 1]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.slots.resize_with((2 * self.height).max(16), Frame::default);
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.height
    }

    #[inline(always)]
    pub(crate) fn last(&self) -> Option<&Frame> {
        self.slots.get(self.height.checked_sub(1)?)
    }

    #[inline(always)]
    pub(crate) fn last_mut(&mut self) -> Option<&mut Frame> {
        self.slots.get_mut(self.height.checked_sub(1)?)
    }

    /// Drops the frame on top.
    #[inline(always)]
    pub(super) fn pop(&mut self) {
        let Some(top) = self.height.checked_sub(1) else { return };
        self.height = top;
        let frame = &mut self.slots[top];
        if let Function::Own(_) = frame.function {
            frame.function = Function::default();
        }
        if frame.more.is_some() {
            frame.more = None;
        }
    }
}

impl Deref for Frames {
    type Target = [Frame];

    #[inline(always)]
    fn deref(&self) -> &[Frame] {
        &self.slots[..self.height]
    }
}

impl DerefMut for Frames {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [Frame] {
        &mut self.slots[..self.height]
    }
}
