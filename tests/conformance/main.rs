//! Conformance tests: clients nobody in the project wrote. `tests/run` installs them; without them these tests fail and
//! say so.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "tests start the clients as processes")]

mod approval;
mod clients;
mod drive;
mod rust;
mod watch;
