//! Messages on the edges between the processes of a Shoal kernel, and their codec.
#![forbid(unsafe_code)]
