//! Operations that often follow each other become one, and functions that only compute are known as leaves.

use shoal_value::ops::BinaryOp;

use crate::code::{Op, Place};

/// Fuses neighbours and drops what became empty; jumps follow.
pub(super) fn fuse(ops: Vec<Op>, places: &[Place], params: usize) -> (Vec<Op>, Vec<Place>, bool) {
    let (mut ops, mut places) = compact(&ops, places);
    shorten(&mut ops, &mut places);
    let mut is_target = vec![false; ops.len() + 1];
    ops.iter().filter_map(Op::target).for_each(|target| is_target[target as usize] = true);
    for at in 0..ops.len() {
        let inner = (at + 1..ops.len()).take_while(|next| !is_target[*next]).take(3).count();
        let window = &ops[at..=at + inner];
        if let Some((fused, length)) = fused(window) {
            ops[at..at + length - 1].fill(Op::Nop);
            // An error is at the place of the last one.
            ops[at + length - 1] = fused;
        }
    }
    let is_leaf = ops.iter().all(|op| computes(op, params));
    let (ops, places) = compact(&ops, &places);
    (ops, places, is_leaf)
}

/// Jumps to a return return, at its place, and a null that would only be dropped is not made.
fn shorten(ops: &mut [Op], places: &mut [Place]) {
    for at in 0..ops.len() {
        match ops[at..] {
            [Op::Jump(to), ..] if matches!(ops.get(to as usize), Some(Op::Return)) => {
                ops[at] = Op::Return;
                places[at] = places[to as usize];
            }
            [Op::Null, Op::Check, Op::Pop, ..] => ops[at] = Op::Jump(at as u32 + 3),
            _ => {}
        }
    }
}

/// The operation that does the work of the first ones of a window, and how many they are.
fn fused(window: &[Op]) -> Option<(Op, usize)> {
    Some(match *window {
        [Op::Local(a), Op::Local(b), Op::Binary(op), Op::JumpUnless(target), ..] if compares(op) => {
            (Op::UnlessLocals(op, short(a)?, short(b)?, target), 4)
        }
        [Op::Local(a), Op::BinaryInt(op, n), Op::JumpUnless(target), ..] if compares(op) => {
            (Op::UnlessLocalInt(op, short(a)?, n, target), 3)
        }
        [Op::BinaryInt(op, n), Op::JumpUnless(target), ..] if compares(op) => (Op::UnlessInt(op, n, target), 2),
        [Op::Local(a), Op::Local(b), Op::Binary(op), ..] => (Op::BinaryLocals(op, short(a)?, short(b)?), 3),
        [Op::Local(a), Op::BinaryInt(op, n), ..] => (Op::BinaryLocalInt(op, short(a)?, n), 2),
        [Op::Check, Op::Pop, ..] => (Op::Settle, 2),
        [Op::Local(b), Op::UpdateLocal(a, op), ..] => (Op::UpdateLocals(op, short(a)?, short(b)?), 2),
        [Op::Int(n), Op::UpdateLocal(a, op), ..] => (Op::UpdateLocalInt(op, short(a)?, n), 2),
        [Op::Local(a), Op::Field(name), ..] => (Op::LocalField(a, name), 2),
        _ => return None,
    })
}

fn short(local: u32) -> Option<u16> {
    local.try_into().ok()
}

fn compares(op: BinaryOp) -> bool {
    use BinaryOp::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
    matches!(op, Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual)
}

/// Whether an operation needs no frame and changes nothing but the operands and the variables that are no parameters.
fn computes(op: &Op, params: usize) -> bool {
    match op {
        Op::SetLocal(at) | Op::UpdateLocal(at, _) => *at as usize >= params,
        Op::UpdateLocals(_, at, _) | Op::UpdateLocalInt(_, at, _) => usize::from(*at) >= params,
        Op::Nop
        | Op::Const(_)
        | Op::Int(_)
        | Op::Null
        | Op::Bool(_)
        | Op::Pop
        | Op::Check
        | Op::Settle
        | Op::Dup
        | Op::Local(_)
        | Op::Captured(_)
        | Op::Root(_)
        | Op::Binary(_)
        | Op::BinaryInt(..)
        | Op::BinaryLocals(..)
        | Op::BinaryLocalInt(..)
        | Op::UnlessLocals(..)
        | Op::UnlessLocalInt(..)
        | Op::UnlessInt(..)
        | Op::LocalField(..)
        | Op::Not
        | Op::Negate
        | Op::Jump(_)
        | Op::JumpUnless(_)
        | Op::And(_, false)
        | Op::Or(_, false)
        | Op::Coalesce(_)
        | Op::IfNull(_)
        | Op::List(_)
        | Op::Record(_)
        | Op::Interp(_)
        | Op::Field(_)
        | Op::Index
        | Op::Method(_)
        | Op::Step
        | Op::Return => true,
        _ => false,
    }
}

fn compact(ops: &[Op], places: &[Place]) -> (Vec<Op>, Vec<Place>) {
    let mut moved = Vec::with_capacity(ops.len() + 1);
    let mut kept = 0;
    for op in ops {
        moved.push(kept);
        kept += u32::from(!matches!(op, Op::Nop));
    }
    moved.push(kept);
    let live = ops.iter().zip(places).filter(|(op, _)| !matches!(op, Op::Nop));
    let retarget = |op: &Op| op.target().map_or(*op, |target| op.with_target(moved[target as usize]));
    live.map(|(op, place)| (retarget(op), *place)).unzip()
}
