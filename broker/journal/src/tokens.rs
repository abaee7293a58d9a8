//! The token file of a state directory: read whole, replaced whole. It never holds a bearer.

use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};

/// Random bytes of a bearer, and of the store's key.
const SECRET: usize = 32;
/// Name of the file in the state directory.
const FILE: &str = "tokens.json";

/// A token as it is stored: never the bearer itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// First eight bytes of the digest in hex.
    pub id: String,
    /// Who its bearer is.
    pub principal: String,
    /// Label.
    pub profile: String,
    /// Labels echoed at attach.
    pub caps: Vec<String>,
    /// When it was made, ns.
    pub created_ns: i64,
    /// Until when it is good.
    pub expires_ns: Option<i64>,
    /// When it was revoked.
    pub revoked_ns: Option<i64>,
    /// Keyed BLAKE3 of the bearer, hex.
    pub digest: String,
}

/// What a new token is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// Who its bearer will be.
    pub principal: String,
    /// Label.
    pub profile: String,
    /// Labels echoed at attach.
    pub caps: Vec<String>,
    /// Seconds it lives; without end when absent.
    pub ttl_s: Option<u64>,
}

/// The file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenFile {
    version: u32,
    key: String,
    tokens: Vec<Token>,
}

/// Inode and change time of the file; all zero when there is none. Tells a file that was read from a later one.
pub type TokenStamp = (u64, i64, i64);

impl Token {
    /// `active`, `expired` or `revoked`.
    pub fn state(&self, now_ns: i64) -> &'static str {
        match (self.revoked_ns, self.expires_ns) {
            (Some(_), _) => "revoked",
            (None, Some(expires)) if expires <= now_ns => "expired",
            (None, _) => "active",
        }
    }
}

impl TokenFile {
    /// The file of a state directory; without tokens and with a fresh key when there is none. An error says what is wrong
    /// with a file that cannot be used.
    pub fn read(dir: &Path) -> io::Result<Self> {
        let bytes = match std::fs::read(dir.join(FILE)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { version: 1, key: STANDARD.encode(random()?), tokens: Vec::new() });
            }
            Err(error) => return Err(error),
        };
        let file: Self = serde_json::from_slice(&bytes).map_err(|error| bad(&error.to_string()))?;
        if file.version != 1 {
            return Err(bad("its version is not 1"));
        }
        file.key()?;
        Ok(file)
    }

    /// Which file lies there now.
    pub fn stamp(dir: &Path) -> TokenStamp {
        std::fs::metadata(dir.join(FILE)).map(|file| (file.ino(), file.ctime(), file.ctime_nsec())).unwrap_or_default()
    }

    /// Replaces the file of a state directory: beside its place, synced, renamed.
    pub fn replace(&self, dir: &Path) -> io::Result<()> {
        let beside = dir.join(format!("{FILE}.new"));
        let mut out = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        out.write_all(&serde_json::to_vec(self)?)?;
        out.sync_all()?;
        std::fs::rename(&beside, dir.join(FILE))?;
        std::fs::File::open(dir)?.sync_all()
    }

    /// All tokens ever made.
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Makes a token. The bearer is returned once and kept nowhere.
    pub fn create(&mut self, new: NewToken, now_ns: i64) -> io::Result<(Token, String)> {
        let bearer = URL_SAFE_NO_PAD.encode(random()?);
        let digest = digest(&self.key()?, &bearer).to_hex().to_string();
        let ttl_ns = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000_000);
        let token = Token {
            id: digest.get(..16).unwrap_or_default().to_owned(),
            principal: new.principal,
            profile: new.profile,
            caps: new.caps,
            created_ns: now_ns,
            expires_ns: new.ttl_s.map(|ttl| now_ns.saturating_add(ttl_ns(ttl))),
            revoked_ns: None,
            digest,
        };
        self.tokens.push(token.clone());
        Ok((token, bearer))
    }

    /// Makes a token void; since when it is, or `None` when there is no such token. The first revocation counts.
    pub fn revoke(&mut self, id: &str, now_ns: i64) -> Option<i64> {
        let token = self.tokens.iter_mut().find(|token| token.id == id)?;
        Some(*token.revoked_ns.get_or_insert(now_ns))
    }

    /// The token of a bearer, good or not. Every token is looked at, and digests are compared in constant time.
    pub fn of_bearer(&self, bearer: &str) -> Option<&Token> {
        let wanted = digest(&self.key().ok()?, bearer);
        let mut found = None;
        for token in &self.tokens {
            // `blake3::Hash` compares in constant time.
            if blake3::Hash::from_hex(&token.digest).is_ok_and(|digest| digest == wanted) {
                found = Some(token);
            }
        }
        found
    }

    fn key(&self) -> io::Result<[u8; SECRET]> {
        let key = STANDARD.decode(&self.key).map_err(|_| bad("its key is not base64"))?;
        key.try_into().map_err(|_| bad("its key has not 32 bytes"))
    }
}

fn bad(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{FILE}: {why}"))
}

fn random() -> io::Result<[u8; SECRET]> {
    let mut bytes = [0; SECRET];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Keyed digest of a bearer.
fn digest(key: &[u8; SECRET], bearer: &str) -> blake3::Hash {
    blake3::keyed_hash(key, bearer.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(principal: &str) -> NewToken {
        NewToken { principal: principal.into(), profile: "default".into(), caps: Vec::new(), ttl_s: None }
    }

    #[test]
    fn digests_are_those_of_the_protocol() {
        let digest = digest(&[0; 32], &"A".repeat(43)).to_hex();
        assert_eq!(digest.as_str(), "ada0cf6171d78354173a2ff03ed2d2b63139255922fee84e70745ad25794a021");
    }

    #[test]
    fn a_file_is_read_as_it_was_written_private_and_without_bearers() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().expect("a directory");
        let mut file = TokenFile::read(dir.path()).expect("no file is an empty one");
        let (token, bearer) = file.create(new("agent:x"), 5).expect("made");
        let (_, other) = file.create(NewToken { ttl_s: Some(1), ..new("agent:y") }, 5).expect("made");
        assert_eq!((bearer.len(), token.id.len()), (43, 16));
        file.replace(dir.path()).expect("written");
        let mut again = TokenFile::read(dir.path()).expect("read");
        assert_eq!(again, file);
        assert_eq!(again.of_bearer(&bearer), Some(&token));
        assert_eq!(again.of_bearer("no"), None);
        let states = |file: &TokenFile, now| file.tokens().iter().map(|t| t.state(now)).collect::<Vec<_>>();
        assert_eq!(states(&again, 6), ["active", "active"]);
        assert_eq!(states(&again, 1_000_000_005), ["active", "expired"]);
        assert_eq!((again.revoke(&token.id, 7), again.revoke(&token.id, 9)), (Some(7), Some(7)));
        assert_eq!(again.revoke("0000", 7), None);
        assert_eq!(states(&again, 8), ["revoked", "active"]);
        let path = dir.path().join(FILE);
        let text = std::fs::read_to_string(&path).expect("there");
        assert!(!text.contains(&bearer) && !text.contains(&other));
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        for broken in ["{", r#"{"version":2,"key":"","tokens":[]}"#, r#"{"version":1,"key":"AA==","tokens":[]}"#] {
            std::fs::write(&path, broken).expect("written");
            assert_eq!(TokenFile::read(dir.path()).expect_err(broken).kind(), io::ErrorKind::InvalidData);
        }
    }
}
