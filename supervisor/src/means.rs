//! How jails are made, handed in.

use std::io;

use shoal_jail::Failed;
use shoal_jail::plan::{Order, Plan, plan};
use shoal_jail::probe::{Host, Target, probe};
use shoal_sys::rlimit::{Limit, set_limits};

/// The ways a kernel looks at its host and makes jails. A product has the usual ones ([`Means::default`]); a test of one
/// layer hands in a kernel without it.
#[derive(Clone, Copy, Debug)]
pub struct Means {
    /// What the supervisor gives up itself, inherited by everything below: new privileges, core files, being looked at.
    pub restrict: fn() -> Result<(), Failed>,
    /// What the host offers.
    pub probe: fn(&Target<'_>) -> Host,
    /// What a session's jail will be.
    pub plan: fn(&Order<'_>, &Host) -> Plan,
    /// How its first process enters it.
    pub enter: fn(&Plan) -> Result<(), Failed>,
}

impl Default for Means {
    fn default() -> Self {
        Self { restrict, probe, plan, enter: Plan::enter }
    }
}

fn restrict() -> Result<(), Failed> {
    set_limits(Limit::Core, 0, 0).map_err(at("turn core files off"))?;
    #[cfg(target_os = "linux")]
    {
        shoal_sys::prctl::set_no_new_privs().map_err(at("give up new privileges"))?;
        shoal_sys::prctl::set_dumpable(false).map_err(at("hide from programs of the same user"))?;
    }
    Ok(())
}

fn at(step: &'static str) -> impl FnOnce(io::Error) -> Failed {
    move |error| Failed { step: step.to_owned(), error, no_such_dir: false }
}
