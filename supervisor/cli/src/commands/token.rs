//! `shoal token`: bearer tokens, through the kernel when one runs, else in the state directory. The secret is printed
//! once, alone on stdout.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::args::Token;
use crate::context::{Context, items, text};
use crate::fail::Fail;
use crate::records::Records;
use crate::{escape, out};

/// Carries out the action.
pub(crate) fn run(context: &Context, action: Token) -> Result<ExitCode, Fail> {
    let (method, params) = match &action {
        Token::Create { principal, profile, cap, ttl } => {
            let mut params = json!({"principal": principal, "profile": profile, "caps": cap});
            if let Some(ttl) = ttl {
                params["ttl_s"] = json!(ttl);
            }
            ("token.create", params)
        }
        Token::List => ("token.list", json!({})),
        Token::Revoke { id } => ("token.revoke", json!({"id": id})),
    };
    let result = ask(context, method, &params)?;
    match action {
        _ if context.json => out::json(&result)?,
        Token::Create { .. } => {
            out::line(&text(&result, "token"))?;
            out::note(&format!("created {} (secret shown once)", text(&result, "id")));
        }
        Token::List => listing(&result)?,
        Token::Revoke { id } => out::line(&format!("revoked {id}"))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes a token; its secret is in `token`.
pub(crate) fn create(context: &Context, params: &Value) -> Result<Value, Fail> {
    ask(context, "token.create", params)
}

fn ask(context: &Context, method: &str, params: &Value) -> Result<Value, Fail> {
    context.block_on(async {
        // A token can be made before the first kernel is started.
        let records =
            if method == "token.create" { Records::make(context).await } else { Records::find(context).await };
        records?.ask(method, params.clone()).await
    })
}

fn listing(result: &Value) -> Result<(), Fail> {
    for token in items(result, "tokens") {
        let cells = ["id", "principal", "profile", "state"].map(|member| escape::line(&text(token, member)));
        out::line(&cells.join("\t"))?;
    }
    Ok(())
}
