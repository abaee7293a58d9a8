//! A state directory, a socket that listens, and a shell inside a jail.

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use shoal_jail::plan::{Order, Plan, Protected, plan};
use shoal_jail::probe::{Host, Target, probe};
use shoal_jail::{Failed, confine, make};
use shoal_proto::section::{Entry, Network, Section};
use shoal_proto::supervisor_broker::{Lane, Limits};
use shoal_proto::{List, Text};
use shoal_sys::fork::Namespaces;
use shoal_sys::spawn::{Command, Program};

pub(crate) struct Rig {
    pub(crate) dir: PathBuf,
    pub(crate) kernel: Protected,
    _listener: UnixListener,
}

impl Rig {
    pub(crate) fn new() -> Self {
        // Not below /tmp, which is private in every jail.
        let dir = shoal_harness::place::outside_tmp(env!("CARGO_TARGET_TMPDIR"));
        let dir = dir.join(format!("jail-{}", std::process::id()));
        for name in ["home/state", "home/run", "home/work", "home/.ssh"] {
            std::fs::create_dir_all(dir.join(name)).unwrap();
        }
        let dir = std::fs::canonicalize(dir).unwrap();
        std::fs::write(dir.join("home/state/lock"), "secret").unwrap();
        std::fs::write(dir.join("home/.bashrc"), "# mine").unwrap();
        let socket = dir.join("home/run/k.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let kernel = Protected {
            hidden: vec![dir.join("home/state"), socket],
            fixed: Vec::new(),
            home: Some(dir.join("home")),
            runtime: None,
            uid: shoal_sys::process::uid(),
        };
        // As the supervisor does, which is what the canary attacks.
        shoal_sys::prctl::set_dumpable(false).unwrap();
        Self { dir, kernel, _listener: listener }
    }

    pub(crate) fn home(&self, name: &str) -> String {
        self.dir.join("home").join(name).display().to_string()
    }

    pub(crate) fn target(&self) -> Target<'_> {
        Target { kernel: &self.kernel, state: &self.kernel.hidden[0], socket: &self.kernel.hidden[1] }
    }

    pub(crate) fn host(&self) -> Host {
        probe(&self.target())
    }

    pub(crate) fn plan(&self, section: &Section, host: &Host, cwd: &Path, lane: Option<&Lane>) -> Plan {
        let limits = Limits::default();
        plan(&Order { section, cwd, limits: &limits, lane, kernel: &self.kernel }, host)
    }

    /// What a shell script prints inside a jail, errors included; a jail that fails prints its failure.
    pub(crate) fn shell(&self, section: &Section, script: &str) -> String {
        self.shell_in(&self.plan(section, &self.host(), Path::new("/"), None), script)
    }

    pub(crate) fn shell_in(&self, plan: &Plan, script: &str) -> String {
        Self::output(plan.namespaces, script, || plan.enter().and_then(|()| confine::session(&plan.domain, &[])))
    }

    /// What the script prints without any jail: the control of an attack.
    pub(crate) fn shell_outside(script: &str) -> String {
        Self::output(Namespaces::default(), script, || Ok(()))
    }

    fn output(namespaces: Namespaces, script: &str, confine: impl FnOnce() -> Result<(), Failed>) -> String {
        let (read, write) = shoal_sys::fd::pipe().unwrap();
        let child = make::make(namespaces, || {
            if let Err(failed) = confine() {
                rustix::io::write(&write, failed.to_string().as_bytes()).unwrap();
                return 1;
            }
            let null = shoal_sys::fd::null().unwrap();
            let words = ["sh", "-c", script].map(|word| std::ffi::CString::new(word).unwrap()).to_vec();
            // The system's own programs: what lies in somebody's home is not there for everybody inside.
            let env = vec![c"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".to_owned()];
            let fds = vec![null.as_fd(), write.as_fd(), write.as_fd()];
            let child = Command::new(Program::Path(c"/bin/sh".to_owned()), words).env(env).fds(fds).spawn();
            match child {
                Ok(child) => u8::from(shoal_sys::process::reap_pid(child.pid).is_err()),
                Err(error) => {
                    rustix::io::write(&write, error.to_string().as_bytes()).unwrap();
                    1
                }
            }
        })
        .unwrap();
        drop(write);
        let mut text = String::new();
        std::fs::File::from(read).read_to_string(&mut text).unwrap();
        shoal_sys::process::reap_pid(child.pid).unwrap();
        text
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _removed = std::fs::remove_dir_all(&self.dir);
    }
}

pub(crate) fn globs(globs: &[&str]) -> List<Entry, 4096> {
    List::new(globs.iter().map(|glob| Text::new(*glob).unwrap()).collect::<Vec<_>>()).unwrap()
}

/// The local human without a policy file.
pub(crate) fn permissive() -> Section {
    let all = globs(&["/**"]);
    Section {
        fs_read: all.clone(),
        fs_write: all.clone(),
        fs_delete: all,
        network: Network::Open,
        ..Section::default()
    }
}
