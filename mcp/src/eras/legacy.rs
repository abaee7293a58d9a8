//! 2025-06-18 and 2025-11-25: a handshake, and nothing added to results.

use serde_json::{Map, Value, json};

use super::{capabilities, server_info};
use crate::instructions::INSTRUCTIONS;

/// The version a handshake settled on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// 2025-06-18, and the answer to every version that is not known.
    June2025,
    /// 2025-11-25.
    November2025,
}

impl Version {
    fn text(self) -> &'static str {
        match self {
            Version::June2025 => "2025-06-18",
            Version::November2025 => "2025-11-25",
        }
    }

    /// The version to answer a request for `asked` with.
    pub(crate) fn for_request(asked: Option<&Value>) -> Version {
        match asked.and_then(Value::as_str) {
            Some("2025-11-25") => Version::November2025,
            _ => Version::June2025,
        }
    }
}

/// Result of `initialize`.
pub(crate) fn initialize(version: Version) -> Map<String, Value> {
    Map::from_iter([
        ("protocolVersion".to_owned(), json!(version.text())),
        ("capabilities".to_owned(), capabilities()),
        ("serverInfo".to_owned(), server_info()),
        ("instructions".to_owned(), json!(INSTRUCTIONS)),
    ])
}
