//! Who dies next.

use std::collections::HashMap;

use nix::sys::signal::Signal;
use shoal_harness::{Kernel, processes};

/// Workers that die under one launcher. With the one launcher that dies, a session stays below the five deaths within
/// five minutes that would quarantine it.
const WORKERS_OF_A_LAUNCHER: usize = 1;
/// Brokers that die: each waits twice as long to come back as the one before, from 100 ms on.
const BROKERS: usize = 5;

/// Chooses and kills processes of a kernel, repeatably.
pub(crate) struct Killer<'a> {
    kernel: &'a Kernel,
    random: fastrand::Rng,
    /// Workers killed under each launcher.
    deaths: HashMap<i32, usize>,
    launcher_died: bool,
    brokers: usize,
}

impl<'a> Killer<'a> {
    pub(crate) fn new(kernel: &'a Kernel, seed: u64) -> Killer<'a> {
        Killer {
            kernel,
            random: fastrand::Rng::with_seed(seed),
            deaths: HashMap::new(),
            launcher_died: false,
            brokers: 0,
        }
    }

    /// Answers to let pass before the next strike.
    pub(crate) fn patience(&mut self) -> usize {
        self.random.usize(1..12)
    }

    /// Kills a broker, a command, or a worker or launcher of a session that may still lose one.
    pub(crate) fn strike(&mut self) {
        let victim = match self.random.u8(0..8) {
            0..2 => self.worker(),
            2 => self.launcher(),
            3..6 => self.broker(),
            _ => self.one_of("sh"),
        };
        // One that ended by itself meanwhile is no failure: the next strike finds another.
        if let Some(pid) = victim {
            let sent = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL);
            assert!(matches!(sent, Ok(()) | Err(nix::errno::Errno::ESRCH)), "{sent:?}");
        }
    }

    fn one_of(&mut self, comm: &str) -> Option<i32> {
        let found: Vec<i32> =
            processes::tree(self.kernel.pid()).into_iter().filter(|p| p.comm == comm).map(|p| p.pid).collect();
        self.random.choice(found)
    }

    fn worker(&mut self) -> Option<i32> {
        let worker = self.one_of("shoal-worker")?;
        let deaths = self.deaths.entry(processes::read(worker)?.ppid).or_default();
        *deaths += 1;
        (*deaths <= WORKERS_OF_A_LAUNCHER).then_some(worker)
    }

    fn broker(&mut self) -> Option<i32> {
        let broker = self.one_of("shoal-broker").filter(|_| self.brokers < BROKERS)?;
        self.brokers += 1;
        Some(broker)
    }

    fn launcher(&mut self) -> Option<i32> {
        let launcher = self.one_of("shoal-launcher").filter(|_| !self.launcher_died)?;
        self.launcher_died = true;
        Some(launcher)
    }
}
