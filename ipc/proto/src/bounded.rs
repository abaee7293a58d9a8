//! Text, bytes and lists with the bound in the type: decoding refuses a longer one before it allocates for it.

use bincode::de::{BorrowDecoder, Decoder};
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{BorrowDecode, Decode, Encode};

/// UTF-8 text of at most `N` bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text<const N: usize>(String);

/// At most `N` bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bytes<const N: usize>(Vec<u8>);

/// At most `N` items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<T, const N: usize>(Vec<T>);

/// What did not fit into its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{actual} exceeds the bound of {bound}")]
pub struct TooLong {
    /// The bound, in bytes or items.
    pub bound: usize,
    /// What was given.
    pub actual: usize,
}

impl<const N: usize> Text<N> {
    /// Takes `text` if it fits.
    pub fn new(text: impl Into<String>) -> Result<Self, TooLong> {
        let text = text.into();
        if text.len() > N { Err(TooLong { bound: N, actual: text.len() }) } else { Ok(Self(text)) }
    }

    /// Takes as much of `text` as fits, cut at a character boundary: for text that is only shown.
    pub fn cut(text: &str) -> Self {
        Self(text.get(..text.floor_char_boundary(N)).unwrap_or_default().to_owned())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, owned.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl<const N: usize> Bytes<N> {
    /// Takes `bytes` if they fit.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, TooLong> {
        let bytes = bytes.into();
        if bytes.len() > N { Err(TooLong { bound: N, actual: bytes.len() }) } else { Ok(Self(bytes)) }
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, owned.
    pub fn into_vec(self) -> Vec<u8> {
        self.0
    }
}

impl<T, const N: usize> List<T, N> {
    /// Takes `items` if they fit.
    pub fn new(items: impl Into<Vec<T>>) -> Result<Self, TooLong> {
        let items = items.into();
        if items.len() > N { Err(TooLong { bound: N, actual: items.len() }) } else { Ok(Self(items)) }
    }

    /// The items.
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }

    /// The items, owned.
    pub fn into_vec(self) -> Vec<T> {
        self.0
    }
}

impl<T, const N: usize> Default for List<T, N> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<const N: usize> std::ops::Deref for Text<N> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl<const N: usize> std::fmt::Display for Text<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads a length and refuses it above `bound`, before anything is allocated.
fn decode_len<D: Decoder>(decoder: &mut D, bound: usize) -> Result<usize, DecodeError> {
    let len = u64::decode(decoder)?;
    match usize::try_from(len) {
        Ok(len) if len <= bound => Ok(len),
        Ok(_) | Err(_) => Err(DecodeError::OtherString(format!("length {len} exceeds the bound of {bound}"))),
    }
}

fn decode_bytes<D: Decoder>(decoder: &mut D, bound: usize) -> Result<Vec<u8>, DecodeError> {
    use bincode::de::read::Reader;
    let len = decode_len(decoder, bound)?;
    decoder.claim_bytes_read(len)?;
    let mut bytes = vec![0; len];
    decoder.reader().read(&mut bytes)?;
    Ok(bytes)
}

fn encode_bytes<E: Encoder>(bytes: &[u8], encoder: &mut E) -> Result<(), EncodeError> {
    use bincode::enc::write::Writer;
    (bytes.len() as u64).encode(encoder)?;
    encoder.writer().write(bytes)
}

impl<const N: usize> Encode for Text<N> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        encode_bytes(self.0.as_bytes(), encoder)
    }
}

impl<Context, const N: usize> Decode<Context> for Text<N> {
    fn decode<D: Decoder<Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let bytes = decode_bytes(decoder, N)?;
        String::from_utf8(bytes).map(Self).map_err(|e| DecodeError::Utf8 { inner: e.utf8_error() })
    }
}

impl<'de, Context, const N: usize> BorrowDecode<'de, Context> for Text<N> {
    fn borrow_decode<D: BorrowDecoder<'de, Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        Self::decode(decoder)
    }
}

impl<const N: usize> Encode for Bytes<N> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        encode_bytes(&self.0, encoder)
    }
}

impl<Context, const N: usize> Decode<Context> for Bytes<N> {
    fn decode<D: Decoder<Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        decode_bytes(decoder, N).map(Self)
    }
}

impl<'de, Context, const N: usize> BorrowDecode<'de, Context> for Bytes<N> {
    fn borrow_decode<D: BorrowDecoder<'de, Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        Self::decode(decoder)
    }
}

impl<T: Encode, const N: usize> Encode for List<T, N> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        (self.0.len() as u64).encode(encoder)?;
        self.0.iter().try_for_each(|item| item.encode(encoder))
    }
}

impl<Context, T: Decode<Context>, const N: usize> Decode<Context> for List<T, N> {
    fn decode<D: Decoder<Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let len = decode_len(decoder, N)?;
        // Grown as items arrive: a short body cannot make us reserve for a long list.
        let mut items = Vec::with_capacity(len.min(64));
        for _ in 0..len {
            items.push(T::decode(decoder)?);
        }
        Ok(Self(items))
    }
}

impl<'de, Context, T: Decode<Context>, const N: usize> BorrowDecode<'de, Context> for List<T, N> {
    fn borrow_decode<D: BorrowDecoder<'de, Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        Self::decode(decoder)
    }
}
