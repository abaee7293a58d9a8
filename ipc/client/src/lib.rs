//! Client of a Shoal kernel: discovery, autostart, attach, pipelining, reconnect, events.
#![forbid(unsafe_code)]
