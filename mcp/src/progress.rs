//! Keeping a client awake while a run takes long.

use std::time::Duration;

use serde_json::{Value, json};
use shoal_wire::Method;
use tokio::time::{Instant, interval_at};

use crate::call::Call;
use crate::server::notification;
use crate::tools;

const EVERY: Duration = Duration::from_secs(5);

/// Tells the client every five seconds how long `src` has been running, for as long as the future is polled. Without
/// a progress token it stays silent.
pub(crate) async fn report(call: &Call, src: Option<&str>) -> std::convert::Infallible {
    let Some(token) = call.progress_token() else { return std::future::pending().await };
    let began = Instant::now();
    let mut ticks = interval_at(Instant::now() + EVERY, EVERY);
    loop {
        ticks.tick().await;
        let seconds = began.elapsed().as_secs();
        let message = match output_bytes(call, src).await {
            Some(bytes) => format!("running {seconds} s, {bytes} bytes of output"),
            None => format!("running {seconds} s"),
        };
        let params = json!({ "progressToken": token, "progress": seconds, "message": message });
        if call.server.out.send(notification("notifications/progress", &params)).await.is_err() {
            return std::future::pending().await;
        }
    }
}

async fn output_bytes(call: &Call, src: Option<&str>) -> Option<u64> {
    let tasks = call.server.kernel.call(Method::TaskList, &json!({})).await.ok()?;
    let task = tools::running_task(&tasks, src?)?;
    let bytes = |name: &str| task.get(name).and_then(Value::as_u64).unwrap_or(0);
    Some(bytes("stdout_bytes").saturating_add(bytes("stderr_bytes")))
}
