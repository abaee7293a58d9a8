//! Sources and combinators of time. Items are pulled, so the time of an item is the time its pull ended.

use std::collections::VecDeque;

use shoal_value::{DateTime, Value};

use super::{Source, Taken};
use crate::machine::Machine;
use crate::unwind::{Eval, Stop, Unwind};

/// A datetime every interval; ticks that nobody was there for are skipped.
pub(crate) struct Every {
    pub(crate) interval: u64,
    pub(crate) due: Option<u64>,
}

impl Source for Every {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        let host = machine.session.host.clone();
        let clock = host.clock();
        let now = clock.monotonic_ns();
        let due = match self.due {
            None => now + self.interval,
            Some(last) => last + self.interval * ((now.saturating_sub(last)) / self.interval).max(1),
        };
        if due > now && clock.sleep(due - now, &machine.run.cancel).is_err() {
            let reason = machine.run.cancel.reason();
            return Err(reason.map_or(Unwind::Stop(Stop::Exit(0)), |reason| Stop::Cancelled(reason).into()));
        }
        self.due = Some(due);
        Ok(Some(Value::DateTime(DateTime::from(clock.now().to_zoned_datetime(clock.zone())))))
    }
}

/// Items of the last interval, one list per item.
pub(crate) struct TimeWindow {
    pub(crate) source: Taken,
    pub(crate) interval: u64,
    pub(crate) items: VecDeque<(u64, Value)>,
}

impl Source for TimeWindow {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        let Some(item) = self.source.next(machine)? else { return Ok(None) };
        let now = machine.session.host.clock().monotonic_ns();
        self.items.push_back((now, item));
        while self.items.front().is_some_and(|(at, _)| now - at > self.interval) {
            self.items.pop_front();
        }
        Ok(Some(Value::list(self.items.iter().map(|(_, item)| item.clone()).collect())?))
    }
}

/// The last item before a quiet interval; at the end the pending one.
pub(crate) struct Debounce {
    pub(crate) source: Taken,
    pub(crate) interval: u64,
    pub(crate) pending: Option<(u64, Value)>,
}

impl Source for Debounce {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        while let Some(item) = self.source.next(machine)? {
            let now = machine.session.host.clock().monotonic_ns();
            if let Some((at, last)) = self.pending.replace((now, item))
                && now - at > self.interval
            {
                return Ok(Some(last));
            }
        }
        Ok(self.pending.take().map(|(_, item)| item))
    }
}

/// At most one item per interval; the first wins.
pub(crate) struct Throttle {
    pub(crate) source: Taken,
    pub(crate) interval: u64,
    pub(crate) last: Option<u64>,
}

impl Source for Throttle {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        while let Some(item) = self.source.next(machine)? {
            let now = machine.session.host.clock().monotonic_ns();
            if self.last.is_none_or(|last| now - last >= self.interval) {
                self.last = Some(now);
                return Ok(Some(item));
            }
        }
        Ok(None)
    }
}
