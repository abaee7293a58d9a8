//! Boots a real Shoal kernel in a temporary directory for tests.
#![forbid(unsafe_code)]
