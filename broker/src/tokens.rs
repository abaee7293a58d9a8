//! Bearer tokens: what the file holds, who a bearer is, and why one is no longer good. Reading and writing the file is
//! `answer/tokens.rs`.

use serde::{Deserialize, Serialize};
use shoal_wire::RpcError;

/// Random bytes of a bearer, and of the store's key.
pub(crate) const SECRET: usize = 32;

/// A token as it is stored: never the bearer itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Token {
    /// First eight bytes of the digest in hex.
    pub(crate) id: String,
    /// Who its bearer is.
    pub(crate) principal: String,
    /// Label.
    pub(crate) profile: String,
    /// Labels echoed at attach.
    pub(crate) caps: Vec<String>,
    /// When it was made, ns.
    pub(crate) created_ns: i64,
    /// Until when it is good.
    pub(crate) expires_ns: Option<i64>,
    /// When it was revoked.
    pub(crate) revoked_ns: Option<i64>,
    /// Keyed BLAKE3 of the bearer, hex.
    pub(crate) digest: String,
}

/// The file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TokenFile {
    /// 1.
    pub(crate) version: u32,
    /// Base64 of the key.
    pub(crate) key: String,
    /// All tokens ever made.
    pub(crate) tokens: Vec<Token>,
}

/// The tokens in force, or none at all for an ephemeral kernel.
#[derive(Debug)]
pub(crate) struct Tokens {
    file: Option<TokenFile>,
    key: [u8; SECRET],
    /// Tells the file that was read from a later one.
    pub(crate) stamp: Stamp,
}

/// Inode and change time of a file; all zero when there is none.
pub(crate) type Stamp = (u64, i64, i64);

impl Token {
    /// `active`, `expired` or `revoked`.
    pub(crate) fn state(&self, now_ns: i64) -> &'static str {
        match (self.revoked_ns, self.expires_ns) {
            (Some(_), _) => "revoked",
            (None, Some(expires)) if expires <= now_ns => "expired",
            (None, _) => "active",
        }
    }
}

/// Keyed digest of a bearer.
pub(crate) fn digest(key: &[u8; SECRET], bearer: &str) -> blake3::Hash {
    blake3::keyed_hash(key, bearer.as_bytes())
}

/// A new token for a bearer.
pub(crate) fn mint(key: &[u8; SECRET], bearer: &str, principal: &str, now_ns: i64) -> Token {
    let digest = digest(key, bearer).to_hex().to_string();
    Token {
        id: digest.get(..16).unwrap_or_default().to_owned(),
        principal: principal.to_owned(),
        profile: "default".to_owned(),
        caps: Vec::new(),
        created_ns: now_ns,
        expires_ns: None,
        revoked_ns: None,
        digest,
    }
}

impl Tokens {
    /// Without a store: an ephemeral kernel.
    pub(crate) fn none() -> Self {
        Self { file: None, key: [0; SECRET], stamp: Stamp::default() }
    }

    /// The tokens of a file; says what is wrong with one that cannot be used.
    pub(crate) fn of(file: TokenFile) -> Result<Self, &'static str> {
        use base64::Engine as _;
        if file.version != 1 {
            return Err("its version is not 1");
        }
        let key = base64::engine::general_purpose::STANDARD.decode(&file.key).map_err(|_| "its key is not base64")?;
        let key = key.try_into().map_err(|_| "its key has not 32 bytes")?;
        Ok(Self { file: Some(file), key, stamp: Stamp::default() })
    }

    /// The file in force.
    pub(crate) fn file(&self) -> Result<&TokenFile, RpcError> {
        let message = "an ephemeral kernel keeps no tokens";
        self.file.as_ref().ok_or_else(|| RpcError::auth_failed("no_token_store", message))
    }

    /// Whether there is a store at all.
    pub(crate) fn is_kept(&self) -> bool {
        self.file.is_some()
    }

    /// The store's key.
    pub(crate) fn key(&self) -> &[u8; SECRET] {
        &self.key
    }

    /// The token of a bearer, if it is good now.
    pub(crate) fn find(&self, bearer: &str, now_ns: i64) -> Result<&Token, RpcError> {
        let wanted = digest(&self.key, bearer);
        // `blake3::Hash` compares in constant time; every token is looked at.
        let mut found = None;
        for token in &self.file()?.tokens {
            if blake3::Hash::from_hex(&token.digest).is_ok_and(|digest| digest == wanted) {
                found = Some(token);
            }
        }
        let token = found.ok_or_else(|| RpcError::auth_failed("invalid", "this token is not known"))?;
        match fault_of(token, now_ns) {
            Some(error) => Err(error),
            None => Ok(token),
        }
    }

    /// Why a token that attached a connection is no longer good.
    pub(crate) fn fault(&self, id: &str, now_ns: i64) -> Option<RpcError> {
        let token = self.file.as_ref().and_then(|file| file.tokens.iter().find(|token| token.id == id));
        match token {
            Some(token) => fault_of(token, now_ns),
            None => Some(RpcError::auth_failed("invalid", "this token is not known any more")),
        }
    }
}

fn fault_of(token: &Token, now_ns: i64) -> Option<RpcError> {
    match token.state(now_ns) {
        "active" => None,
        state => Some(RpcError::auth_failed(state, format!("this token is {state}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(tokens: Vec<Token>) -> Tokens {
        let key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".to_owned();
        Tokens::of(TokenFile { version: 1, key, tokens }).expect("good")
    }

    fn reason(result: Result<&Token, RpcError>) -> String {
        result.expect_err("refused").reason().expect("a reason").to_owned()
    }

    #[test]
    fn digests_are_those_of_the_protocol() {
        let bearer = "A".repeat(43);
        let digest = digest(&[0; 32], &bearer).to_hex();
        assert_eq!(digest.as_str(), "ada0cf6171d78354173a2ff03ed2d2b63139255922fee84e70745ad25794a021");
        assert_eq!(mint(&[0; 32], &bearer, "agent:x", 5).id, "ada0cf6171d78354");
    }

    #[test]
    fn a_bearer_is_good_until_it_is_not() {
        let good = mint(&[0; 32], "good", "agent:x", 5);
        let old = Token { expires_ns: Some(10), ..mint(&[0; 32], "old", "agent:x", 5) };
        let gone = Token { revoked_ns: Some(9), ..mint(&[0; 32], "gone", "agent:x", 5) };
        let tokens = store(vec![good.clone(), old, gone]);
        assert_eq!(tokens.find("good", 10), Ok(&good));
        assert!(tokens.find("old", 9).is_ok());
        assert_eq!(reason(tokens.find("old", 10)), "expired");
        assert_eq!(reason(tokens.find("gone", 10)), "revoked");
        assert_eq!(reason(tokens.find("other", 10)), "invalid");
        assert_eq!(reason(Tokens::none().find("good", 10)), "no_token_store");
    }
}
