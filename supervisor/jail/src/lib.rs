//! Jails of a Shoal kernel as data: filters, mount views, limits, and how they are applied.
#![forbid(unsafe_code)]
