//! The worked examples of the guides are run: policies as they are printed, commands with what they print, requests with what
//! they are answered.
//!
//! In a block marked `console` a line `$ COMMAND` is run by `sh` as the person, `NAME> METHOD PARAMS` is a request of that
//! agent on a connection of its own; the lines up to the next of either are what comes of it. `…` stands for anything, a
//! JSON answer may have more members than are printed. The block before it marked `toml` is the policy. `/srv/site` is the
//! directory of the test, `uid:1000` its user.

use std::collections::BTreeMap;
use std::process::Stdio;

use serde_json::{Value, json};
use shoal_harness::{Client, Kernel, Place};

/// A fenced block of a page.
struct Block {
    mark: String,
    text: String,
    line: usize,
}

fn blocks(page: &str) -> Vec<Block> {
    let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("a page");
    let (mut found, mut open) = (Vec::new(), None::<Block>);
    for (nth, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(mark), None) => open = Some(Block { mark: mark.to_owned(), text: String::new(), line: nth + 1 }),
            (Some(_), Some(_)) => found.extend(open.take()),
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    found
}

/// One thing a block does, and what it prints of it.
struct Step {
    does: String,
    shows: Vec<String>,
    line: usize,
}

/// Whether a line does something: a command, or a request of an agent.
fn is_step(line: &str) -> bool {
    line.starts_with("$ ") || line.split_once("> ").is_some_and(|(name, _)| name.starts_with("agent:"))
}

fn steps(block: &Block) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (nth, line) in block.text.lines().enumerate() {
        match steps.last_mut() {
            _ if is_step(line) => {
                steps.push(Step { does: line.to_owned(), shows: Vec::new(), line: block.line + nth + 1 });
            }
            Some(step) => step.shows.push(line.to_owned()),
            None => {}
        }
    }
    steps
}

/// Whether text is what a pattern with `…` shows.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut last_was_open = false;
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
        last_was_open = part.is_empty();
    }
    rest.is_empty() || last_was_open
}

/// Whether an answer is what the guide shows of it.
fn shows(shown: &Value, told: &Value) -> bool {
    match (shown, told) {
        (Value::Object(shown), Value::Object(told)) => {
            shown.iter().all(|(name, value)| told.get(name).is_some_and(|told| shows(value, told)))
        }
        (Value::Array(shown), Value::Array(told)) => {
            shown.len() == told.len() && shown.iter().zip(told).all(|(shown, told)| shows(shown, told))
        }
        (Value::String(pattern), told) if pattern.contains('…') => {
            matches(pattern, told.as_str().unwrap_or(&told.to_string()))
        }
        _ => shown == told,
    }
}

/// A guide under test.
struct Guide {
    page: &'static str,
    place: Place,
    kernel: Option<Kernel>,
    agents: BTreeMap<String, Client>,
    /// The newest plan, which the guide shortens.
    plan: String,
}

impl Guide {
    fn run(page: &'static str) {
        let mut guide = Self { page, place: Place::new(), kernel: None, agents: BTreeMap::new(), plan: String::new() };
        std::fs::create_dir(guide.place.work().join("content")).expect("a directory");
        guide.place.write("content/index.md", "hello\n");
        let mut ran = 0;
        for block in blocks(page) {
            match block.mark.as_str() {
                "toml" => guide.adopt(&block),
                "console" => {
                    for step in steps(&block) {
                        guide.step(&step);
                        ran += 1;
                    }
                }
                _ => {}
            }
        }
        assert!(ran >= 5, "{page} has {ran} worked steps");
    }

    fn here(&self, text: &str) -> String {
        text.replace("/srv/site", &self.place.work().display().to_string())
            .replace("uid:1000", &format!("uid:{}", self.place.uid()))
    }

    /// A policy is in force for the steps after it.
    fn adopt(&mut self, block: &Block) {
        self.agents.clear();
        self.kernel = None;
        self.place.write("leash.toml", self.here(&block.text));
    }

    fn kernel(&mut self) -> &Kernel {
        let policy = self.place.work().join("leash.toml");
        let place = &self.place;
        self.kernel.get_or_insert_with(|| {
            Kernel::start_with(place, |command| {
                command.arg("--policy").arg(policy);
            })
        })
    }

    fn step(&mut self, step: &Step) {
        let at = format!("docs/{}:{}: {}", self.page, step.line, step.does);
        let shown = self.here(step.shows.join("\n").trim_end());
        if let Some(command) = step.does.strip_prefix("$ ") {
            let printed = self.command(command);
            let told: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
            assert!(matches(&shown, &told.join("\n")), "{at}\nshows:\n{shown}\nprinted:\n{printed}");
            return;
        }
        let (name, request) = step.does.split_once("> ").expect("a request");
        let (method, params) = request.split_once(' ').unwrap_or((request, "{}"));
        let params = self.here(&params.replace("plan:9b1f…", &self.plan));
        let params: Value = serde_json::from_str(&params).unwrap_or_else(|e| panic!("{at}: {e}"));
        let told = match self.agent(name).call(method, params) {
            Ok(result) => result,
            Err(error) => json!({"code": error.code, "message": error.message, "data": error.data}),
        };
        if let Some(plan) = told["plan_ref"].as_str() {
            self.plan = plan.to_owned();
        }
        let expected: Value = serde_json::from_str(&shown).unwrap_or_else(|e| panic!("{at}: {e}\n{shown}"));
        assert!(shows(&expected, &told), "{at}\nshows: {expected}\ntold:  {told}");
    }

    /// The connection of an agent, in a session of its own.
    fn agent(&mut self, name: &str) -> &mut Client {
        if !self.agents.contains_key(name) {
            let kernel = self.kernel();
            let token = kernel.attach("tokens").ok("token.create", json!({"principal": name}))["token"].clone();
            let mut client = kernel.connect();
            client.ok("session.attach", json!({"session": "site", "token": token, "client": {"kind": "mcp"}}));
            self.agents.insert(name.to_owned(), client);
        }
        self.agents.get_mut(name).expect("just made")
    }

    fn command(&mut self, command: &str) -> String {
        let socket = self.kernel().socket().to_owned();
        let command = self.here(&command.replace("plan:9b1f…", &self.plan));
        let output = self
            .place
            .command("sh")
            .args(["-c", &format!("exec 2>&1; {command}")])
            .env("SHOAL_SOCKET", socket)
            .env("SHOAL_POLICY", self.place.work().join("leash.toml"))
            .stderr(Stdio::piped())
            .output()
            .expect("sh runs");
        String::from_utf8(output.stdout).expect("text")
    }
}

#[test]
fn the_guide_to_policies() {
    Guide::run("policy.md");
}

#[test]
fn the_guide_to_approvals() {
    Guide::run("approvals.md");
}

#[test]
fn the_guide_to_the_journal() {
    Guide::run("journal.md");
}

#[test]
fn patterns_match_what_they_show() {
    for (pattern, text, same) in [
        ("a…c", "abc", true),
        ("a…", "a", true),
        ("…b", "ab", true),
        ("a…c", "abd", false),
        ("ab", "abc", false),
        ("plan:…  pending", "plan:12  pending", true),
    ] {
        assert_eq!(matches(pattern, text), same, "{pattern} {text}");
    }
}
