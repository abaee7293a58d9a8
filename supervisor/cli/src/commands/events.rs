//! `shoal events tail`: one JSON object per event, until interrupted.

use std::process::ExitCode;

use serde_json::json;

use crate::args::Events;
use crate::context::Context;
use crate::fail::Fail;
use crate::{escape, out};

/// Prints events until the connection or the reader ends.
pub(crate) fn run(context: &Context, action: Events) -> Result<ExitCode, Fail> {
    let Events::Tail { channel, owner, since } = action;
    context.block_on(async {
        let (connection, _) = context.administer().await?;
        let (_, mut subscription) = connection.subscribe(&channel, since, owner.as_deref()).await?;
        let mut seen = since;
        while let Some(event) = subscription.next().await {
            let dropped = subscription.dropped();
            if dropped > 0 {
                out::note(&format!("shoal: {dropped} events were dropped after {seen:?}; read them with --since"));
            }
            seen = Some(event.seq);
            let mut line =
                json!({"channel": event.channel, "seq": event.seq, "ts": event.ts, "payload": event.payload});
            if let Some(owner) = &event.owner {
                line["owner"] = json!(owner);
            }
            out::line(&escape::json(&line.to_string()))?;
        }
        Err(Fail::Said("the connection to the kernel was lost; go on with --since".to_owned()))
    })
}
