//! Typed channels between processes, with descriptors bound to the messages that declare them.
#![forbid(unsafe_code)]
