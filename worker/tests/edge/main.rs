//! The real worker below the real launcher, between a fake supervisor and a fake broker.
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod methods;
mod requests;
mod session;
