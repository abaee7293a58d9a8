//! Linux capabilities: none survive.

use std::io;

use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};

/// Gives up every capability for good, for any uid: ambient, bounding, effective, permitted and inheritable sets, and
/// the rules by which uid 0 would get them back at exec. Needs `CAP_SETPCAP`, which the first process of a user
/// namespace has.
pub fn drop_all() -> io::Result<()> {
    rustix::thread::clear_ambient_capability_set()?;
    for capability in 0..64 {
        // SAFETY: PR_CAPBSET_DROP takes a number, no memory; numbers the kernel does not know answer EINVAL.
        let result = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        if result != 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EINVAL) {
                return Err(error);
            }
            break;
        }
    }
    let locked = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED;
    rustix::thread::set_capabilities_secure_bits(locked)?;
    let none = CapabilitySet::empty();
    Ok(rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}

/// The effective set, one bit per capability.
pub fn effective() -> io::Result<u64> {
    Ok(rustix::thread::capabilities(None)?.effective.bits())
}
