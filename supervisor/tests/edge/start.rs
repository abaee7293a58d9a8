//! Starting and stopping.

use shoal_proto::supervisor_broker::{ToBroker, ToSupervisor};

use crate::Test;
use crate::fake::EXIT;
use crate::rig::{Rig, eventually, exists, hello, ping, variant};

pub(crate) const TESTS: &[Test] = &[
    ("start_hands_over_everything_once", start_hands_over_everything_once),
    ("readiness_is_said_after_the_trial", readiness_is_said_after_the_trial),
    ("a_failed_trial_still_serves", a_failed_trial_still_serves),
    ("a_bad_policy_is_fatal_at_start", a_bad_policy_is_fatal_at_start),
    ("one_kernel_per_state_directory", one_kernel_per_state_directory),
    ("what_is_in_the_way_is_named", what_is_in_the_way_is_named),
    ("a_policy_is_loaded_again", a_policy_is_loaded_again),
    ("a_drain_ends_in_order", a_drain_ends_in_order),
    ("a_killed_supervisor_takes_its_roles_with_it", a_killed_supervisor_takes_its_roles_with_it),
];

fn start_hands_over_everything_once() {
    let mut rig = Rig::new();
    let mut broker = rig.start();
    let (start, fds) = broker.expect(variant!(ToBroker::Start));
    assert_eq!(fds.len(), 2);
    assert_eq!(start.socket.as_str(), rig.socket().to_str().unwrap());
    assert_eq!(start.state_dir.as_str(), rig.dir.join("state").to_str().unwrap());
    assert_eq!((start.restarts, start.adopt), (0, 0));
    assert_eq!(start.policy.as_str(), rig.dir.join(".config/shoal/leash.toml").to_str().unwrap(), "not made yet");
    let env: Vec<&str> = start.env.as_slice().iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(env, ["HOME", "PATH"], "only allow-listed variables");
    let (sections, fds) = broker.expect(variant!(ToBroker::Sections));
    assert_eq!((sections.generation, sections.rejected.as_str()), (1, ""));
    let bytes = shoal_sys::memfd::read_sealed(&fds[0], 1 << 20).unwrap();
    assert!(shoal_proto::section::Sections::decode(&bytes).unwrap().built_in);
    // Only what is listed, no environment, and nothing else inherited.
    assert!(broker.report.ends_with("fds=[0, 1, 2, 3] env=0 threads=1"), "{}", broker.report);
}

fn readiness_is_said_after_the_trial() {
    let mut rig = Rig::new();
    let _broker = rig.ready();
    let lock = std::fs::read_to_string(rig.dir.join("state/lock")).unwrap();
    assert_eq!(lock, format!("{}\n", rig.socket().display()));
}

fn a_failed_trial_still_serves() {
    use shoal_proto::supervisor_launcher::{BirthFailed, ToLauncher, ToSupervisor as Up};
    let mut rig = Rig::new();
    let mut broker = rig.start();
    rig.serve(&mut broker);
    let mut trial = rig.launcher();
    trial.expect(variant!(ToLauncher::Birth));
    let failed = BirthFailed { step: shoal_proto::Text::cut("load the filter"), errno: 1 };
    trial.edge.send(&Up::BirthFailed(failed), &[]).unwrap();
    assert!(rig.stdout_line().starts_with("unready "));
    rig.signal(libc::SIGKILL);
    let (_, _, stderr) = rig.wait();
    assert!(stderr.contains("no session can be made: cannot load the filter"), "{stderr}");
}

fn a_bad_policy_is_fatal_at_start() {
    let mut rig = Rig::new();
    std::fs::write(rig.dir.join("bin/policy-error"), "leash.toml:3:1: unknown key \"reed\"; nearest is read").unwrap();
    rig.kernel = Some(rig.command().spawn().unwrap());
    let (code, stdout, stderr) = rig.wait();
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert_eq!(stderr, "shoal-kernel: leash.toml:3:1: unknown key \"reed\"; nearest is read\n");
    assert!(!rig.socket().exists());
}

fn one_kernel_per_state_directory() {
    let mut rig = Rig::new();
    let _broker = rig.ready();
    let second = rig.command().output().unwrap();
    assert_eq!(second.status.code(), Some(3));
    assert_eq!(String::from_utf8_lossy(&second.stdout), format!("{}\n", rig.socket().display()));
    let error = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(error.lines().count(), 1, "{error}");
}

fn what_is_in_the_way_is_named() {
    let mut rig = Rig::new();
    std::fs::create_dir_all(rig.socket()).unwrap();
    rig.kernel = Some(rig.command().spawn().unwrap());
    let (code, _, stderr) = rig.wait();
    assert_eq!(code, Some(1));
    assert!(stderr.contains("is a directory, not a socket") && stderr.lines().count() == 1, "{stderr}");
    let usage = rig.command().arg("--wrong").output().unwrap();
    assert_eq!(usage.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&usage.stderr).contains("usage: shoal-kernel"));
}

fn a_policy_is_loaded_again() {
    let mut rig = Rig::new();
    let config = rig.dir.join(".config/shoal");
    std::fs::create_dir_all(&config).unwrap();
    let mut broker = rig.ready();
    rig.signal(libc::SIGHUP);
    let (sections, _) = broker.expect(variant!(ToBroker::Sections));
    assert_eq!((sections.generation, sections.rejected.as_str()), (2, ""));
    std::fs::write(rig.dir.join("bin/policy-error"), "leash.toml:1:1: no").unwrap();
    broker.edge.send(&ToSupervisor::Reload(ping(1)), &[]).unwrap();
    let (sections, fds) = broker.expect(variant!(ToBroker::Sections));
    assert_eq!((sections.generation, sections.rejected.as_str(), fds.len()), (2, "leash.toml:1:1: no", 1));
    // A change of the file is enough.
    std::fs::remove_file(rig.dir.join("bin/policy-error")).unwrap();
    std::fs::write(config.join("leash.toml"), "").unwrap();
    let (sections, _) = broker.expect(variant!(ToBroker::Sections));
    assert_eq!((sections.generation, sections.rejected.as_str()), (3, ""));
}

fn a_drain_ends_in_order() {
    let mut rig = Rig::new();
    let mut broker = rig.ready();
    let (_, _, mut launcher, _) = rig.session(&mut broker);
    rig.signal(libc::SIGTERM);
    let (drain, _) = broker.expect(variant!(ToBroker::Drain));
    assert_eq!(drain.grace_ms, 10_000);
    broker.edge.send(&ToSupervisor::Drained(ping(0)), &[]).unwrap();
    launcher.expect(variant!(shoal_proto::supervisor_launcher::ToLauncher::Kill));
    launcher.order(EXIT);
    broker.order(EXIT);
    let (code, _, stderr) = rig.wait();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!rig.socket().exists());
    assert_eq!(std::fs::read_to_string(rig.dir.join("state/lock")).unwrap(), "");
}

fn a_killed_supervisor_takes_its_roles_with_it() {
    let mut rig = Rig::new();
    let mut broker = rig.ready();
    let (_, _, launcher, _) = rig.session(&mut broker);
    let pids = [broker.pid(), launcher.pid()];
    // A stopped role cannot react to the end of its edge; the kernel still ends it.
    assert!(shoal_sys::process::kill(launcher.pid(), libc::SIGSTOP).unwrap());
    rig.signal(libc::SIGKILL);
    eventually("all roles end", || pids.iter().all(|pid| !exists(*pid)));
    let _unused = hello();
}
