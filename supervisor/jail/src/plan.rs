//! What a session's jail will be: namespaces, steps, limits and the domain of its processes.

use std::path::{Path, PathBuf};

use shoal_proto::section::Network;
use shoal_proto::supervisor_launcher::{Access, Domain, MAX_RULES, Rule};
use shoal_proto::{List, Text};
use shoal_sys::fork::Namespaces;
use shoal_sys::rlimit::Limit;

use crate::failed::Failed;
use crate::lower::Roots;
pub use crate::order::{Order, Protected};
use crate::order::{limits, lower_all};
use crate::probe::Host;
use crate::step::{Step, take_all};
use crate::{network, view};

/// How much sooner than others the kernel ends a session's processes when memory is out.
const OOM_SCORE: &str = "500";

/// A jail that can be entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What the first process is made with.
    pub namespaces: Namespaces,
    /// What it does then, while it holds every capability of its user namespace.
    pub steps: Vec<Step>,
    /// Limits of its processes.
    pub limits: Vec<(Limit, u64)>,
    /// What the launcher confines itself to.
    pub domain: Domain,
}

/// Plans a jail of the strongest kind this host offers.
pub fn plan(order: &Order<'_>, host: &Host) -> Plan {
    let mut roots = Roots::new(order.section, order.lane);
    if host.namespaces && !roots.has_root() {
        roots.show_start(order.cwd, &order.kernel.hidden);
    }
    let mode = network::mode(order.section, order.lane);
    let mut steps = Vec::new();
    if host.namespaces {
        steps = if roots.has_root() { view::deny(order, &roots) } else { view::allow(order, &roots) };
        if mode == Network::None {
            steps.insert(0, Step::Loopback);
        }
        steps.push(Step::Present(order.cwd.to_owned()));
        steps.push(Step::Present("/".into()));
    }
    let namespaces = Namespaces {
        user: host.namespaces,
        pid: host.namespaces,
        mount: host.namespaces,
        ipc: host.namespaces,
        network: host.namespaces && mode == Network::None,
    };
    let ports = match mode {
        // Without a namespace of its own nothing but the absence of every port keeps a session from the network.
        Network::None if !host.namespaces => {
            Some(shoal_proto::supervisor_launcher::Ports { connect: Some(List::default()), listen: List::default() })
        }
        Network::Ports => Some(network::ports(order.section)),
        Network::None | Network::Open => None,
    };
    let domain = Domain {
        files: (host.landlock_abi > 0).then(|| rules(&roots, host.namespaces)),
        ports: ports.filter(|_| host.landlock_abi >= 4),
        filter: host.seccomp,
        exposed: !host.namespaces,
    };
    Plan { namespaces, steps, limits: limits(order), domain }
}

impl Plan {
    /// Enters the jail: for the first process of the namespaces, which becomes the launcher right after. Capabilities are
    /// gone when this returns.
    pub fn enter(&self) -> Result<(), Failed> {
        self.furnish()?;
        // The first process of a user namespace has them all; so has a kernel run by root without one.
        let held = shoal_sys::caps::effective().map_err(failed("look at capabilities"))?;
        if held != 0 {
            shoal_sys::caps::drop_all().map_err(failed("give up capabilities"))?;
        }
        let left = shoal_sys::caps::effective().map_err(failed("look at capabilities"))?;
        if left != 0 {
            return Err(failed("give up capabilities")(std::io::Error::from_raw_os_error(libc::EPERM)));
        }
        Ok(())
    }

    /// Everything that needs capabilities: the view and the limits.
    pub fn furnish(&self) -> Result<(), Failed> {
        // Needs the host's /proc, which the steps replace.
        std::fs::write("/proc/self/oom_score_adj", OOM_SCORE).map_err(failed("raise the out-of-memory score"))?;
        take_all(&self.steps)?;
        lower_all(&self.limits, self.namespaces.user).map_err(failed("lower a limit"))
    }
}

fn failed(step: &str) -> impl FnOnce(std::io::Error) -> Failed {
    let step = step.to_owned();
    move |error| Failed { step, error, no_such_dir: false }
}

/// The domain's rules: what is granted, what programs need to run, and the session's own places.
fn rules(roots: &Roots, own_processes: bool) -> List<Rule, MAX_RULES> {
    let all = Access::READ.and(Access::EXECUTE).and(Access::WRITE).and(Access::DELETE).and(Access::DEVICE);
    let run = Access::READ.and(Access::EXECUTE);
    let device = Access::READ.and(Access::WRITE).and(Access::DEVICE);
    let mut rules: Vec<(PathBuf, Access)> = Vec::new();
    if !roots.0.get(Path::new("/")).is_some_and(|access| access.has(Access::READ)) {
        let system = [
            "/usr",
            "/bin",
            "/sbin",
            "/lib",
            "/lib32",
            "/lib64",
            "/libx32",
            "/etc",
            "/opt",
            "/nix/store",
            "/gnu/store",
        ];
        rules.extend(system.map(|dir| (dir.into(), run)));
        rules.extend(["/run", "/proc"].map(|dir| (dir.into(), Access::READ)));
        // A tree of its own has in it what is granted and what programs need, so its names are no secret, unless
        // something may be written and not read.
        if own_processes && roots.0.values().all(|access| access.has(Access::READ)) {
            rules.push(("/".into(), Access::LIST));
        }
    }
    if own_processes {
        // What a program writes about itself: its name, its score, its standard streams by number.
        rules.push(("/proc".into(), Access::READ.and(Access::WRITE)));
    }
    rules.push(("/dev".into(), Access::READ));
    let devices = ["null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts"];
    rules.extend(devices.map(|name| (Path::new("/dev").join(name), device)));
    rules.extend(["/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue"].map(|dir| (dir.into(), all)));
    for (path, access) in &roots.0 {
        let whole = access.has(run) && access.has(Access::WRITE) && access.has(Access::DELETE);
        rules.push((path.clone(), if whole { all } else { *access }));
    }
    let rules =
        rules.into_iter().filter_map(|(path, access)| Some(Rule { path: Text::new(path.to_str()?).ok()?, access }));
    List::new(rules.take(MAX_RULES).collect::<Vec<_>>()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_proto::section::Section;
    use shoal_proto::supervisor_broker::Limits;

    fn list(globs: &[&str]) -> List<Text<4096>, 4096> {
        List::new(globs.iter().map(|glob| Text::new(*glob).unwrap()).collect::<Vec<_>>()).unwrap()
    }

    fn host() -> Host {
        Host { namespaces: true, landlock_abi: 7, seccomp: true, ..Host::default() }
    }

    fn made(section: &Section, host: &Host) -> Plan {
        let kernel = Protected {
            hidden: vec!["/home/me/.local/state/shoal".into()],
            home: Some("/home/me".into()),
            uid: 1000,
            ..Protected::default()
        };
        let order = Order { section, cwd: Path::new("/usr"), limits: &Limits::default(), lane: None, kernel: &kernel };
        plan(&order, host)
    }

    fn words(plan: &Plan) -> Vec<String> {
        plan.steps.iter().map(Step::words).collect()
    }

    #[test]
    fn the_whole_file_system_still_has_holes() {
        let all = list(&["/**"]);
        let section = Section {
            fs_read: all.clone(),
            fs_write: all.clone(),
            fs_delete: all,
            network: Network::Open,
            ..Section::default()
        };
        let plan = made(&section, &host());
        let words = words(&plan);
        let at =
            |step: &str| words.iter().position(|word| word == step).unwrap_or_else(|| panic!("{step}: {words:#?}"));
        let pins =
            ["/home", "/home/me", "/home/me/.local", "/home/me/.local/state"].map(|dir| at(&format!("pin {dir}")));
        assert!(pins.is_sorted());
        // A path that does not exist is no directory: it is covered like a file would be.
        assert!(pins[3] < at("cover /home/me/.local/state/shoal"));
        assert!(at("mount memory at /tmp") < at("mount terminals at /dev/pts"));
        assert!(at("mount processes at /proc") < at("write /proc/sys/user/max_user_namespaces"));
        assert!(!plan.namespaces.network && plan.namespaces.user && plan.namespaces.pid);
        let rules = plan.domain.files.unwrap();
        assert!(rules.as_slice().iter().any(|rule| rule.path.as_str() == "/" && rule.access.has(Access::DEVICE)));
    }

    #[test]
    fn a_scoped_section_gets_a_new_tree_and_no_network() {
        let section = Section { fs_read: list(&["/usr/share/**"]), ..Section::default() };
        let plan = made(&section, &host());
        let words = words(&plan);
        assert_eq!(words[0], "bring up the loopback device");
        assert!(words.contains(&"enter the root /tmp".to_owned()));
        assert!(!words.iter().any(|word| word == "attach /tmp/home/me"));
        assert!(plan.namespaces.network);
        let rules = plan.domain.files.unwrap();
        let root = rules.as_slice().iter().find(|rule| rule.path.as_str() == "/");
        assert_eq!(root.map(|rule| rule.access), Some(Access::LIST), "names, nothing else");
        let drop_box = Section { fs_write: list(&["/usr/share/**"]), ..Section::default() };
        let rules = made(&drop_box, &host()).domain.files.unwrap();
        assert!(!rules.as_slice().iter().any(|rule| rule.path.as_str() == "/"));
    }

    #[test]
    fn without_namespaces_the_domain_says_so() {
        let weak = Host { namespaces: false, landlock_abi: 7, seccomp: true, ..Host::default() };
        let plan = made(&Section::default(), &weak);
        assert!(plan.steps.is_empty() && !plan.namespaces.user);
        assert!(plan.domain.exposed && plan.domain.filter);
        assert_eq!(plan.domain.ports.unwrap().connect.unwrap().as_slice(), [0_u16; 0]);
    }

    #[test]
    fn limits_are_lowered_and_never_raised() {
        let mut section = Section::default();
        section.limits.pids = Some(100);
        section.limits.open_files = Some(100_000);
        let limits = Limits { pids: Some(500), cpu_seconds: Some(9), ..Limits::default() };
        let kernel = Protected::default();
        let order = Order { section: &section, cwd: Path::new("/"), limits: &limits, lane: None, kernel: &kernel };
        let plan = plan(&order, &host());
        assert!(plan.limits.contains(&(Limit::Processes, 100)));
        assert!(plan.limits.contains(&(Limit::OpenFiles, 4096)));
        assert!(plan.limits.contains(&(Limit::Cpu, 9)));
    }
}
