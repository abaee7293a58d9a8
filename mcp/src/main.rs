//! MCP server in front of a Shoal kernel, over stdio.
#![forbid(unsafe_code)]

fn main() {}
