//! A kernel with layers of its jails taken away, to show that each is there for something: the ones that
//! `SHOAL_TEST_WITHOUT` lists, by the names in `expected.toml`. The product's own program has no such switch.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use shoal_jail::plan::{Order, Plan};
use shoal_jail::probe::{Host, Target};
use shoal_jail::{Failed, Step};
use shoal_kernel::Means;

fn main() -> ExitCode {
    let mut means = Means { plan, ..Means::default() };
    if without("hidden-memory") {
        means.restrict = || Ok(());
    }
    if without("namespaces") {
        means.probe = probe;
    }
    if without("capabilities") {
        means.enter = enter;
    }
    shoal_kernel::run(means)
}

fn without(layer: &str) -> bool {
    std::env::var("SHOAL_TEST_WITHOUT").is_ok_and(|layers| layers.split(',').any(|one| one == layer))
}

/// As on a host that has no user namespaces for ordinary users.
fn probe(target: &Target<'_>) -> Host {
    let host = shoal_jail::probe::probe(target);
    Host { namespaces: false, missing: "taken away by a test".to_owned(), ..host }
}

fn enter(plan: &Plan) -> Result<(), Failed> {
    plan.furnish()?;
    let kept = shoal_sys::attack::keep_capabilities();
    kept.map_err(|error| Failed { step: "keep capabilities".to_owned(), error, no_such_dir: false })
}

fn plan(order: &Order<'_>, host: &Host) -> Plan {
    let mut plan = shoal_jail::plan::plan(order, host);
    let steps = std::mem::take(&mut plan.steps);
    let follows: Vec<Option<Step>> = steps.iter().skip(1).cloned().map(Some).chain([None]).collect();
    plan.steps =
        steps.into_iter().zip(follows).filter(|(step, next)| !goes(step, next.as_ref())).map(|p| p.0).collect();
    plan.namespaces.pid &= !without("processes");
    plan.namespaces.ipc &= !without("private-places");
    plan.namespaces.network &= !without("network");
    if without("domain") {
        plan.domain.files = None;
    }
    if without("filter") {
        plan.domain.filter = false;
    }
    if without("limits") {
        plan.limits.clear();
    }
    plan
}

/// Whether a step of the view belongs to a layer that is away.
fn goes(step: &Step, next: Option<&Step>) -> bool {
    let is_obeyed = |path: &Path| !["/sys", "/proc", "/dev"].iter().any(|dir| path.starts_with(dir));
    match step {
        Step::Hide(_) | Step::Cover(_) => without("holes"),
        Step::Pin(path) => match next {
            Some(Step::ReadOnly(same, _)) if same == path => without("read-only") && is_obeyed(path),
            _ => without("pins") || (without("processes") && path.starts_with("/proc")),
        },
        Step::ReadOnly(path, _) if path.starts_with("/proc") => without("processes"),
        Step::ReadOnly(path, _) => without("read-only") && is_obeyed(path),
        Step::Memory(..) | Step::Queues(_) => without("private-places"),
        Step::Terminals(_) => without("terminals"),
        Step::Bind(_, to) if to == Path::new("/dev/ptmx") => without("terminals"),
        Step::Proc(_) => without("processes"),
        Step::Setting(..) => without("no-more-namespaces"),
        Step::Loopback => without("network"),
        _ => false,
    }
}
