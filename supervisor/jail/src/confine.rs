//! What a process puts on itself, before it has threads and before it reads anything from a lower side.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, RestrictionStatus,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::{FileType, Mode, OFlags, fstat};
use shoal_proto::supervisor_launcher::{Access, Domain, Ports, Rule};

use crate::failed::Failed;
use crate::filter::{self, Filter};

/// The newest rights that are asked for: a fixed number, so that the same build asks the same on every host that has
/// them. An older host is asked for all it has.
const NEWEST: u32 = 6;

/// Confines a launcher, and with it every process of its session, to its domain. `programs` are the open executables
/// of worker and ptyd, which may be read and executed whatever the view hides. The last act hides its memory from its
/// own commands.
pub fn session(domain: &Domain, programs: &[BorrowedFd<'_>]) -> Result<(), Failed> {
    shoal_sys::prctl::set_no_new_privs().map_err(at("give up new privileges"))?;
    if let Some(files) = &domain.files {
        landlock(files.as_slice(), programs, domain.ports.as_ref()).map_err(at("restrict files"))?;
    }
    if domain.filter {
        let mut filters = vec![Filter::Session];
        if domain.ports.is_some() {
            filters.extend([Filter::Ports, Filter::Streams]);
        }
        if domain.exposed {
            filters.extend([Filter::LocalSockets, Filter::Others]);
        }
        for one in filters {
            one.install().map_err(at("install the session's filter"))?;
        }
        filter::install_numbers().map_err(at("install the filter of numbers"))?;
        // Last: of two filters that refuse a call the newest decides the error number.
        Filter::Clone3.install().map_err(at("install the filter of clone3"))?;
    }
    shoal_sys::prctl::set_dumpable(false).map_err(at("hide its memory"))
}

/// Confines a worker inside its session: no program, no socket, no signal to others.
pub fn worker() -> Result<(), Failed> {
    role(Filter::Worker)
}

/// Confines a ptyd inside its session: no file, no program, no socket.
pub fn ptyd() -> Result<(), Failed> {
    shoal_sys::prctl::set_no_new_privs().map_err(at("give up new privileges"))?;
    empty_domain()?;
    role(Filter::Ptyd)
}

/// Confines the policy compiler: what it was given, and nothing else.
pub fn policy() -> Result<(), Failed> {
    shoal_sys::prctl::set_no_new_privs().map_err(at("give up new privileges"))?;
    empty_domain()?;
    role(Filter::Policy)
}

/// Confines the broker: its state directory, and `/proc` to see who its peers are.
pub fn broker(state: BorrowedFd<'_>) -> Result<(), Failed> {
    shoal_sys::prctl::set_no_new_privs().map_err(at("give up new privileges"))?;
    if shoal_sys::landlock::abi() > 0 {
        let restricted = ruleset(None).and_then(|rules| {
            let all = AccessFs::from_all(abi()) & !(AccessFs::Execute | AccessFs::IoctlDev);
            let rules = rules.add_rule(PathBeneath::new(state, all)).map_err(io::Error::other)?;
            let rules = beneath(rules, "/proc", Access::READ)?;
            // The database seeds its own randomness there.
            let rules = beneath(rules, "/dev/urandom", Access::READ)?;
            fully(rules.restrict_self().map_err(io::Error::other)?)
        });
        restricted.map_err(at("restrict files"))?;
    }
    role(Filter::Broker)
}

fn empty_domain() -> Result<(), Failed> {
    if shoal_sys::landlock::abi() == 0 {
        return Ok(());
    }
    let restricted = ruleset(None).and_then(|rules| fully(rules.restrict_self().map_err(io::Error::other)?));
    restricted.map_err(at("restrict files"))
}

fn role(filter: Filter) -> Result<(), Failed> {
    shoal_sys::prctl::set_no_new_privs().map_err(at("give up new privileges"))?;
    // The library reads facts about the process when it first needs one; afterwards it could not.
    let _page = rustix::param::page_size();
    shoal_sys::prctl::set_dumpable(false).map_err(at("hide its memory"))?;
    if shoal_sys::seccomp::is_available() {
        // The role's filter is the last act: it does not allow another. It allows clone3, so that the answer of this
        // one, which the thread library understands, is the one that counts.
        Filter::Clone3.install().map_err(at("install the filter of clone3"))?;
        filter.install().map_err(at("install the role's filter"))?;
    }
    Ok(())
}

fn at(step: &'static str) -> impl FnOnce(io::Error) -> Failed {
    move |error| Failed { step: step.to_owned(), error, no_such_dir: false }
}

/// The rights this host has, up to the newest that are asked for.
fn abi() -> ABI {
    match shoal_sys::landlock::abi().min(NEWEST) {
        0 => ABI::Unsupported,
        1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        _ => ABI::V6,
    }
}

/// A ruleset that handles every right this host has, ports too if any are ruled, and both scopes.
fn ruleset(ports: Option<&Ports>) -> io::Result<RulesetCreated> {
    let abi = abi();
    // First of all: it affects only what is asked for after it.
    let mut rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    rules = rules.handle_access(AccessFs::from_all(abi)).map_err(io::Error::other)?;
    if let Some(ports) = ports {
        let mut handled = BitFlags::from(AccessNet::BindTcp);
        if ports.connect.is_some() {
            handled |= AccessNet::ConnectTcp;
        }
        rules = rules.handle_access(handled).map_err(io::Error::other)?;
    }
    let scopes = Scope::from_all(abi);
    if !scopes.is_empty() {
        rules = rules.scope(scopes).map_err(io::Error::other)?;
    }
    rules.create().map_err(io::Error::other)
}

fn landlock(files: &[Rule], programs: &[BorrowedFd<'_>], ports: Option<&Ports>) -> io::Result<()> {
    let mut rules = ruleset(ports)?;
    for rule in files {
        rules = beneath(rules, rule.path.as_str(), rule.access)?;
    }
    for program in programs {
        let access = AccessFs::Execute | AccessFs::ReadFile;
        rules = rules.add_rule(PathBeneath::new(*program, access)).map_err(io::Error::other)?;
    }
    if let Some(ports) = ports {
        for port in ports.listen.as_slice() {
            rules = rules.add_rule(NetPort::new(*port, AccessNet::BindTcp)).map_err(io::Error::other)?;
        }
        for port in ports.connect.iter().flat_map(|list| list.as_slice()) {
            rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp)).map_err(io::Error::other)?;
        }
    }
    fully(rules.restrict_self().map_err(io::Error::other)?)
}

/// Adds a rule for a path; one that does not exist in this view grants nothing.
fn beneath(rules: RulesetCreated, path: &str, access: Access) -> io::Result<RulesetCreated> {
    let file: OwnedFd = match rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(file) => file,
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::ACCESS) => return Ok(rules),
        Err(e) => return Err(e.into()),
    };
    let is_dir = FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::Directory;
    let mut rights = rights(access);
    if !is_dir {
        rights &= AccessFs::from_file(abi());
    }
    if rights.is_empty() {
        return Ok(rules);
    }
    rules.add_rule(PathBeneath::new(file.as_fd(), rights)).map_err(io::Error::other)
}

/// Our words in Landlock's, as far as this host has them.
fn rights(access: Access) -> BitFlags<AccessFs> {
    let mut rights = BitFlags::EMPTY;
    if access.has(Access::READ) {
        rights |= AccessFs::ReadFile | AccessFs::ReadDir;
    }
    if access.has(Access::LIST) {
        rights |= AccessFs::ReadDir;
    }
    if access.has(Access::EXECUTE) {
        rights |= AccessFs::Execute | AccessFs::ReadFile;
    }
    // Moving between directories is both; every layer handles it, or no rename across directories would work.
    if access.has(Access::WRITE) {
        rights |= AccessFs::WriteFile
            | AccessFs::Truncate
            | AccessFs::MakeReg
            | AccessFs::MakeDir
            | AccessFs::MakeSym
            | AccessFs::MakeFifo
            | AccessFs::MakeSock
            | AccessFs::Refer;
    }
    if access.has(Access::DELETE) {
        rights |= AccessFs::RemoveFile | AccessFs::RemoveDir | AccessFs::Refer;
    }
    if access.has(Access::DEVICE) {
        rights |= AccessFs::IoctlDev | AccessFs::MakeChar | AccessFs::MakeBlock;
    }
    rights & AccessFs::from_all(abi())
}

fn fully(status: RestrictionStatus) -> io::Result<()> {
    if status.ruleset == RulesetStatus::FullyEnforced {
        return Ok(());
    }
    Err(io::Error::other(format!("only {:?}", status.ruleset)))
}
