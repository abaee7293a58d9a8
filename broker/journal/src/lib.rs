//! Journal and content store of a Shoal kernel on SQLite.
#![forbid(unsafe_code)]
