//! Keeping `structuredContent` small enough to be shown to a model.
//!
//! Common hosts show only that half of a result and move a larger one to a file. What is too large is fetched again
//! with a tighter budget; what still does not fit loses its preview, then its longest parts.

use serde_json::{Value, json};
use shoal_resources::bound::size;
use shoal_wire::Method;

use crate::kernel::Kernel;

/// Serialised `structuredContent` never passes this.
pub(crate) const STRUCTURED_BYTES: usize = 48 * 1024;
/// Kept free for the summary.
const SUMMARY_BYTES: usize = 6 * 1024;
/// What the kernel's result may take of it.
pub(crate) const BODY_BYTES: usize = STRUCTURED_BYTES - SUMMARY_BYTES;
/// Budgets of the attempts to fetch a value again.
const TIGHTER: [u64; 3] = [16_384, 4096, 512];
/// Bounds a result that holds a value; `again` are the parameters that fetch the value once more.
pub(crate) async fn fit_value(kernel: &Kernel, result: &mut Value, again: Option<Value>) {
    let without_render = |result: &Value| size(result).saturating_sub(result.get("render").map_or(0, size));
    if without_render(result) <= BODY_BYTES {
        return;
    }
    if let Some(mut again) = again {
        for max_bytes in TIGHTER {
            again["elide"] = json!({ "max_bytes": max_bytes });
            let Ok(mut fetched) = kernel.call(Method::ValueGet, &again).await else { break };
            result["value"] = fetched.get_mut("value").map(Value::take).unwrap_or(Value::Null);
            if without_render(result) <= BODY_BYTES {
                return;
            }
        }
    }
    for at in ["/value", "/value/out"] {
        if let Some(value) = result.pointer_mut(at).filter(|value| value["$"] == "ref") {
            value["preview"] = json!({ "$": "null" });
        }
    }
}
