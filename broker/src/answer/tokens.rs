//! Token administration.

use serde_json::{Value, json};
use shoal_journal::{NewToken, TokenFile};
use shoal_wire::error::Reason;
use shoal_wire::params::Empty;
use shoal_wire::params::admin::{TokenCreate, TokenRevoke};
use shoal_wire::{RpcError, params};

use super::Params;
use crate::broker::{Broker, or_refuse};
use crate::clients::{Ask, Attachment};

/// Random bytes of the OS.
pub(crate) fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(bytes)
}

impl Broker {
    fn replace_tokens(&mut self, file: TokenFile) -> Result<(), RpcError> {
        self.tokens.replace(self.journal.dir(), file).map_err(|error| RpcError::internal(format!("tokens: {error}")))
    }

    /// Reads the file again when it changed.
    pub(crate) fn refresh_tokens(&mut self) {
        self.tokens.refresh(self.journal.dir());
    }

    /// `token.create`.
    pub(super) fn answer_token_create(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<TokenCreate>(text));
        let mut file = or_refuse!(self, ask, self.tokens.file().cloned());
        let new = NewToken {
            principal: wanted.principal.0,
            profile: wanted.profile.map_or("default".to_owned(), |profile| profile.into_string()),
            caps: wanted.caps.into_iter().map(|cap| cap.into_string()).collect(),
            ttl_s: wanted.ttl_s.map(|ttl| ttl.unsigned()),
        };
        let made = file.create(new, self.now.ns).map_err(|error| RpcError::internal(error.to_string()));
        let (token, bearer) = or_refuse!(self, ask, made);
        or_refuse!(self, ask, self.replace_tokens(file));
        let (body, arguments) = (token.created(&bearer), token.arguments());
        self.answer_recorded(ask, &caller.principal, "token.create", arguments, body.to_string());
    }

    /// `token.list`.
    pub(super) fn token_list(&mut self, text: Params<'_>) -> Result<String, RpcError> {
        params::decode::<Empty>(text)?;
        let now = self.now.ns;
        let tokens: Vec<Value> = self.tokens.file()?.tokens().iter().map(|token| token.to_wire(now)).collect();
        Ok(json!({"tokens": tokens}).to_string())
    }

    /// `token.revoke`.
    pub(super) fn answer_token_revoke(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<TokenRevoke>(text));
        let mut file = or_refuse!(self, ask, self.tokens.file().cloned());
        let now = self.now.ns;
        let Some(revoked) = file.revoke(&wanted.id, now) else {
            let error = RpcError::invalid("id", Reason::UnknownToken, "no token has this id");
            return self.reply(ask, Err(error));
        };
        or_refuse!(self, ask, self.replace_tokens(file));
        let body = json!({"id": wanted.id, "revoked_ns": revoked});
        self.answer_recorded(ask, &caller.principal, "token.revoke", json!({"id": wanted.id}), body.to_string());
    }
}
