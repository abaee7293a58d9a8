//! The one place that knows bincode.

use crate::fault::Violation;

/// A body never exceeds this, inline or in a memfd: one client frame (16 MiB) and room for what is sent with it.
pub(crate) const MAX_BODY: usize = 20 * 1024 * 1024;

fn config() -> impl bincode::config::Config {
    bincode::config::standard().with_little_endian().with_variable_int_encoding().with_limit::<MAX_BODY>()
}

/// Encodes one body.
pub(crate) fn encode<T: bincode::Encode>(value: &T) -> Result<Vec<u8>, Violation> {
    bincode::encode_to_vec(value, config()).map_err(|e| Violation::Encode(e.to_string()))
}

/// Decodes one body, all of it: a trailing byte is a violation.
pub(crate) fn decode<T: bincode::Decode<()>>(bytes: &[u8]) -> Result<T, Violation> {
    let (value, used) =
        bincode::decode_from_slice::<T, _>(bytes, config()).map_err(|e| Violation::Body(e.to_string()))?;
    if used == bytes.len() { Ok(value) } else { Err(Violation::Trailing { used, len: bytes.len() }) }
}
