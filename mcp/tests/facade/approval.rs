//! Asking the person at the client.

use serde_json::{Value, json};

use crate::client::Facade;
use crate::kernel::{Kernel, Say};

const PLAN: &str = "plan:9b1f6c0e4d7a4c33a1e05b7d2f8890ce";

fn kernel(approve: &'static str) -> Kernel {
    Kernel::start_as(approve, |method, params| match method {
        "plan.get" => Say::Result(
            json!({"plan_ref":PLAN,"state":"pending","src":"sh ./s.sh","cwd":{"display":"/srv/site"},"effects":[{"kind":"opaque"}]}),
        ),
        "approval.decide" => {
            Say::Result(json!({"plan_ref":params["plan_ref"],"state":"approved","decided_by":"client:tester"}))
        }
        "cap.request" => {
            Say::Result(json!({"grant":"approval_pending","plan_ref":PLAN,"why":"filed","uncovered_effects":[]}))
        }
        _ => Say::Error(
            json!({"code":-32011,"message":"approval required","data":{"plan_ref":PLAN,"effects":[{"kind":"opaque"}]}}),
        ),
    })
}

fn facade(kernel: &Kernel, capabilities: Value) -> Facade {
    let mut facade = Facade::start(kernel, &[]);
    facade.speak_modern(capabilities);
    facade
}

fn request() -> Value {
    json!({"name":"shoal_cap_request","arguments":{"plan_ref":PLAN}})
}

fn answered(state: &Value, answer: Value) -> Value {
    let mut again = request();
    again["requestState"] = state.clone();
    again["inputResponses"] = json!({ "approve": answer });
    again
}

#[test]
fn an_accepted_question_decides_once() {
    let kernel = kernel("client");
    let mut facade = facade(&kernel, json!({"elicitation":{}}));
    let question = facade.result("tools/call", request());
    assert_eq!(question["resultType"], "input_required");
    assert!(question.get("content").is_none() && question.get("ttlMs").is_none());
    let form = &question["inputRequests"]["approve"];
    assert_eq!((&form["method"], &form["params"]["mode"]), (&json!("elicitation/create"), &json!("form")));
    assert_eq!(
        form["params"]["message"],
        "Let agent:docs run `sh ./s.sh` in /srv/site? Effects: opaque (effects unknown)"
    );
    let yes = json!({"action":"accept","content":{"ok":true}});
    let decided = facade.result("tools/call", answered(&question["requestState"], yes.clone()));
    assert_eq!(decided["structuredContent"]["decided_by"], "client:tester");
    assert_eq!(kernel.request("approval.decide").1, json!({"plan_ref":PLAN,"decision":"approve","via":"elicitation"}));
    kernel.request("cap.request");
    let again = facade.result("tools/call", answered(&question["requestState"], yes.clone()));
    assert_eq!(again["structuredContent"]["summary"]["status"], "pending");
    facade.result("tools/call", answered(&json!("Zm9yZ2Vk"), yes));
    // Neither the used nor the forged state decided anything: what follows the grants is another grant.
    kernel.request("cap.request");
    assert_eq!(kernel.request("cap.request").1["plan_ref"], PLAN);
}

#[test]
fn a_declined_question_decides_nothing() {
    let kernel = kernel("client");
    let mut facade = facade(&kernel, json!({"elicitation":{"form":{}}}));
    for answer in [json!({"action":"decline"}), json!({"action":"accept","content":{"ok":false}}), json!(null)] {
        let question = facade.result("tools/call", request());
        let result = facade.result("tools/call", answered(&question["requestState"], answer));
        assert_eq!(result["structuredContent"]["grant"], "approval_pending");
    }
}

#[test]
fn nobody_is_asked_elsewhere() {
    let form = json!({"elicitation":{}});
    for (approve, capabilities) in
        [("human", &form), ("self", &form), ("client", &json!({})), ("client", &json!({"elicitation":{"url":{}}}))]
    {
        let kernel = kernel(approve);
        let mut facade = facade(&kernel, capabilities.clone());
        let result = facade.result("tools/call", request());
        assert_eq!(result["structuredContent"]["grant"], "approval_pending", "{approve} {capabilities}");
        assert_eq!(result["resultType"], "complete");
    }
    let kernel = kernel("client");
    let mut legacy = Facade::legacy(&kernel, "2025-11-25");
    assert_eq!(legacy.result("tools/call", request())["structuredContent"]["grant"], "approval_pending");
}

#[test]
fn applying_asks_too_and_else_says_what_to_do() {
    let kernel = kernel("client");
    let mut asking = facade(&kernel, json!({"elicitation":{}}));
    let apply = json!({"name":"shoal_apply","arguments":{"plan_ref":PLAN}});
    assert_eq!(asking.result("tools/call", apply.clone())["resultType"], "input_required");
    let mut silent = facade(&kernel, json!({}));
    let refused = silent.result("tools/call", apply);
    assert_eq!(refused["structuredContent"]["code"], -32011);
    assert_eq!(refused["structuredContent"]["summary"]["next"][0], format!("shoal_cap_request plan_ref={PLAN}"));
}
