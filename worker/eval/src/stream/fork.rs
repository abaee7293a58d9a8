//! Forks of a live stream: one source, and a bounded queue for each fork.

use std::collections::VecDeque;

use shoal_value::{Record, Str, Value};

use super::{Source, Taken};
use crate::machine::Machine;
use crate::unwind::Eval;
use crate::wait::Watched;

/// Items that wait for a fork; on overflow the oldest go, and the fork is told how many.
const QUEUE: usize = 64;

/// What the forks share.
struct Shared {
    /// The source, unless a fork is pulling it just now.
    source: Option<Taken>,
    queues: Vec<Queue>,
    ended: bool,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Value>,
    dropped: i64,
}

/// One of the forks.
pub(crate) struct Fork {
    shared: Watched<Shared>,
    index: usize,
}

/// What a fork is to do for its next item.
enum Turn {
    Have(Value),
    Missed(i64),
    Pull(Taken),
    End,
}

/// `n` forks of a source.
pub(crate) fn forks(source: Taken, n: usize) -> impl Iterator<Item = Fork> {
    let queues = (0..n).map(|_| Queue::default()).collect();
    let shared = Watched::new(Shared { source: Some(source), queues, ended: false });
    (0..n).map(move |index| Fork { shared: shared.clone(), index })
}

impl Shared {
    fn turn(&mut self, index: usize) -> Option<Turn> {
        let queue = &mut self.queues[index];
        if queue.dropped > 0 {
            return Some(Turn::Missed(std::mem::take(&mut queue.dropped)));
        }
        if let Some(item) = queue.items.pop_front() {
            return Some(Turn::Have(item));
        }
        if self.ended {
            return Some(Turn::End);
        }
        self.source.take().map(Turn::Pull)
    }

    /// Hands an item to all forks but the one that pulled it.
    fn share(&mut self, item: &Value, puller: usize) {
        for (_, queue) in self.queues.iter_mut().enumerate().filter(|(index, _)| *index != puller) {
            queue.items.push_back(item.clone());
            if queue.items.len() > QUEUE {
                queue.items.pop_front();
                queue.dropped += 1;
            }
        }
    }
}

impl Source for Fork {
    fn next(&mut self, machine: &mut Machine) -> Eval<Option<Value>> {
        let clock = machine.session.host.clock();
        let turn = self.shared.wait(clock, &machine.run.cancel, None, |shared| shared.turn(self.index))?;
        match turn {
            Some(Turn::Have(item)) => Ok(Some(item)),
            Some(Turn::Missed(n)) => Ok(Some(Value::Record(Record::new([(Str::from("dropped"), Value::Int(n))])?))),
            Some(Turn::Pull(mut source)) => {
                let pulled = source.next(machine);
                self.shared.change(|shared| match &pulled {
                    Ok(Some(item)) => {
                        shared.share(item, self.index);
                        shared.source = Some(source);
                    }
                    Ok(None) | Err(_) => shared.ended = true,
                });
                pulled
            }
            Some(Turn::End) | None => Ok(None),
        }
    }
}
