//! A stable sort that notices a cancellation while it runs.

use std::cmp::Ordering;

use crate::Ctx;
use crate::unwind::Eval;

/// Items sorted or merged between two looks at the token: well below the 50 ms in which a cancellation is noticed.
const RUN: usize = 64 * 1024;

/// Sorts by `order`, which must be a total order. Equal items keep their places.
pub(super) fn sort_by<T: Copy>(ctx: &Ctx<'_>, mut items: Vec<T>, order: impl Fn(&T, &T) -> Ordering) -> Eval<Vec<T>> {
    for run in items.chunks_mut(RUN) {
        ctx.check()?;
        run.sort_by(&order);
    }
    let mut width = RUN;
    while width < items.len() {
        let mut merged = Vec::with_capacity(items.len());
        for pair in items.chunks(width.saturating_mul(2)) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge(ctx, left, right, &order, &mut merged)?;
        }
        items = merged;
        width = width.saturating_mul(2);
    }
    Ok(items)
}

fn merge<T: Copy>(
    ctx: &Ctx<'_>,
    mut left: &[T],
    mut right: &[T],
    order: &impl Fn(&T, &T) -> Ordering,
    merged: &mut Vec<T>,
) -> Eval<()> {
    while let ([a, left_rest @ ..], [b, right_rest @ ..]) = (left, right) {
        if order(a, b).is_le() {
            merged.push(*a);
            left = left_rest;
        } else {
            merged.push(*b);
            right = right_rest;
        }
        if merged.len().is_multiple_of(RUN) {
            ctx.check()?;
        }
    }
    merged.extend_from_slice(left);
    merged.extend_from_slice(right);
    Ok(())
}
