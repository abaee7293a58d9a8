//! Blobs of the content store, read by way of the broker.

use serde_json::{Value as Json, json};
use shoal_proto::broker_worker::UpMethod;
use shoal_proto::launcher_worker::RunId;
use shoal_value::{ErrorValue, code};

use crate::broker_edge::BrokerEdge;
use crate::transcript::Blobs;

/// Bytes that come in one answer.
const MAX_PART: usize = 64 * 1024 * 1024;

impl BrokerEdge {
    /// Bytes of a blob from `offset` on, as many as one answer holds, and the blob's length; nothing if it is unknown.
    /// `run` is the execution that asks, 0 for none.
    pub(crate) fn blob(&self, run: RunId, hash: &str, offset: u64) -> Result<Option<(Vec<u8>, u64)>, ErrorValue> {
        match self.call(run, UpMethod::BlobGet, &json!({"hash": hash, "offset": offset}), None) {
            Ok((answer, Some(fd))) => {
                let told: Json = serde_json::from_slice(answer.body.as_slice()).unwrap_or_default();
                let bytes = shoal_sys::memfd::read_sealed(&fd, MAX_PART)
                    .map_err(|e| ErrorValue::new(code::IO_ERROR, format!("stored value: {e}")))?;
                Ok(Some((bytes, told["len"].as_u64().unwrap_or(0))))
            }
            Ok((_, None)) => Ok(None),
            Err(error) if *error.code == *code::NOT_FOUND => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Blobs for BrokerEdge {
    fn fetch(&self, hash: &str) -> Result<Vec<u8>, ErrorValue> {
        let gone = || ErrorValue::new(code::NOT_FOUND, "the stored result is gone");
        let (mut bytes, len) = self.blob(0, hash, 0)?.ok_or_else(gone)?;
        while (bytes.len() as u64) < len {
            let (part, _) =
                self.blob(0, hash, bytes.len() as u64)?.filter(|(part, _)| !part.is_empty()).ok_or_else(gone)?;
            bytes.extend(part);
        }
        Ok(bytes)
    }
}
