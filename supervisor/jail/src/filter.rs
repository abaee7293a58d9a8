//! The compiled system call filters.

use std::io;

use shoal_sys::seccomp;

/// A filter of `filters/`, compiled at build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    /// What no session may do; inherited by every command.
    Session,
    /// `clone3` does not exist.
    Clone3,
    /// No datagrams, and no connection on the way of a message: only what asks to connect by TCP is held to ports.
    Ports,
    /// Of streams only TCP; any other protocol is answered like one the machine does not have, so that programs go on
    /// with TCP.
    Streams,
    /// No UNIX sockets, where no mount view hides them.
    LocalSockets,
    /// Nobody else's limits and priorities, where no pid namespace hides them.
    Others,
    /// What a worker needs.
    Worker,
    /// What a ptyd needs.
    Ptyd,
    /// What the broker needs.
    Broker,
    /// What the policy compiler needs.
    Policy,
}

impl Filter {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 10] = [
        Self::Session,
        Self::Clone3,
        Self::Ports,
        Self::Streams,
        Self::LocalSockets,
        Self::Others,
        Self::Worker,
        Self::Ptyd,
        Self::Broker,
        Self::Policy,
    ];

    pub(crate) fn program(self) -> &'static [u8] {
        macro_rules! compiled {
            ($name:literal) => {
                include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf"))
            };
        }
        match self {
            Self::Session => compiled!("session"),
            Self::Clone3 => compiled!("clone3"),
            Self::Ports => compiled!("ports"),
            Self::Streams => compiled!("streams"),
            Self::LocalSockets => compiled!("local-sockets"),
            Self::Others => compiled!("others"),
            Self::Worker => compiled!("worker"),
            Self::Ptyd => compiled!("ptyd"),
            Self::Broker => compiled!("broker"),
            Self::Policy => compiled!("policy"),
        }
    }

    /// Installs the filter for this thread and everything it starts.
    pub(crate) fn install(self) -> io::Result<()> {
        seccomp::install(self.program())
    }
}

/// Calls that have no name in the compiler's table, and the second entry of x86-64, whose numbers a list of names does
/// not see: both answer EPERM.
pub(crate) fn install_numbers() -> io::Result<()> {
    const OPEN_TREE_ATTR: u32 = 467;
    const X32: u32 = 0x4000_0000;
    const LOAD_NUMBER: (u16, u8, u8, u32) = (0x20, 0, 0, 0);
    const JUMP_GE: u16 = 0x35;
    const JUMP_EQ: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let program = [
        LOAD_NUMBER,
        (JUMP_GE, 2, 0, X32),
        (JUMP_EQ, 1, 0, OPEN_TREE_ATTR),
        (RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
        (RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs()),
    ];
    let bytes: Vec<u8> = program
        .iter()
        .flat_map(|(code, jt, jf, k)| [&code.to_ne_bytes()[..], &[*jt, *jf], &k.to_ne_bytes()].concat())
        .collect();
    seccomp::install(&bytes)
}

#[cfg(test)]
mod tests {
    use super::Filter;

    #[test]
    fn every_filter_is_compiled_and_small_enough() {
        for filter in Filter::ALL {
            let instructions = filter.program().len() / 8;
            // The kernel takes 4,096 instructions; every one costs about 2 us at installation.
            assert!((4..1000).contains(&instructions), "{filter:?} has {instructions}");
        }
    }
}
