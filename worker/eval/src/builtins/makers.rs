//! Functions that make values: paths, globs, regexes, ranges, the present moment.

use shoal_value::{ErrorValue, Glob, List, Range, Regex, Value};

use crate::methods::items::check_items;
use crate::methods::path::path_like;
use crate::methods::rows::{Checked, PATH_LIKE, functions, need, optional};
use crate::registry::{Args, Function, Types};

pub(super) const FUNCTIONS: &[Function] = functions! {
    /// A text as a path. `~` is not expanded.
    ///
    /// shoal> path("a b.txt")
    /// "a b.txt"
    path: [need("text", PATH_LIKE)], Plain(Types::PATH), Pure, |args| Ok(path_like(args.value_at(0))?.into());

    /// A file pattern, relative to the present working directory. Names with a leading dot match only a part that starts
    /// with one, or with `hidden: true`; `**` follows links to directories only with `follow: true`.
    ///
    /// shoal> touch b.txt a.txt; glob("*.txt").map(.name)
    /// ["a.txt", "b.txt"]
    glob: [need("pattern", Types::STR), optional("hidden", Types::BOOL), optional("follow", Types::BOOL)],
        Plain(Types::GLOB), Nothing, |ctx, args| {
            let glob = Glob::new(args.str_at(0), ctx.cwd().path().clone(), args.is_on(1));
            Ok(glob.following(args.is_on(2)).into())
        };

    /// A regular expression. It has no look-around and no back-references, and so takes linear time.
    ///
    /// shoal> "a1".contains(regex('\d'))
    /// true
    /// shoal> regex("(")
    /// ! arg_error
    regex: [need("src", Types::STR)], Plain(Types::REGEX), Pure, |args| Ok(Regex::new(args.str_at(0))?.into());

    /// The ints from 0 up to `a`, or from `a` up to `b`; with `step`, a list of every `step`th one, downwards if negative.
    ///
    /// shoal> range(0, 5).collect()
    /// [0, 1, 2, 3, 4]
    /// shoal> range(10, 0, -3)
    /// [10, 7, 4, 1]
    range: [need("a", Types::INT), optional("b", Types::INT), optional("step", Types::INT)],
        Plain(Types::RANGE.or(Types::LIST)), Pure, |args| range(&args);

    /// The present instant in the system zone.
    ///
    /// shoal> now() > t"2020-01-01"
    /// true
    now: [], Plain(Types::DATETIME), Time, |ctx, _| Ok(ctx.now().into());

    /// The start of the present day in the system zone.
    ///
    /// shoal> today() <= now()
    /// true
    today: [], Plain(Types::DATETIME), Time, |ctx, _| Ok(ctx.now().start_of_day()?.into());
};

fn range(args: &Args) -> Result<Value, ErrorValue> {
    let a = args.int_at(0);
    match (args.int(1), args.int(2)) {
        (None, None) => Ok(Range::exclusive(0, a).into()),
        (Some(b), None) => Ok(Range::exclusive(a, b).into()),
        (None, Some(_)) => Err(ErrorValue::arg_error("range: a step needs both ends: range(a, b, step)")),
        (Some(_), Some(0)) => Err(ErrorValue::arg_error("range: the step is 0, so the range would have no end")),
        (Some(b), Some(step)) => steps(a, b, step),
    }
}

fn steps(a: i64, b: i64, step: i64) -> Result<Value, ErrorValue> {
    let (first, end, step) = (i128::from(a), i128::from(b), i128::from(step));
    let distance = if step > 0 { end - first } else { first - end };
    let width = step.abs();
    let count = if distance <= 0 { 0 } else { (distance + width - 1) / width };
    let count = check_items(usize::try_from(count).unwrap_or(usize::MAX))?;
    let ints = std::iter::successors(Some(first), |n| Some(n + step)).take(count);
    Ok(List::leaves(ints.map(|n| i64::try_from(n).unwrap_or(i64::MAX))).into())
}
