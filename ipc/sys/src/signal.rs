//! Signals: blocked and read from a descriptor, or at their defaults for a program.

use std::io;
use std::mem::MaybeUninit;

use libc::c_int;

/// The number of a signal by its name, `SIGTERM` for example; none for names that no command is known to die from.
pub fn number(name: &str) -> Option<c_int> {
    const NAMES: [(&str, c_int); 20] = [
        ("SIGHUP", libc::SIGHUP),
        ("SIGINT", libc::SIGINT),
        ("SIGQUIT", libc::SIGQUIT),
        ("SIGILL", libc::SIGILL),
        ("SIGTRAP", libc::SIGTRAP),
        ("SIGABRT", libc::SIGABRT),
        ("SIGBUS", libc::SIGBUS),
        ("SIGFPE", libc::SIGFPE),
        ("SIGKILL", libc::SIGKILL),
        ("SIGUSR1", libc::SIGUSR1),
        ("SIGSEGV", libc::SIGSEGV),
        ("SIGUSR2", libc::SIGUSR2),
        ("SIGPIPE", libc::SIGPIPE),
        ("SIGALRM", libc::SIGALRM),
        ("SIGTERM", libc::SIGTERM),
        ("SIGXCPU", libc::SIGXCPU),
        ("SIGXFSZ", libc::SIGXFSZ),
        ("SIGVTALRM", libc::SIGVTALRM),
        ("SIGPROF", libc::SIGPROF),
        ("SIGSYS", libc::SIGSYS),
    ];
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

/// What Ctrl-Z sends.
pub const TERMINAL_STOP: c_int = libc::SIGTSTP;

/// The highest signal number.
const LAST_SIGNAL: c_int = if cfg!(target_os = "linux") { 64 } else { 31 };

/// The signals that were blocked before [`block_all`].
#[derive(Clone, Copy)]
pub(crate) struct Mask(libc::sigset_t);

fn full_set() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: writes the whole set through a live pointer.
    unsafe { libc::sigfillset(set.as_mut_ptr()) };
    // SAFETY: sigfillset initialised it.
    unsafe { set.assume_init() }
}

fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: writes the whole set through a live pointer.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: sigemptyset initialised it.
    unsafe { set.assume_init() }
}

fn change(how: c_int, set: &libc::sigset_t) -> libc::sigset_t {
    let mut old = empty_set();
    // SAFETY: both sets are live; `how` is one of the three constants, so the call cannot fail.
    unsafe { libc::pthread_sigmask(how, std::ptr::from_ref(set), &raw mut old) };
    old
}

/// Blocks every signal of this thread, for the time between a clone and the child's exec.
pub(crate) fn block_all() -> Mask {
    Mask(change(libc::SIG_SETMASK, &full_set()))
}

/// Goes back to the mask before [`block_all`].
pub(crate) fn restore(mask: &Mask) {
    change(libc::SIG_SETMASK, &mask.0);
}

/// Every signal at its default and none blocked. Only system calls: it may run between a vfork and an exec.
pub(crate) fn reset_for_exec() {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: zeroed memory is a valid sigaction: SIG_DFL (0), no flags.
    let action = unsafe { action.assume_init_mut() };
    action.sa_sigaction = libc::SIG_DFL;
    for signal in 1..=LAST_SIGNAL {
        // SAFETY: the action is live; KILL, STOP and the two the C library keeps for itself answer EINVAL, which is fine.
        unsafe { libc::sigaction(signal, std::ptr::from_ref(action), std::ptr::null_mut()) };
    }
    change(libc::SIG_SETMASK, &empty_set());
}

/// Ignores SIGPIPE for this process, so that a closed pipe is an error and not an end.
pub fn ignore_pipe() {
    // SAFETY: sets a constant disposition; no handler runs.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Signals that arrive as input.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub struct SignalFd(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl SignalFd {
    /// Blocks `signals` for this thread (the only one, or the first before others start) and makes a descriptor that is
    /// readable when one of them is pending.
    pub fn new(signals: &[c_int]) -> io::Result<Self> {
        use std::os::fd::FromRawFd;
        let mut set = empty_set();
        for &signal in signals {
            // SAFETY: the set is live and initialised; a number that is no signal answers EINVAL.
            if unsafe { libc::sigaddset(&raw mut set, signal) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        change(libc::SIG_BLOCK, &set);
        // SAFETY: the set is live; -1 asks for a new descriptor.
        let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: signalfd made a new descriptor that nobody else owns.
        Ok(Self(unsafe { std::os::fd::OwnedFd::from_raw_fd(fd) }))
    }

    /// The next pending signal's number, if there is one. Equal ones that came meanwhile count once.
    pub fn read(&self) -> io::Result<Option<c_int>> {
        let mut info = [0_u8; size_of::<libc::signalfd_siginfo>()];
        match rustix::io::read(&self.0, &mut info) {
            Ok(_len) => {
                let [a, b, c, d, ..] = info;
                Ok(c_int::try_from(u32::from_ne_bytes([a, b, c, d])).ok())
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }
}

/// Signals that arrive as input.
#[cfg(target_os = "macos")]
#[derive(Debug)]
pub struct SignalFd(std::os::fd::OwnedFd);

#[cfg(target_os = "macos")]
impl SignalFd {
    /// Blocks `signals` for this thread (the only one, or the first before others start) and makes a descriptor that is
    /// readable when one of them came: a queue notes a signal before the mask is looked at.
    pub fn new(signals: &[c_int]) -> io::Result<Self> {
        let queue = crate::kqueue::new()?;
        let mut set = empty_set();
        for &signal in signals {
            // SAFETY: the set is live and initialised; a number that is no signal answers EINVAL.
            if unsafe { libc::sigaddset(&raw mut set, signal) } != 0 {
                return Err(io::Error::last_os_error());
            }
            let number = usize::try_from(signal).map_err(|_| io::ErrorKind::InvalidInput)?;
            crate::kqueue::add(&queue, number, libc::EVFILT_SIGNAL, libc::EV_CLEAR, 0)?;
        }
        change(libc::SIG_BLOCK, &set);
        Ok(Self(queue))
    }

    /// The next signal's number, if one came. Equal ones that came meanwhile count once.
    pub fn read(&self) -> io::Result<Option<c_int>> {
        Ok(crate::kqueue::next(&self.0)?.and_then(|number| c_int::try_from(number).ok()))
    }
}

impl std::os::fd::AsFd for SignalFd {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_signal_is_read() {
        let signals = SignalFd::new(&[libc::SIGUSR1, libc::SIGUSR2]).unwrap();
        assert_eq!(signals.read().unwrap(), None);
        // SAFETY: SIGUSR2 is blocked in this thread, so raising it only makes it pending.
        unsafe { libc::raise(libc::SIGUSR2) };
        assert_eq!(signals.read().unwrap(), Some(libc::SIGUSR2));
        assert_eq!(signals.read().unwrap(), None);
    }

    #[test]
    fn the_mask_comes_back() {
        let before = change(libc::SIG_BLOCK, &empty_set());
        let mask = block_all();
        restore(&mask);
        let after = change(libc::SIG_BLOCK, &empty_set());
        // SAFETY: both sets are live and initialised.
        let held = |set: &libc::sigset_t| unsafe { libc::sigismember(std::ptr::from_ref(set), libc::SIGUSR1) };
        assert_eq!(held(&before), held(&after));
    }

    #[test]
    fn a_number_that_is_no_signal_is_refused() {
        assert!(SignalFd::new(&[1000]).is_err());
    }
}
