//! Subscriptions of both eras, and what a lost kernel does to them.

use serde_json::{Value, json};

use crate::client::Facade;
use crate::kernel::{Kernel, Say};

const UPDATED: &str = "notifications/resources/updated";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const ID: &str = "io.modelcontextprotocol/subscriptionId";

fn kernel() -> Kernel {
    Kernel::start(|_, _| Say::Error(json!({"code":-32601,"message":"method not found"})))
}

#[test]
fn legacy_updates_carry_their_event_and_stop() {
    let kernel = kernel();
    let mut facade = Facade::legacy(&kernel, "2025-06-18");
    let uri = json!({"uri":"shoal://events/user.z"});
    assert_eq!(facade.result("resources/subscribe", uri.clone()), json!({}));
    assert_eq!(facade.result("resources/subscribe", uri.clone()), json!({}));
    kernel.event("user.z", 5, json!({"a":1}));
    assert_eq!(facade.notification(UPDATED), json!({"uri":"shoal://events/user.z","seq":5,"payload":{"a":1}}));
    assert_eq!(facade.result("resources/unsubscribe", uri.clone()), json!({}));
    assert_eq!(kernel.request("events.unsubscribe").1["channel"], "user.z");
    kernel.event("user.z", 6, json!({"a":2}));
    assert_eq!(facade.result("resources/unsubscribe", uri), json!({}));
    assert_eq!(facade.rest(), Vec::<Value>::new());
    assert_eq!(facade.error("resources/subscribe", json!({"uri":"shoal://out/1"}))["code"], -32602);
    assert_eq!(
        facade.result("resources/subscribe", json!({"uri":"memo://notes"})),
        json!({}),
        "not ours, never updated"
    );
}

#[test]
fn session_views_hear_only_of_themselves() {
    let kernel = kernel();
    let mut facade = Facade::legacy(&kernel, "2025-06-18");
    facade.result("resources/subscribe", json!({"uri":"shoal://session/cwd"}));
    facade.result("resources/subscribe", json!({"uri":"shoal://jobs"}));
    let changed = |what: &str| json!({"$":"record","v":{"action":{"$":"str","v":"changed"},"what":{"$":"list","v":[{"$":"str","v":what}]}}});
    kernel.event("session", 5, changed("env"));
    kernel.event("session", 6, changed("cwd"));
    kernel.event("session", 7, json!({"$":"record","v":{"action":{"$":"str","v":"task_started"}}}));
    let mut heard = [facade.notification(UPDATED), facade.notification(UPDATED)]
        .map(|params| (params["seq"].clone(), params["uri"].clone()));
    heard.sort_by_key(|(seq, _)| seq.as_u64());
    assert_eq!(heard, [(json!(6), json!("shoal://session/cwd")), (json!(7), json!("shoal://jobs"))]);
}

#[test]
fn listen_acknowledges_updates_and_ends_in_silence_when_cancelled() {
    let kernel = kernel();
    let mut facade = Facade::modern(&kernel);
    let asked = json!({"notifications":{"toolsListChanged":true,"resourceSubscriptions":["shoal://events/user.z","shoal://out/1"]}});
    let id = facade.request("subscriptions/listen", asked);
    let acknowledged = facade.notification(ACKNOWLEDGED);
    assert_eq!(
        acknowledged,
        json!({"notifications":{"resourceSubscriptions":["shoal://events/user.z"]},"_meta":{ID:id}})
    );
    kernel.event("user.z", 5, json!(1));
    assert_eq!(facade.notification(UPDATED), json!({"uri":"shoal://events/user.z","_meta":{ID:id}}));
    facade.notify("notifications/cancelled", json!({"requestId":id}));
    assert_eq!(kernel.request("events.unsubscribe").1["channel"], "user.z");
    kernel.event("user.z", 6, json!(1));
    assert_eq!(facade.rest(), Vec::<Value>::new());
}

#[test]
fn an_open_listen_ends_with_a_result_at_the_end_of_stdin() {
    let kernel = kernel();
    let mut facade = Facade::modern(&kernel);
    let asked = json!({"notifications":{"resourceSubscriptions":["shoal://events/user.z"]}});
    let id = facade.request("subscriptions/listen", asked);
    facade.notification(ACKNOWLEDGED);
    assert_eq!(facade.close().0, Some(0));
    let [answer] = &facade.remaining()[..] else { panic!("one answer") };
    assert_eq!((&answer["id"], &answer["result"]["_meta"][ID]), (&json!(id), &json!(id)));
    assert_eq!(answer["result"]["resultType"], "complete");
}

#[test]
fn a_lost_kernel_ends_listens_and_renews_subscriptions() {
    let kernel = kernel();
    let mut facade = Facade::start(&kernel, &[]);
    facade.initialize("2025-11-25");
    facade.result("resources/subscribe", json!({"uri":"shoal://events/user.z"}));
    facade.speak_modern(json!({}));
    let id =
        facade.request("subscriptions/listen", json!({"notifications":{"resourceSubscriptions":["shoal://journal"]}}));
    facade.notification(ACKNOWLEDGED);
    kernel.event("user.z", 7, json!(1));
    assert_eq!(facade.notification(UPDATED)["seq"], 7);
    kernel.drop_connections();
    assert_eq!(facade.answer(&json!(id))["result"]["_meta"][ID], id);
    let renewed = loop {
        let (_, params) = kernel.request("events.subscribe");
        if params["since"] == 7 {
            break params;
        }
    };
    assert_eq!(renewed["channel"], "user.z");
    assert_eq!(facade.notification(UPDATED), json!({"uri":"shoal://events/user.z"}));
    kernel.event("user.z", 7, json!("again"));
    kernel.event("user.z", 8, json!(2));
    let next = facade.notification(UPDATED);
    assert_eq!(next["seq"], 8, "{next}");
}

#[test]
fn events_that_come_faster_than_they_are_read_are_coalesced() {
    let kernel = kernel();
    let mut facade = Facade::modern(&kernel);
    facade
        .request("subscriptions/listen", json!({"notifications":{"resourceSubscriptions":["shoal://events/user.z"]}}));
    facade.notification(ACKNOWLEDGED);
    for seq in 5..505 {
        kernel.event("user.z", seq, json!("x".repeat(100)));
    }
    facade.notification(UPDATED);
    let updates = facade.rest().iter().filter(|frame| frame["method"] == UPDATED).count();
    assert!(updates < 500, "{updates}");
}

#[test]
fn without_a_kernel_a_subscription_fails() {
    let dir = tempfile::tempdir().unwrap();
    let mut facade = Facade::at(&dir.path().join("none.sock"), dir.path(), &[]);
    facade.initialize("2025-11-25");
    let error = facade.error("resources/subscribe", json!({"uri":"shoal://journal"}));
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32603), &json!("no_kernel")));
}
