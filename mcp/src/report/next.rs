//! The next step, where there is one to name.

use serde_json::Value;
use shoal_wire::{Code, Ref, Uri};

use super::cut::Cut;
use super::{Report, Status};

/// Characters of a source that a step shows.
const SHOWN_CHARS: usize = 40;

/// The steps a model can take from here, most useful first.
pub(super) fn steps(report: &Report) -> Vec<String> {
    match report.status {
        Status::Error => after_error(report),
        Status::Running => after_hand_over(report),
        Status::Failed => {
            let mut steps: Vec<String> =
                reference(report).map(|uri| format!("read {uri}?path=stderr")).into_iter().collect();
            steps.extend(after_cut(&report.cut));
            steps
        }
        Status::Pending => decide(report),
        Status::Planned => {
            let plan = report.text_of("plan_ref");
            plan.map(|plan| format!("shoal_apply plan_ref={plan}")).into_iter().collect()
        }
        Status::Ok | Status::Denied => after_cut(&report.cut),
    }
}

fn reference(report: &Report) -> Option<String> {
    Ref::parse(report.text_of("ref")?)?.uri()
}

/// How to see what was cut: a value by parts, anything else where it lies whole.
fn after_cut(cuts: &[Cut]) -> Vec<String> {
    let value = cuts.iter().find(|cut| cut.what == "value").and_then(fetch);
    let whole = || cuts.iter().find_map(|cut| Some(format!("read {}", cut.uri.as_deref()?)));
    value.or_else(whole).into_iter().collect()
}

/// The call that reads the next part of a value.
fn fetch(cut: &Cut) -> Option<String> {
    let uri = Uri::parse(cut.uri.as_deref()?).ok()?;
    let name = Ref::of(&uri.root, uri.segments.first()?)?;
    let path =
        uri.value("path").filter(|path| !path.is_empty()).map(|path| format!(" path={path}")).unwrap_or_default();
    let end = if cut.unit == "bytes" { 4000 } else { 100 };
    Some(format!("shoal_get ref={name}{path} slice=[0,{end}]"))
}

fn after_hand_over(report: &Report) -> Vec<String> {
    let Some(task) = report.text_of("task") else { return Vec::new() };
    let Some(uri) = Ref::parse(task).and_then(|task| task.uri()) else { return Vec::new() };
    vec![format!("read {uri}"), format!("read {uri}/log?offset=0"), format!("shoal_cancel task={task}")]
}

fn decide(report: &Report) -> Vec<String> {
    let Some(plan) = report.text_of("plan_ref") else { return Vec::new() };
    let local = format!("then the local user runs `shoal approvals approve {plan}`");
    match report.body.contains_key("grant") {
        true => vec![local, format!("shoal_apply plan_ref={plan}")],
        false => vec![format!("shoal_cap_request plan_ref={plan}"), local],
    }
}

/// Every error leads on: by what it says itself, else by what helps with its kind.
fn after_error(report: &Report) -> Vec<String> {
    let Some(code) = report.code_number().and_then(Code::from_number) else { return Vec::new() };
    let steps = match code {
        Code::ApprovalRequired => match report.text_of("plan_ref") {
            Some(_) => decide(report),
            None => vec!["shoal_plan with the same source".to_owned(), "then shoal_cap_request".to_owned()],
        },
        Code::UnknownPlan => after_unknown_plan(report),
        Code::Raised => after_raise(report),
        Code::SourceError => hint(report).into_iter().chain(mend(report)).take(1).collect(),
        Code::InvalidParams => hint(report).into_iter().chain(correct(report)).take(1).collect(),
        Code::UnknownRef => rename(report).into_iter().collect(),
        Code::PtySpawnFailed => split(report).into_iter().collect(),
        _ => hint(report),
    };
    if steps.is_empty() { vec![remedy(code, report)] } else { steps }
}

fn after_unknown_plan(report: &Report) -> Vec<String> {
    match report.text_of("reason") {
        Some("drifted") => vec!["shoal_plan again".to_owned()],
        Some("consumed") => {
            let result = reference(report).map(|uri| format!("read {uri}, its result"));
            result.into_iter().chain(["shoal_plan the source to run it once more".to_owned()]).collect()
        }
        _ => vec!["shoal_plan the source; it answers with a plan_ref".to_owned()],
    }
}

fn after_raise(report: &Report) -> Vec<String> {
    let stderr = report.body.get("data").and_then(|data| data.get("stderr")).is_some_and(Value::is_string);
    let uri = reference(report).filter(|_| stderr);
    let mut steps: Vec<String> = uri.map(|uri| format!("read {uri}?path=stderr")).into_iter().collect();
    steps.extend(hint(report));
    if steps.is_empty() {
        steps.extend(look_around(report).or_else(|| mend(report)));
    }
    steps
}

/// Something has another name or lies elsewhere.
fn look_around(report: &Report) -> Option<String> {
    let missing = report.body.get("data").is_some_and(|data| data["code"] == "not_found");
    missing.then(|| "look for its name: `ls` and `glob(\"**/*\")` tell what there is, `which NAME` programs".to_owned())
}

/// Where the source has to be mended: its line, and the words an error points at.
fn mend(report: &Report) -> Option<String> {
    let source = report.source.as_deref()?;
    let data = report.body.get("data")?;
    if data["incomplete"] == true {
        return Some("the source ends too early: complete it and run it again".to_owned());
    }
    let start = usize::try_from(data["span"]["start"].as_u64()?).ok()?;
    let (before, rest) = source.split_at_checked(start)?;
    let line = before.matches('\n').count() + 1;
    let words: String = rest.lines().next().unwrap_or_default().chars().take(SHOWN_CHARS).collect();
    match words.trim() {
        "" => Some(format!("mend the end of line {line} and run it again")),
        words => Some(format!("mend line {line} from `{words}` on and run it again")),
    }
}

/// How an argument has to be given.
fn correct(report: &Report) -> Option<String> {
    let param = report.text_of("param")?;
    let (nearest, expected) = (report.text_of("nearest"), report.text_of("expected"));
    match (report.text_of("reason")?, nearest, expected) {
        ("unknown_member", Some(nearest), _) => Some(format!("write {nearest} for {param}")),
        ("unknown_member", None, Some(expected)) => {
            Some(format!("leave out {param}; there are {}", expected.trim_start_matches("one of ")))
        }
        ("unknown_member", None, None) => Some(format!("leave out {param}")),
        (_, Some(nearest), _) => Some(format!("give {param} as {nearest}")),
        (_, None, Some(expected)) => Some(format!("give {param} as {expected}")),
        _ => None,
    }
}

/// A reference that could never have named anything.
fn rename(report: &Report) -> Option<String> {
    let wrong = |reference: &str| reference != "last" && Ref::parse(reference).is_none();
    let wrong = report.text_of("ref").is_some_and(wrong);
    wrong.then(|| "write ref as out:N or val:blake3:HEX; shoal_journal tells what ran".to_owned())
}

/// A command line given as the name of a program.
fn split(report: &Report) -> Option<String> {
    let cmd = report.text_of("cmd").filter(|_| report.text_of("reason") == Some("not_found"))?;
    let mut words = cmd.split_whitespace();
    let program = words.next()?;
    let args: Vec<&str> = words.collect();
    (!args.is_empty()).then(|| format!("is {program} installed? give it alone as cmd, and its words as args={args:?}"))
}

/// What helps with an error of a kind that says no more itself.
fn remedy(code: Code, report: &Report) -> String {
    let text = match code {
        Code::SourceError => "mend the source at data.span and run it again",
        Code::Raised => "mend the source (data.code and data.span say what and where) and run it again",
        Code::InvalidParams => "correct what the message names and call again",
        Code::UnknownRef => "run it again, or look it up with shoal_journal",
        Code::BadPath => "shoal_get without path and slice shows what there is",
        Code::LeashDenied => "the local user can change the policy; `shoal policy explain` names the grant",
        Code::TaskControl | Code::UnknownTask => "read shoal://jobs for the tasks there are",
        Code::UnknownPty => "shoal_pty_list tells which are open; shoal_pty_open opens another",
        Code::PtySpawnFailed => "check cmd, args and cwd, and open it again",
        Code::AuthFailed => "the local user checks SHOAL_TOKEN in this client's configuration (`shoal token list`)",
        Code::QuotaExceeded => "wait for or cancel one of shoal://jobs",
        Code::JournalUnavailable => "nothing ran; the local user runs `shoal doctor`",
        Code::WorkerLost | Code::SessionEnded => "run again; the session's bindings are gone",
        Code::SessionFrozen => {
            let session = report.text_of("session").unwrap_or("NAME");
            return format!("the local user runs `shoal session thaw {session}`");
        }
        Code::WatchFailed => "list_resources() tells what can be watched",
        Code::MethodNotFound => "the kernel is of another version: the local user restarts it (`shoal kernel stop`)",
        Code::Restarting
        | Code::Internal
        | Code::NotAttached
        | Code::ParseError
        | Code::InvalidRequest
        | Code::ApprovalRequired
        | Code::UnknownPlan => "call again; if it stays, the local user runs `shoal doctor`",
    };
    text.to_owned()
}

fn hint(report: &Report) -> Vec<String> {
    report.text_of("hint").filter(|hint| !hint.is_empty()).map(str::to_owned).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shoal_wire::RpcError;

    use super::*;

    fn next(report: Report) -> Vec<String> {
        steps(&report)
    }

    #[test]
    fn every_situation_has_its_step() {
        let running = Report::success(json!({"task":"task:11","events":"task.11","uri":"shoal://task/11"}), None);
        assert_eq!(
            next(running),
            ["read shoal://task/11", "read shoal://task/11/log?offset=0", "shoal_cancel task=task:11"]
        );
        let failed =
            Report::success(json!({"ref":"out:9","value":{"$":"outcome","ok":false,"out":{"$":"null"}}}), None);
        assert_eq!(next(failed), ["read shoal://out/9?path=stderr"]);
        let run = Report::failure(&RpcError::approval_required(json!([])), None);
        assert_eq!(next(run), ["shoal_plan with the same source", "then shoal_cap_request"]);
        let apply = Report::failure(&RpcError::approval_required(json!([])).and("plan_ref", "plan:aa"), None);
        assert_eq!(
            next(apply),
            ["shoal_cap_request plan_ref=plan:aa", "then the local user runs `shoal approvals approve plan:aa`"]
        );
        let denied = Report::failure(&RpcError::denied("policy", "no").and("hint", "grant fs.read"), None);
        assert_eq!(next(denied), ["grant fs.read"]);
        assert_eq!(next(Report::failure(&RpcError::unknown_plan("plan:a", "drifted"), None)), ["shoal_plan again"]);
        let value =
            json!({"$":"ref","uri":"shoal://out/12?path=out","of":"str","n":90000,"preview":{"$":"str","v":"x"}});
        let cut = Report::success(json!({"ref":"out:12","value":{"$":"outcome","ok":true,"out":value}}), None);
        assert_eq!(next(cut), ["shoal_get ref=out:12 path=out slice=[0,4000]"]);
    }

    #[test]
    fn steps_name_the_place_and_the_form() {
        let parse = |data: Value, source: &str| {
            next(Report::failure(&RpcError::new(Code::SourceError, "no").with(data), None).about(Some(source)))
        };
        let at = |start: usize| json!({"span":{"start":start,"end":start + 1},"hint":null,"incomplete":false});
        assert_eq!(parse(at(9), "for f in *.txt { f }"), ["mend line 1 from `*.txt { f }` on and run it again"]);
        assert_eq!(parse(at(6), "a = 1\nb ="), ["mend line 2 from `b =` on and run it again"]);
        assert_eq!(parse(at(1), "é = 1"), ["mend the source at data.span and run it again"], "no boundary");
        assert_eq!(parse(at(99), "x"), ["mend the source at data.span and run it again"]);
        let hinted = json!({"span":{"start":0,"end":1},"hint":"write it so","incomplete":false});
        assert_eq!(parse(hinted, "x"), ["write it so"]);
        let raised = |code: &str| {
            let data = json!({"code":code,"span":{"start":0,"end":3},"hint":null});
            next(Report::failure(&RpcError::new(Code::Raised, "no").with(data), None).about(Some("cat nope")))
        };
        assert_eq!(raised("type_error"), ["mend line 1 from `cat nope` on and run it again"]);
        assert!(raised("not_found")[0].contains("`ls`"), "nothing is wrong with the source");
        let open = json!({"span":{"start":4,"end":4},"hint":null,"incomplete":true});
        assert_eq!(parse(open, "if {"), ["the source ends too early: complete it and run it again"]);

        let argument = |data: Value| next(Report::failure(&RpcError::new(Code::InvalidParams, "no").with(data), None));
        let unknown = json!({"param":"timeout","reason":"unknown_member","nearest":"timeout_ms","expected":"one of a"});
        assert_eq!(argument(unknown), ["write timeout_ms for timeout"]);
        let unknown = json!({"param":"command","reason":"unknown_member","expected":"one of src, mode"});
        assert_eq!(argument(unknown), ["leave out command; there are src, mode"]);
        let range = json!({"param":"cols","reason":"range","expected":"an integer from 1 to 1000"});
        assert_eq!(argument(range), ["give cols as an integer from 1 to 1000"]);
        assert_eq!(argument(json!({"reason":"conflict"})), ["correct what the message names and call again"]);

        let unnamed = Report::failure(&RpcError::unknown_ref("1", "unknown", None), None);
        assert_eq!(next(unnamed), ["write ref as out:N or val:blake3:HEX; shoal_journal tells what ran"]);
        let gone = Report::failure(&RpcError::unknown_ref("out:9", "evicted", None), None);
        assert_eq!(next(gone), ["run it again, or look it up with shoal_journal"]);
        let cmd = Report::failure(&RpcError::pty_spawn("vi -R a", "not_found", "command not found: vi -R a", ""), None);
        assert_eq!(next(cmd), ["is vi installed? give it alone as cmd, and its words as args=[\"-R\", \"a\"]"]);
    }
}
