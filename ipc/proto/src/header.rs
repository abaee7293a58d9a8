//! The 16 bytes in front of every message.

use crate::fault::Violation;
use crate::hello::EDGE_VERSION;

/// `SH`.
pub const MAGIC: u16 = 0x5348;
/// Bytes of an encoded header.
pub const HEADER_LEN: usize = 16;
/// Bodies above this travel in a sealed memfd: up to it the copy is cheaper than a new memfd.
pub const MAX_INLINE: usize = 64 * 1024;
/// Flag: the body is in a sealed memfd, the last descriptor of the message.
pub const FLAG_MEMFD: u8 = 1;
/// Descriptors one message may carry, the memfd of its body included.
pub const MAX_FDS: usize = 8;

/// Layout, little endian: `magic u16, version u8, type u8, flags u8, nfds u8, reserved u16, len u32, seq u32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Type number within the edge and direction.
    pub kind: u8,
    /// [`FLAG_MEMFD`] or 0.
    pub flags: u8,
    /// Descriptors with this message, the memfd of its body included.
    pub nfds: u8,
    /// Bytes of the body, wherever it is.
    pub len: u32,
    /// Counts up by one per message and direction, wrapping.
    pub seq: u32,
}

impl Header {
    /// The bytes of this header.
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        let [m0, m1] = MAGIC.to_le_bytes();
        let [l0, l1, l2, l3] = self.len.to_le_bytes();
        let [s0, s1, s2, s3] = self.seq.to_le_bytes();
        out.copy_from_slice(&[
            m0,
            m1,
            EDGE_VERSION,
            self.kind,
            self.flags,
            self.nfds,
            0,
            0,
            l0,
            l1,
            l2,
            l3,
            s0,
            s1,
            s2,
            s3,
        ]);
        out
    }

    /// Reads a header from the first bytes of `bytes` and returns it with the rest.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), Violation> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEADER_LEN>() else {
            return Err(Violation::Short(bytes.len()));
        };
        let [m0, m1, version, kind, flags, nfds, r0, r1, l0, l1, l2, l3, s0, s1, s2, s3] = *head;
        let magic = u16::from_le_bytes([m0, m1]);
        if magic != MAGIC {
            return Err(Violation::Magic(magic));
        }
        if version != EDGE_VERSION {
            return Err(Violation::Version(version));
        }
        if r0 != 0 || r1 != 0 || flags & !FLAG_MEMFD != 0 {
            return Err(Violation::Reserved);
        }
        let len = u32::from_le_bytes([l0, l1, l2, l3]);
        let seq = u32::from_le_bytes([s0, s1, s2, s3]);
        Ok((Self { kind, flags, nfds, len, seq }, rest))
    }

    /// Checks the length against what arrived inline; a body in a memfd has nothing inline.
    pub fn check_len(&self, inline: usize) -> Result<(), Violation> {
        let said = usize::try_from(self.len).unwrap_or(usize::MAX);
        let due = if self.flags & FLAG_MEMFD == 0 { said } else { 0 };
        if said > crate::message::MAX_BODY || due != inline {
            return Err(Violation::Length { said, got: inline });
        }
        Ok(())
    }
}
