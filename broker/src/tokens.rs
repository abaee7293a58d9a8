//! Bearer tokens in force: who a bearer is, and why one is no longer good. The file is the journal crate's.

use std::io;
use std::path::Path;

use shoal_journal::{Token, TokenFile, TokenStamp};
use shoal_wire::RpcError;

/// The tokens in force, or none at all for an ephemeral kernel.
#[derive(Debug)]
pub(crate) struct Tokens {
    file: Option<TokenFile>,
    stamp: TokenStamp,
}

impl Tokens {
    /// Without a store: an ephemeral kernel.
    pub(crate) fn none() -> Self {
        Self { file: None, stamp: TokenStamp::default() }
    }

    /// The tokens of a state directory.
    pub(crate) fn load(dir: &Path) -> io::Result<Self> {
        // The stamp is taken first: a file that is replaced meanwhile is read again.
        let stamp = TokenFile::stamp(dir);
        Ok(Self { file: Some(TokenFile::read(dir)?), stamp })
    }

    /// Reads the file again when it changed. One that cannot be used leaves the tokens that were in force.
    pub(crate) fn refresh(&mut self, dir: &Path) {
        let stamp = TokenFile::stamp(dir);
        if self.file.is_none() || self.stamp == stamp {
            return;
        }
        match Self::load(dir) {
            Ok(tokens) => *self = tokens,
            Err(error) => {
                self.stamp = stamp;
                crate::log::line(format_args!("tokens not read again: {error}"));
            }
        }
    }

    /// Puts another file in force, on the disk first.
    pub(crate) fn replace(&mut self, dir: &Path, file: TokenFile) -> io::Result<()> {
        file.replace(dir)?;
        *self = Self { file: Some(file), stamp: TokenFile::stamp(dir) };
        Ok(())
    }

    /// The file in force.
    pub(crate) fn file(&self) -> Result<&TokenFile, RpcError> {
        let message = "an ephemeral kernel keeps no tokens";
        self.file.as_ref().ok_or_else(|| RpcError::auth_failed("no_token_store", message))
    }

    /// The token of a bearer, if it is good now.
    pub(crate) fn find(&self, bearer: &str, now_ns: i64) -> Result<&Token, RpcError> {
        let unknown = || RpcError::auth_failed("invalid", "this token is not known");
        let token = self.file()?.of_bearer(bearer).ok_or_else(unknown)?;
        fault_of(token, now_ns).map_or(Ok(token), Err)
    }

    /// Why a token that attached a connection is no longer good.
    pub(crate) fn fault(&self, id: &str, now_ns: i64) -> Option<RpcError> {
        let token = self.file.as_ref().and_then(|file| file.tokens().iter().find(|token| token.id == id));
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
    use shoal_journal::NewToken;

    fn reason(result: Result<&Token, RpcError>) -> String {
        result.expect_err("refused").reason().expect("a reason").to_owned()
    }

    #[test]
    fn a_bearer_is_good_until_it_is_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut tokens = Tokens::load(dir.path()).expect("no file is an empty one");
        let mut file = tokens.file().expect("a store").clone();
        let new = |ttl_s| NewToken { principal: "agent:x".into(), profile: "p".into(), caps: Vec::new(), ttl_s };
        let (good, bearer) = file.create(new(None), 5).expect("made");
        let (_, old) = file.create(new(Some(1)), 5).expect("made");
        let (gone, revoked) = file.create(new(None), 5).expect("made");
        file.revoke(&gone.id, 9);
        tokens.replace(dir.path(), file.clone()).expect("written");
        assert_eq!(tokens.find(&bearer, 10), Ok(&good));
        assert!(tokens.find(&old, 10).is_ok());
        assert_eq!(reason(tokens.find(&old, 1_000_000_005)), "expired");
        assert_eq!(reason(tokens.find(&revoked, 10)), "revoked");
        assert_eq!(reason(tokens.find("other", 10)), "invalid");
        assert_eq!(reason(Tokens::none().find(&bearer, 10)), "no_token_store");

        // Another process revokes it; the file it leaves counts from then on, one that is broken does not.
        file.revoke(&good.id, 11);
        file.replace(dir.path()).expect("written");
        tokens.refresh(dir.path());
        assert_eq!(
            tokens.fault(&good.id, 12).and_then(|error| error.reason().map(str::to_owned)),
            Some("revoked".into())
        );
    }
}
