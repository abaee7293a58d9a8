//! Client-facing JSON of a Shoal kernel: envelope, methods, values, error codes, references, limits.
//!
//! Whatever a client can see has its one definition here, and the broker, the client library, the MCP facade and the
//! session worker share it. The crate is pure: no files, no sockets, no clock.
//!
//! Bytes of a peer enter through three doors, each with its own limits: [`frame::FrameReader`] cuts lines,
//! [`json::check`] bounds what a line may contain, and [`envelope::Request::decode`] borrows the parts of a request.
//! Parameters are decoded afterwards, by [`params::decode`], into one struct per method.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::unwrap_used))]

pub mod code;
pub mod effect;
pub mod elide;
pub mod envelope;
pub mod error;
pub mod frame;
pub mod json;
pub mod limits;
pub mod method;
pub mod nearest;
pub mod params;
pub mod path;
pub mod refs;
pub mod text;
pub mod uri;
pub mod value;

pub use code::Code;
pub use elide::ElideSpec;
pub use envelope::Request;
pub use error::RpcError;
pub use method::Method;
pub use refs::Ref;
pub use uri::Uri;

/// Protocol number of the kernel socket.
pub const PROTOCOL: u32 = 1;
/// Version of the syntax tree vocabulary that `parse` and `plan.get` answer with.
pub const AST_VERSION: u32 = 2;
/// Build text, `VERSION+COMMIT`; `dev` stands for the commit of a build that was not told one.
pub const BUILD: &str = match option_env!("SHOAL_BUILD") {
    Some(build) => build,
    None => concat!(env!("CARGO_PKG_VERSION"), "+dev"),
};
/// The MIME type of event logs: resources whose body is a list of numbered events.
pub const EVENTS_MIME: &str = "application/vnd.asyncai.events+json";
