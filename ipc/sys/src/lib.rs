//! The operating-system calls of Shoal: the one crate with unsafe code.
