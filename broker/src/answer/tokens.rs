//! Token administration, and the token file: read at start and when it changed, replaced whole.
#![allow(clippy::disallowed_methods, reason = "the broker owns the token file of the state directory")]

use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use shoal_wire::error::Reason;
use shoal_wire::params::Empty;
use shoal_wire::params::admin::{TokenCreate, TokenRevoke};
use shoal_wire::{RpcError, params};

use super::Params;
use crate::broker::{Broker, or_refuse};
use crate::clients::{Ask, Attachment};
use crate::tokens::{SECRET, Stamp, TokenFile, Tokens, mint};

/// Name of the file in the state directory.
const FILE: &str = "tokens.json";

/// Random bytes of the OS.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes)
}

/// The tokens of a state directory; a store without tokens when there is no file yet.
pub(crate) fn load(dir: &Path) -> io::Result<Tokens> {
    let path = dir.join(FILE);
    let stamp = stamp(dir);
    let file = match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| bad(&error.to_string()))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            TokenFile { version: 1, key: STANDARD.encode(random::<SECRET>()?), tokens: Vec::new() }
        }
        Err(error) => return Err(error),
    };
    let mut tokens = Tokens::of(file).map_err(bad)?;
    tokens.stamp = stamp;
    Ok(tokens)
}

fn stamp(dir: &Path) -> Stamp {
    std::fs::metadata(dir.join(FILE)).map(|file| (file.ino(), file.ctime(), file.ctime_nsec())).unwrap_or_default()
}

fn bad(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{FILE}: {why}"))
}

/// Replaces the file: beside its place, synced, renamed.
fn store(dir: &Path, file: &TokenFile) -> io::Result<()> {
    let beside = dir.join(format!("{FILE}.new"));
    let mut out = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    out.write_all(&serde_json::to_vec(file)?)?;
    out.sync_all()?;
    std::fs::rename(&beside, dir.join(FILE))?;
    std::fs::File::open(dir)?.sync_all()
}

impl Broker {
    fn replace_tokens(&mut self, file: TokenFile) -> Result<(), RpcError> {
        store(self.journal.dir(), &file).map_err(|error| RpcError::internal(format!("{FILE}: {error}")))?;
        self.tokens = Tokens::of(file).map_err(RpcError::internal)?;
        self.tokens.stamp = stamp(self.journal.dir());
        Ok(())
    }

    /// Reads the file again when it changed. One that cannot be used leaves the tokens that were in force.
    pub(crate) fn refresh_tokens(&mut self) {
        if !self.tokens.is_kept() || self.tokens.stamp == stamp(self.journal.dir()) {
            return;
        }
        match load(self.journal.dir()) {
            Ok(tokens) => self.tokens = tokens,
            Err(error) => {
                self.tokens.stamp = stamp(self.journal.dir());
                crate::log::line(format_args!("tokens not read again: {error}"));
            }
        }
    }

    /// `token.create`.
    pub(super) fn answer_token_create(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<TokenCreate>(text));
        let mut file = or_refuse!(self, ask, self.tokens.file().cloned());
        let secret = or_refuse!(self, ask, random::<SECRET>().map_err(|e| RpcError::internal(e.to_string())));
        let bearer = URL_SAFE_NO_PAD.encode(secret);
        let mut token = mint(self.tokens.key(), &bearer, &wanted.principal.0, self.now.ns);
        token.profile = wanted.profile.map_or("default".to_owned(), |profile| profile.into_string());
        token.caps = wanted.caps.into_iter().map(|cap| cap.into_string()).collect();
        let ttl_ns = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000_000);
        token.expires_ns = wanted.ttl_s.map(|ttl| self.now.ns.saturating_add(ttl_ns(ttl.unsigned())));
        file.tokens.push(token.clone());
        or_refuse!(self, ask, self.replace_tokens(file));
        let body = json!({"id": token.id, "token": bearer, "principal": token.principal, "profile": token.profile,
            "caps": token.caps, "created_ns": token.created_ns, "expires_ns": token.expires_ns});
        let arguments = json!({"id": token.id, "principal": token.principal, "profile": token.profile,
            "caps": token.caps, "expires_ns": token.expires_ns});
        self.answer_recorded(ask, &caller.principal, "token.create", arguments, body.to_string());
    }

    /// `token.list`.
    pub(super) fn token_list(&mut self, text: Params<'_>) -> Result<String, RpcError> {
        params::decode::<Empty>(text)?;
        let now = self.now.ns;
        let tokens: Vec<Value> = self
            .tokens
            .file()?
            .tokens
            .iter()
            .map(|t| {
                json!({"id": t.id, "principal": t.principal, "profile": t.profile, "caps": t.caps,
                "created_ns": t.created_ns, "expires_ns": t.expires_ns, "revoked_ns": t.revoked_ns,
                "state": t.state(now)})
            })
            .collect();
        Ok(json!({"tokens": tokens}).to_string())
    }

    /// `token.revoke`.
    pub(super) fn answer_token_revoke(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<TokenRevoke>(text));
        let mut file = or_refuse!(self, ask, self.tokens.file().cloned());
        let now = self.now.ns;
        let Some(token) = file.tokens.iter_mut().find(|token| token.id == wanted.id) else {
            let error = RpcError::invalid("id", Reason::UnknownToken, "no token has this id");
            return self.reply(ask, Err(error));
        };
        let revoked = *token.revoked_ns.get_or_insert(now);
        or_refuse!(self, ask, self.replace_tokens(file));
        let body = json!({"id": wanted.id, "revoked_ns": revoked});
        self.answer_recorded(ask, &caller.principal, "token.revoke", json!({"id": wanted.id}), body.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_read_as_it_was_written_and_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().expect("a directory");
        let mut file = load(dir.path()).expect("no file is an empty store").file().expect("a store").clone();
        let tokens = Tokens::of(file.clone()).expect("good");
        file.tokens.push(mint(tokens.key(), "bearer", "agent:x", 1));
        store(dir.path(), &file).expect("written");
        let again = load(dir.path()).expect("read");
        assert_eq!(again.find("bearer", 2).map(|token| token.principal.as_str()), Ok("agent:x"));
        let mode = std::fs::metadata(dir.path().join(FILE)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(dir.path().join(FILE), "{").expect("written");
        assert!(load(dir.path()).is_err());
    }
}
