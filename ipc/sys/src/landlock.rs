//! What this kernel's Landlock offers. Rules are made by the `landlock` crate; this only asks.

/// The ABI version, 0 when Landlock is absent or off.
pub fn abi() -> u32 {
    const VERSION: libc::c_uint = 1;
    let none = std::ptr::null::<libc::c_void>();
    // SAFETY: a null attribute of size 0 with the VERSION flag asks for a number and makes nothing.
    let answer = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION) };
    u32::try_from(answer).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_abi_is_stable() {
        assert_eq!(super::abi(), super::abi());
        assert!(super::abi() < 1000);
    }
}
