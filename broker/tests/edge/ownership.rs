//! Ownership against a model: whatever several principals do, each sees its own rows, values, blobs, tasks, plans and events,
//! and what is somebody else's is unknown to it.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, json};
use shoal_proto::section::Approve;

use crate::client::Client;
use crate::kernel::{Kernel, asking};

/// The local user, and two agents.
const PRINCIPALS: [&str; 3] = ["", "agent:x", "agent:y"];
const SESSIONS: [&str; 2] = ["s", "t"];

#[derive(Clone, Debug)]
enum Op {
    Run(usize, usize),
    Start(usize, usize),
    Publish(usize, usize),
    Plan(usize, usize),
    /// The human works in an agent's session.
    Visit(usize, usize),
}

fn op() -> impl Strategy<Value = Op> {
    let (who, place) = (0..3usize, 0..2usize);
    prop_oneof![
        4 => (who.clone(), place.clone()).prop_map(|(who, place)| Op::Run(who, place)),
        2 => (who.clone(), place.clone()).prop_map(|(who, place)| Op::Start(who, place)),
        2 => (who.clone(), place.clone()).prop_map(|(who, place)| Op::Publish(who, place)),
        2 => (who, place.clone()).prop_map(|(who, place)| Op::Plan(who, place)),
        1 => (1..3usize, place).prop_map(|(who, place)| Op::Visit(who, place)),
    ]
}

/// What belongs to one principal in one session.
#[derive(Debug, Default)]
struct Owned {
    outs: u64,
    tasks: Vec<String>,
    plans: Vec<String>,
}

#[derive(Default)]
struct Model {
    owned: BTreeMap<(usize, usize), Owned>,
    /// Events of each principal's channel.
    published: [u64; 3],
    runs: u32,
}

fn attach(kernel: &Kernel, bearers: &[Value; 3], who: usize, place: usize) -> Client {
    let mut client = kernel.connect();
    let mut params = json!({"session": SESSIONS[place]});
    if !bearers[who].is_null() {
        params["token"] = bearers[who].clone();
    }
    client.ok("session.attach", params);
    client
}

fn act(
    kernel: &Kernel,
    bearers: &[Value; 3],
    clients: &mut BTreeMap<(usize, usize), Client>,
    model: &mut Model,
    op: &Op,
) {
    match *op {
        Op::Run(who, place) => {
            model.runs += 1;
            let src = format!("value {} {who} {place}", model.runs);
            let client = clients.entry((who, place)).or_insert_with(|| attach(kernel, bearers, who, place));
            let answer = client.ok("exec", json!({"src": src}));
            let owned = model.owned.entry((who, place)).or_default();
            owned.outs += 1;
            assert_eq!(answer["ref"], format!("out:{}", owned.outs));
        }
        Op::Start(who, place) => {
            let owned = model.owned.entry((who, place)).or_default();
            if owned.tasks.len() >= 8 {
                return;
            }
            let client = clients.entry((who, place)).or_insert_with(|| attach(kernel, bearers, who, place));
            let task = client.ok("exec", json!({"src": "hang", "async": true}))["task"].clone();
            owned.tasks.push(task.as_str().expect("a task").to_owned());
        }
        Op::Publish(who, place) => {
            let client = clients.entry((who, place)).or_insert_with(|| attach(kernel, bearers, who, place));
            let event = client.ok("events.publish", json!({"channel": "user.c", "payload": who}));
            assert_eq!(event["seq"], model.published[who], "every owner has numbers of its own");
            model.published[who] += 1;
        }
        Op::Plan(who, place) => {
            let client = clients.entry((who, place)).or_insert_with(|| attach(kernel, bearers, who, place));
            let plan = client.ok("exec", json!({"src": "opaque 1", "mode": "plan"}))["plan_ref"].clone();
            let owned = model.owned.entry((who, place)).or_default();
            owned.plans.push(plan.as_str().expect("a plan").to_owned());
        }
        Op::Visit(who, place) => {
            clients.entry((who, place)).or_insert_with(|| attach(kernel, bearers, who, place));
            let mut human = kernel.attach("visit");
            human.ok("session.attach", json!({"session": SESSIONS[place], "owner": PRINCIPALS[who]}));
            human.ok("exec", json!({"src": "value visited"}));
            model.owned.entry((who, place)).or_default().outs += 1;
        }
    }
}

/// Asks everything of everybody.
fn check(kernel: &Kernel, bearers: &[Value; 3], model: &Model) -> Result<(), TestCaseError> {
    let me = kernel.attach("s").ok("session.attach", json!({"session": "s"}))["owner"].clone();
    let name = |who: usize| if who == 0 { me.clone() } else { json!(PRINCIPALS[who]) };
    let all = kernel.attach("s").ok("journal.query", json!({"limit": 10_000}));
    let all = all.as_array().expect("rows");
    let mut references = BTreeSet::new();
    for owned in model.owned.values() {
        for plan in &owned.plans {
            prop_assert!(references.insert(plan), "two plans share {plan}");
        }
    }
    for who in 0..3 {
        let mut client = attach(kernel, bearers, who, 0);
        let rows = client.ok("journal.query", json!({"limit": 10_000}));
        let mine = |row: &&Value| row["owner"] == name(who) || row["principal"] == name(who);
        let expected: Vec<&Value> = all.iter().filter(|row| who == 0 || mine(row)).collect();
        let seen: Vec<&Value> = rows.as_array().expect("rows").iter().collect();
        // Looking leaves no row, so both are the same.
        prop_assert_eq!(ids(&seen), ids(&expected), "rows of {}", name(who));
        for output in all.iter().flat_map(|row| row["outputs"].as_array().into_iter().flatten()) {
            let hash = &output["hash"];
            let owns = expected.iter().any(|row| row["outputs"].to_string().contains(hash.as_str().unwrap_or("-")));
            let got = client.call("blob.get", json!({"hash": hash, "offset": 0, "length": 1}));
            prop_assert_eq!(got.is_ok(), owns, "blob {} for {}", hash, name(who));
        }
        for ((owner, place), owned) in &model.owned {
            for task in &owned.tasks {
                let got = client.call("task.get", json!({"task": task}));
                prop_assert_eq!(
                    got.is_ok(),
                    (who, 0) == (*owner, *place),
                    "{} of {} for {}",
                    task,
                    name(*owner),
                    name(who)
                );
            }
            for plan in &owned.plans {
                let got = client.call("plan.get", json!({"plan_ref": plan}));
                let may = who == 0 || (who, 0) == (*owner, *place);
                prop_assert_eq!(got.is_ok(), may);
                if let Err(error) = got {
                    prop_assert_eq!(&error["data"]["reason"], &json!("foreign_plan"));
                }
            }
        }
        let outs = model.owned.get(&(who, 0)).map_or(0, |owned| owned.outs);
        let beyond = client.call("value.get", json!({"ref": format!("out:{}", outs + 1)}));
        prop_assert_eq!(beyond.map_err(|error| error["code"].clone()), Err(json!(-32004)));
        let page = client.ok("events.read", json!({"channel": "user.c"}));
        prop_assert_eq!(&page["page"]["returned"], &json!(model.published[who]));
        for other in (0..3).filter(|other| *other != who) {
            let read = client.call("events.read", json!({"channel": "user.c", "owner": name(other)}));
            match (who, read) {
                (0, Ok(page)) => prop_assert_eq!(&page["page"]["returned"], &json!(model.published[other])),
                (_, Err(error)) => prop_assert_eq!(&error["data"]["need"], &json!("human")),
                (_, other) => prop_assert!(false, "{other:?}"),
            }
            if who != 0 {
                let attached =
                    client.call("session.attach", json!({"session": "s", "owner": name(other), "token": bearers[who]}));
                prop_assert_eq!(&attached.expect_err("foreign")["data"]["need"], &json!("human"));
            }
        }
    }
    Ok(())
}

fn ids(rows: &[&Value]) -> Vec<i64> {
    rows.iter().filter(|row| row["kind"] != "denial").filter_map(|row| row["id"].as_i64()).collect()
}

proptest! {
    #![proptest_config(crate::cases(12))]
    #[test]
    fn nobody_sees_what_is_anothers(ops in proptest::collection::vec(op(), 5..30)) {
        let agents = [asking("agent:x", Approve::Human), asking("agent:y", Approve::Human)];
        let kernel = Kernel::of(&agents, &[("blob_reads", 1_000_000)]);
        let mut human = kernel.attach("tokens");
        let mut bearer = |principal: &str| human.ok("token.create", json!({"principal": principal}))["token"].clone();
        let bearers = [Value::Null, bearer("agent:x"), bearer("agent:y")];
        let (mut clients, mut model) = (BTreeMap::new(), Model::default());
        for op in &ops {
            act(&kernel, &bearers, &mut clients, &mut model, op);
        }
        check(&kernel, &bearers, &model)?;
    }
}
