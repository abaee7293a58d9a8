//! Stands in for a session's worker and is hostile: it puts on the worker's own confinement, behaves until it is asked to
//! run something, and then does what the source names: every attack (a source of JSON is the targets) or one violation
//! of the protocol (`violate NAME`).
#![forbid(unsafe_code)]

use std::io;

use shoal_hostile::violations::{self, Worker};
use shoal_hostile::{Targets, run_all};
use shoal_proto::broker_worker::ToWorker;

fn main() -> io::Result<()> {
    shoal_sys::prctl::set_name("shoal-worker")?;
    shoal_sys::signal::ignore_pipe();
    let (launcher, broker) = (shoal_sys::fd::inherited(3)?, shoal_sys::fd::inherited(4)?);
    shoal_jail::confine::worker().map_err(|failed| io::Error::other(failed.to_string()))?;
    std::panic::set_hook(Box::new(|_| {}));
    let mut worker = Worker::greet(launcher, broker)?;
    let mut sources = std::collections::BTreeMap::new();
    // Its end is the broker's, or a refusal to go on; both end the process.
    while let Ok(message) = worker.recv() {
        match message {
            ToWorker::Prepare(prepare) => {
                let source = prepare.src.to_string();
                violations::on_prepare(&mut worker, &source, prepare.run)?;
                sources.insert(prepare.run, source);
            }
            ToWorker::Run(run) => {
                let source = sources.remove(&run.run).unwrap_or_default();
                match Targets::from_text(&source) {
                    Ok(targets) => worker.finish(run.run, &run_all(&targets))?,
                    Err(_) => violations::on_run(&mut worker, &source, run.run)?,
                }
            }
            ToWorker::Call(call) => violations::on_call(&mut worker, call.call)?,
            _ => {}
        }
    }
    Ok(())
}
