//! What all edge messages have in common, and the macro that writes one enum per edge and direction.

use crate::fault::Violation;

/// The largest body of any message, inline or in a memfd.
pub const MAX_BODY: usize = crate::codec::MAX_BODY;

/// Credit class of a message: control never waits behind bulk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Requests, answers, lifecycle.
    Control,
    /// Progress and events; over its rate they are dropped with a count.
    Event,
    /// Payloads in memfds.
    Bulk,
}

/// What a descriptor must be when it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FdKind {
    /// A sealed memfd (seal, shrink, grow, write), read with `pread`, never mapped.
    Memfd,
    /// The read end of a pipe.
    PipeRead,
    /// A connected UNIX stream or sequenced-packet socket.
    Socket,
    /// A listening UNIX stream socket.
    Listener,
    /// A directory.
    Dir,
    /// The leader side of a pseudo terminal.
    Leader,
    /// Standard input or output of a command: a pipe, a regular file, a character device; never a socket or directory.
    Stdio,
}

impl FdKind {
    /// The kind in words, for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memfd => "sealed memfd",
            Self::PipeRead => "read end of a pipe",
            Self::Socket => "connected socket",
            Self::Listener => "listening socket",
            Self::Dir => "directory",
            Self::Leader => "terminal leader",
            Self::Stdio => "pipe, file or device",
        }
    }
}

/// The descriptors a message type declares, in order; at least `min` of them must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdRule {
    /// How many must be there.
    pub min: usize,
    /// The kind of each that may be there.
    pub kinds: &'static [FdKind],
}

impl FdRule {
    /// Refuses another number of descriptors than the rule allows.
    pub fn check_count(&self, kind: u8, got: usize) -> Result<(), Violation> {
        if got < self.min || got > self.kinds.len() {
            return Err(Violation::Descriptors { kind, got, min: self.min, max: self.kinds.len() });
        }
        Ok(())
    }
}

/// One direction of one edge.
pub trait Message: Sized + Send {
    /// Name of edge and direction, for logs.
    const EDGE: &'static str;

    /// Type number.
    fn kind(&self) -> u8;

    /// Name of the variant, for logs and violations.
    fn name(&self) -> &'static str;

    /// Credit class.
    fn class(&self) -> Class;

    /// The descriptors a type declares; an unknown type is a violation.
    fn fd_rule(kind: u8) -> Result<FdRule, Violation>;

    /// The body's bytes.
    fn encode_body(&self) -> Result<Vec<u8>, Violation>;

    /// Reads the body of a type, all of it.
    fn decode_body(kind: u8, body: &[u8]) -> Result<Self, Violation>;
}

/// Writes the enum of one direction: `NUMBER Variant(Payload) class [min; kinds]`.
macro_rules! edge {
    ($(#[$meta:meta])* $name:ident = $edge:literal {
        $($(#[$vmeta:meta])* $num:literal $variant:ident($payload:ty) $class:ident [$min:literal; $($fd:ident),*],)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name { $($(#[$vmeta])* $variant($payload),)+ }

        impl $crate::message::Message for $name {
            const EDGE: &'static str = $edge;

            fn kind(&self) -> u8 {
                match self { $(Self::$variant(_) => $num,)+ }
            }

            fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => stringify!($variant),)+ }
            }

            fn class(&self) -> $crate::message::Class {
                match self { $(Self::$variant(_) => $crate::message::Class::$class,)+ }
            }

            fn fd_rule(kind: u8) -> Result<$crate::message::FdRule, $crate::fault::Violation> {
                match kind {
                    $($num => Ok($crate::message::FdRule { min: $min, kinds: &[$($crate::message::FdKind::$fd),*] }),)+
                    other => Err($crate::fault::Violation::Type(other)),
                }
            }

            fn encode_body(&self) -> Result<Vec<u8>, $crate::fault::Violation> {
                match self { $(Self::$variant(payload) => $crate::codec::encode(payload),)+ }
            }

            fn decode_body(kind: u8, body: &[u8]) -> Result<Self, $crate::fault::Violation> {
                match kind {
                    $($num => $crate::codec::decode::<$payload>(body).map(Self::$variant),)+
                    other => Err($crate::fault::Violation::Type(other)),
                }
            }
        }

        impl $name {
            /// Every type number of this direction, for tests and fuzzing.
            pub const KINDS: &'static [u8] = &[$($num),+];
        }
    };
}
pub(crate) use edge;
