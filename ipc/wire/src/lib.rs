//! Client-facing JSON of a Shoal kernel: envelope, methods, values, error codes, references, limits.
#![forbid(unsafe_code)]
