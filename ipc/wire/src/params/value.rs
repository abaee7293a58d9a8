//! `value.get`, `blob.get` and the stream methods.

use super::{Hash, Int, Member, params, words};
use crate::elide::ElideSpec;
use crate::error::RpcError;
use crate::limits;

words! {
    /// The form a value is answered in.
    Format {
        /// Tagged, elided.
        Json = "json",
        /// Text of 80 columns.
        Render = "render",
        /// The content of a string or of bytes.
        Raw = "raw",
    }
}

/// `[start, end]`, half open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// First item.
    pub start: u64,
    /// One past the last item.
    pub end: u64,
}

impl Member for Slice {
    fn read(param: &str, text: &str) -> Result<Self, RpcError> {
        let expected = "two integers of at least 0";
        match Vec::<u64>::read(param, text)?.as_slice() {
            [start, end] => Ok(Slice { start: *start, end: *end }),
            _ => Err(RpcError::out_of_range(param, expected)),
        }
    }
}

params! {
    /// `value.get`.
    #[derive(Eq)]
    ValueGet {
        /// `out:N`, `val:blake3:HEX`, `last`, or the URI of one.
        req ref_: String,
        /// Path into the value.
        opt path: String,
        /// Slice after the path.
        opt slice: Slice,
        /// Budgets of the answer.
        def elide: ElideSpec = ElideSpec::default(),
        /// Form of the answer.
        def format: Format = Format::Json,
    }
}

params! {
    /// `blob.get`.
    #[derive(Eq)]
    BlobGet {
        /// Digest of the blob.
        req hash: Hash,
        /// First byte.
        opt offset: u64,
        /// Bytes at most.
        opt length: Int<0, { limits::BLOB_PAGE_BYTES }>,
    }
}

params! {
    /// `stream.pull`.
    #[derive(Eq)]
    StreamPull {
        /// The value that holds the stream.
        req ref_: String,
        /// Path to the stream in it.
        opt path: String,
        /// Items at most.
        def max: Int<1, 256> = Int::clamped(64),
        /// Longest wait for a first item.
        def wait_ms: Int<0, 30_000> = Int::clamped(1000),
    }
}

params! {
    /// `stream.close`.
    #[derive(Eq)]
    StreamClose {
        /// The value that holds the stream.
        req ref_: String,
        /// Path to the stream in it.
        opt path: String,
    }
}
