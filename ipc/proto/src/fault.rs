//! What a peer can do wrong on an edge. Each one ends the peer; none is skipped.

/// The peer broke the protocol of its edge: the answer is to close it, never to go on with the next message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The header does not start with the magic number.
    #[error("wrong magic {0:#06x}")]
    Magic(u16),
    /// The header has another version.
    #[error("edge version {0}, expected {expected}", expected = crate::EDGE_VERSION)]
    Version(u8),
    /// The reserved field is not zero, or an unknown flag is set.
    #[error("reserved bits set")]
    Reserved,
    /// The header is shorter than 16 bytes.
    #[error("message of {0} bytes is shorter than its header")]
    Short(usize),
    /// The header's length is not the length received.
    #[error("header says {said} bytes, {got} arrived")]
    Length {
        /// What the header said.
        said: usize,
        /// What arrived.
        got: usize,
    },
    /// The message was cut by the receiver's buffer.
    #[error("message truncated")]
    Truncated,
    /// Another number of descriptors arrived than the header says or the type declares.
    #[error("type {kind}: {got} descriptors, allowed {min}..={max}")]
    Descriptors {
        /// Type number.
        kind: u8,
        /// How many arrived.
        got: usize,
        /// The least allowed.
        min: usize,
        /// The most allowed.
        max: usize,
    },
    /// A descriptor is of another kind than its type declares.
    #[error("type {kind}: descriptor {index} is not a {expected}")]
    DescriptorKind {
        /// Type number.
        kind: u8,
        /// Position of the descriptor.
        index: usize,
        /// What the type declares there.
        expected: &'static str,
    },
    /// No message of this edge and direction has this type number.
    #[error("unknown message type {0}")]
    Type(u8),
    /// The sequence number is not the last one + 1.
    #[error("sequence {got}, expected {expected}")]
    Sequence {
        /// What arrived.
        got: u32,
        /// What was due.
        expected: u32,
    },
    /// The body does not decode.
    #[error("body: {0}")]
    Body(String),
    /// The body has bytes after its value.
    #[error("{len} bytes of body, {used} used")]
    Trailing {
        /// Bytes the value took.
        used: usize,
        /// Bytes there were.
        len: usize,
    },
    /// The peer sent more of a class than it has credit for.
    #[error("out of credit: {0}")]
    Credit(&'static str),
    /// A message that is not permitted in this state.
    #[error("{what} is not permitted while {state}")]
    State {
        /// The message.
        what: &'static str,
        /// The state.
        state: &'static str,
    },
    /// A field is out of its range or names something the peer does not own.
    #[error("{0}")]
    Field(String),
    /// Our own message does not encode: a bug on this side.
    #[error("cannot encode: {0}")]
    Encode(String),
}
