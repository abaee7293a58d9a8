//! PTY methods: terminals opened by the launcher, shown by the ptyd, judged and recorded here.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use shoal_journal::Kind;
use shoal_leash::{Effect, Verdict, judge};
use shoal_proto::broker_launcher::{PtyOrder, SpawnPty, ToLauncher};
use shoal_proto::broker_ptyd::{self as ptyd, Expect, Matched, PtyCall, Read, Refusal, Resize, Screen, Send, ToPtyd};
use shoal_proto::hello::ExitStatus;
use shoal_proto::launcher_worker::SpawnStage;
use shoal_proto::{Bytes, List, Text};
use shoal_wire::error::Reason;
use shoal_wire::params::Empty;
use shoal_wire::params::pty::{Input, PtyAction, PtyControl, PtyOpen, PtyPick, PtyRead, PtyResize, PtySend};
use shoal_wire::{Ref, RpcError, limits, params};

use super::Params;
use crate::broker::{Broker, or_refuse};
use crate::clients::{Ask, Attachment, ConnId};
use crate::launcher_edge::{LauncherDone, signal_name};
use crate::ptyd_edge::PtydDone;
use crate::ptys::{Pty, Taken};
use crate::quotas::Quota;
use crate::sessions::Sid;

/// Sides of a terminal.
fn clamp(side: i64) -> u16 {
    u16::try_from(side.clamp(1, limits::PTY_SIDE)).unwrap_or(1)
}

impl Broker {
    fn pty_of(&self, caller: &Attachment, text: &str) -> Result<&Pty, RpcError> {
        match Ref::parse(text) {
            Some(Ref::Pty(n)) => self.ptys.of(caller.sid, n).ok_or_else(|| {
                let reason = if n < self.numbers.ptys.next() { "closed" } else { "unknown" };
                RpcError::unknown_pty(text, reason)
            }),
            _ => Err(RpcError::unknown_pty(text, "unknown")),
        }
    }

    /// `pty.open`.
    pub(super) fn answer_pty_open(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<PtyOpen>(text));
        let in_session = self.ptys.of_session(caller.sid).count();
        or_refuse!(self, ask, self.quotas.admit(Quota::PtysPerSession, in_session));
        or_refuse!(self, ask, self.quotas.admit(Quota::PtysPerPrincipal, self.ptys.of_owner(&caller.owner)));
        or_refuse!(self, ask, self.quotas.admit(Quota::Ptys, self.ptys.len()));
        let program = wanted.cmd.as_str().to_owned();
        let cmd = std::iter::once(&program).chain(&wanted.args).cloned().collect::<Vec<_>>().join(" ");
        let effects = self.pty_effects(&caller.owner, &program);
        let judged = judge(&effects, self.policy.of(&caller.owner));
        let (verdict, hint) = (judged.verdict, judged.hint().map(str::to_owned));
        let Ok(_grant) = judged.allowed() else {
            let error = match verdict {
                Verdict::ApprovalRequired => RpcError::approval_required(json!(effects)),
                Verdict::Allow | Verdict::Deny => crate::execute::denied(json!(effects), hint.as_deref()),
            };
            return self.reply_denial(ask, error.and("cmd", cmd), &program, json!(effects));
        };
        or_refuse!(self, ask, self.check_journal());
        let (n, mark) = self.numbers.ptys.take();
        self.write_mark(crate::numbers::PTYS, mark);
        let (cols, rows) = (clamp(wanted.cols.value()), clamp(wanted.rows.value()));
        let Some(spawn) = self.spawn_message(caller.sid, n, &wanted, cols, rows) else {
            let error = RpcError::invalid("args", Reason::TooLarge, "an argument or variable is above 128 KiB");
            return self.reply(ask, Err(error));
        };
        let (sid, owner) = (caller.sid, caller.owner.clone());
        self.ptys.insert(Pty {
            n,
            sid,
            owner,
            cmd,
            pid: 0,
            cols,
            rows,
            exit: None,
            taken: None,
            told: None,
            due: false,
        });
        let caller = caller.clone();
        self.when_ptyd(sid, move |broker, there| {
            if let Err(error) = there {
                broker.ptys.remove(n);
                return broker.reply(ask, Err(error));
            }
            broker.tell_ptyd(sid, ToPtyd::Expect(Expect { id: n, cols, rows }));
            broker.ask_for_program(sid, spawn, move |broker, done| {
                broker.pty_spawned(ask, &caller, n, done);
            });
        });
    }

    fn pty_effects(&self, owner: &str, program: &str) -> Vec<Effect> {
        let mut effects = vec![Effect::ProcSpawn { bin_hash: String::new(), argv0: program.to_owned() }];
        let pinned = self.policy.of(owner).is_some_and(|section| !section.proc_spawn.as_slice().is_empty());
        if !pinned {
            effects.push(Effect::Opaque);
        }
        effects
    }

    fn spawn_message(&self, sid: Sid, id: u64, wanted: &PtyOpen, cols: u16, rows: u16) -> Option<SpawnPty> {
        let session = self.sessions.at(sid)?;
        let name = |entry: &[u8]| entry.split(|byte| *byte == b'=').next().unwrap_or_default().to_vec();
        let mut env: Vec<Vec<u8>> = session.env.clone();
        env.retain(|entry| !wanted.env.keys().any(|over| over.as_bytes() == name(entry)));
        env.extend(wanted.env.iter().map(|(name, value)| format!("{name}={value}").into_bytes()));
        // What a session says to programs without a terminal is not true here.
        if !wanted.env.contains_key("TERM") {
            env.retain(|entry| entry != b"TERM=dumb");
        }
        if !env.iter().any(|entry| entry.starts_with(b"TERM=")) {
            env.push(b"TERM=xterm-256color".to_vec());
        }
        let argv = std::iter::once(wanted.cmd.as_str()).chain(wanted.args.iter().map(String::as_str));
        let argv: Vec<_> = argv.map(|arg| Bytes::new(arg.as_bytes())).collect::<Result<_, _>>().ok()?;
        Some(SpawnPty {
            id,
            program: Bytes::new(wanted.cmd.as_str().as_bytes()).ok()?,
            argv: List::new(argv).ok()?,
            env: crate::worker_edge::env_list(&env)?,
            cwd: Bytes::new(session.cwd.clone()).ok()?,
            cols,
            rows,
        })
    }

    fn pty_spawned(&mut self, ask: Ask, caller: &Attachment, n: u64, done: Result<LauncherDone, RpcError>) {
        let sid = caller.sid;
        let failed = match done {
            Ok(LauncherDone::Started(started)) => {
                let Some(pty) = self.ptys.of_mut(sid, n) else { return };
                pty.pid = started.pid;
                let pty = pty.clone();
                return self.pty_opened(ask, caller, &pty);
            }
            Ok(LauncherDone::Failed(failed)) => Ok(failed),
            Ok(LauncherDone::Receipt(_) | LauncherDone::Done | LauncherDone::Listed(_)) => {
                Err(RpcError::internal("an answer of another kind"))
            }
            Err(error) => Err(error),
        };
        let cmd = self.ptys.remove(n).map_or(String::new(), |pty| pty.cmd);
        let call = self.fresh();
        self.tell_ptyd(sid, ToPtyd::Close(PtyCall { call, id: n }));
        let error = failed.map_or_else(|error| error, |failed| spawn_error(&cmd, &failed));
        self.reply(ask, Err(error));
    }

    fn pty_opened(&mut self, ask: Ask, caller: &Attachment, pty: &Pty) {
        let reference = pty.reference();
        let body = json!({"pty_id": reference, "id": reference, "uri": format!("shoal://pty/{}", pty.n),
            "pid": pty.pid, "cols": pty.cols, "rows": pty.rows, "cmd": pty.cmd, "alive": true});
        self.session_event(caller.sid, "pty_opened", None, Some(&reference));
        self.pty_row(caller, pty, "open", json!({}), move |broker, written| {
            if let Err(error) = written {
                crate::log::line(format_args!("pty row not written: {error}"));
            }
            broker.reply(ask, Ok(body.to_string()));
        });
    }

    fn pty_row(
        &mut self,
        caller: &Attachment,
        pty: &Pty,
        action: &str,
        more: Value,
        then: impl FnOnce(&mut Self, Result<i64, shoal_journal::JournalError>) + 'static,
    ) {
        let mut detail =
            json!({"pty_id": pty.reference(), "action": action, "cmd": pty.cmd, "exit": exit_json(pty.exit)});
        if let (Some(detail), Value::Object(more)) = (detail.as_object_mut(), more) {
            detail.extend(more);
        }
        let row = self.plain_row(Kind::Pty, Some(caller.sid), &caller.principal, detail);
        self.write_plain(row, then);
    }

    /// `pty.send`.
    pub(super) fn answer_pty_send(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<PtySend>(text));
        let pty = or_refuse!(self, ask, self.pty_of(caller, &wanted.pty_id));
        let (n, reference) = (pty.n, pty.reference());
        if pty.taken.as_ref().is_some_and(|taken| taken.conn != ask.conn) {
            let error = RpcError::denied("taken", "the local user types in this terminal");
            return self.reply(ask, Err(error.and("pty_id", reference)));
        }
        let input = or_refuse!(self, ask, inputs(&wanted.input.0));
        if let Some(taken) = self.ptys.of_mut(caller.sid, n).and_then(|pty| pty.taken.as_mut()) {
            wanted.input.0.iter().for_each(|input| taken.note(typed(input)));
        }
        let paste = wanted.paste;
        let make = move |call| ToPtyd::Send(Send { call, id: n, input, paste });
        self.ask_ptyd(caller.sid, make, move |broker, done| {
            let answer = done.and_then(|done| match done {
                PtydDone::Sent(sent) => {
                    Ok(json!({"pty_id": reference, "sent": sent.sent, "complete": sent.complete}).to_string())
                }
                PtydDone::Refused(why) => Err(refused(&reference, why)),
                PtydDone::Screen(_) | PtydDone::Done => Err(RpcError::internal("an answer of another kind")),
            });
            broker.reply(ask, answer);
        });
    }

    /// `pty.read`.
    pub(super) fn answer_pty_read(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<PtyRead>(text));
        let pty = or_refuse!(self, ask, self.pty_of(caller, &wanted.pty_id));
        let (n, sid) = (pty.n, caller.sid);
        let waits = wanted.wait.is_some();
        let small = |n: i64| u32::try_from(n).unwrap_or(u32::MAX);
        let wait = wanted.wait.map(|wait| ptyd::Wait {
            text: wait.text.map(|text| Text::cut(text.as_str())),
            regex: wait.regex.map(|regex| Text::cut(regex.as_str())),
            quiet_ms: wait.quiet_ms.map(|ms| small(ms.value())),
            exit: wait.exit,
            timeout_ms: small(wait.timeout_ms.value()),
        });
        let lines = wanted.scrollback;
        let line = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let scrollback = lines.map(|lines| (line(lines.start), line(lines.end)));
        let formatted = wanted.formatted;
        let make = move |call| ToPtyd::Read(Read { call, id: n, wait: wait.clone(), scrollback, formatted });
        self.ask_any_ptyd(sid, make, move |broker, done| {
            let Some(pty) = broker.ptys.of(sid, n) else {
                return broker.reply(ask, Err(RpcError::unknown_pty(&format!("pty:{n}"), "closed")));
            };
            let answer = done.and_then(|done| match done {
                PtydDone::Screen(screen) => Ok(screen_json(pty, &screen, waits, lines.map(|lines| lines.start))),
                PtydDone::Refused(why) => Err(refused(&pty.reference(), why)),
                PtydDone::Sent(_) | PtydDone::Done => Err(RpcError::internal("an answer of another kind")),
            });
            broker.reply(ask, answer);
        });
    }

    /// `pty.resize`.
    pub(super) fn answer_pty_resize(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<PtyResize>(text));
        let pty = or_refuse!(self, ask, self.pty_of(caller, &wanted.pty_id));
        let (n, sid, reference) = (pty.n, caller.sid, pty.reference());
        let (cols, rows) = (clamp(wanted.cols.value()), clamp(wanted.rows.value()));
        let make = move |call| ToPtyd::Resize(Resize { call, id: n, cols, rows });
        self.ask_any_ptyd(sid, make, move |broker, done| {
            let answer = done.and_then(|done| match done {
                PtydDone::Done => Ok(json!({"pty_id": reference, "cols": cols, "rows": rows}).to_string()),
                PtydDone::Refused(why) => Err(refused(&reference, why)),
                PtydDone::Sent(_) | PtydDone::Screen(_) => Err(RpcError::internal("an answer of another kind")),
            });
            if let (Ok(_), Some(pty)) = (&answer, broker.ptys.of_mut(sid, n)) {
                (pty.cols, pty.rows) = (cols, rows);
            }
            broker.reply(ask, answer);
        });
    }

    /// `pty.close`: the launcher ends the program, so a lost ptyd is no obstacle.
    pub(super) fn answer_pty_close(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<PtyPick>(text));
        let mut pty = or_refuse!(self, ask, self.pty_of(caller, &wanted.pty_id)).clone();
        let caller = caller.clone();
        let (sid, id) = (caller.sid, pty.n);
        self.ask_launcher(
            sid,
            |call| ToLauncher::KillPty(PtyOrder { call, id }),
            move |broker, done| {
                if let Err(error) = done {
                    return broker.reply(ask, Err(error));
                }
                let known = broker.ptys.of(sid, id).and_then(|pty| pty.exit);
                pty.exit = pty.exit.or(known).or(Some(ExitStatus { code: None, signal: Some(9) }));
                let call = broker.fresh();
                broker.tell_ptyd(sid, ToPtyd::Close(PtyCall { call, id }));
                broker.let_go(sid, id);
                broker.forget_pty(id);
                broker.session_event(sid, "pty_closed", None, Some(&pty.reference()));
                let body = json!({"pty_id": pty.reference(), "closed": true, "exit": exit_json(pty.exit)});
                broker.pty_row(&caller, &pty, "close", json!({}), move |broker, written| {
                    if let Err(error) = written {
                        crate::log::line(format_args!("pty row not written: {error}"));
                    }
                    broker.reply(ask, Ok(body.to_string()));
                });
            },
        );
    }

    /// `pty.list`.
    pub(super) fn pty_list(&mut self, caller: &Attachment, text: Params<'_>) -> Result<String, RpcError> {
        params::decode::<Empty>(text)?;
        let ptys: Vec<Value> = self
            .ptys
            .of_session(caller.sid)
            .filter(|pty| pty.pid != 0)
            .map(|pty| {
                json!({"id": pty.reference(), "pty_id": pty.reference(), "cmd": pty.cmd, "pid": pty.pid,
                    "cols": pty.cols, "rows": pty.rows, "alive": pty.exit.is_none(), "taken": pty.taken.is_some()})
            })
            .collect();
        Ok(json!({"ptys": ptys}).to_string())
    }

    /// `pty.control`.
    pub(super) fn answer_pty_control(&mut self, ask: Ask, caller: &Attachment, text: Params<'_>) {
        let wanted = or_refuse!(self, ask, params::decode::<PtyControl>(text));
        let pty = or_refuse!(self, ask, self.pty_of(caller, &wanted.pty_id)).clone();
        let action = match wanted.action {
            PtyAction::Take => "take",
            PtyAction::Release => "release",
        };
        let taken = wanted.action == PtyAction::Take;
        let by = taken.then(|| caller.principal.to_string());
        let body = json!({"pty_id": pty.reference(), "action": action, "taken": taken, "taken_by": by,
            "record": wanted.record});
        let more = match wanted.action {
            PtyAction::Take => {
                let typed = wanted.record.then(Vec::new);
                let new = Taken { conn: ask.conn, by: caller.principal.clone(), typed };
                self.let_go(caller.sid, pty.n);
                if let Some(pty) = self.ptys.of_mut(caller.sid, pty.n) {
                    pty.taken = Some(new);
                }
                json!({"record": wanted.record})
            }
            PtyAction::Release => match self.ptys.of_mut(caller.sid, pty.n).and_then(|pty| pty.taken.take()) {
                Some(taken) => released(&taken),
                None => return self.reply(ask, Ok(body.to_string())),
            },
        };
        self.pty_changed(caller.sid, pty.n);
        self.pty_row(caller, &pty, action, more, move |broker, written| {
            if let Err(error) = written {
                crate::log::line(format_args!("pty row not written: {error}"));
            }
            broker.reply(ask, Ok(body.to_string()));
        });
    }

    /// A connection is gone: the terminals it had taken are free.
    pub(super) fn release_ptys_of(&mut self, conn: ConnId) {
        for (sid, n) in self.ptys.taken_by(conn) {
            self.let_go(sid, n);
            self.pty_changed(sid, n);
        }
    }

    /// Whoever had taken a terminal has it no more, which its journal tells with what was to be recorded.
    fn let_go(&mut self, sid: Sid, n: u64) {
        let Some(pty) = self.ptys.of_mut(sid, n) else { return };
        let Some(taken) = pty.taken.take() else { return };
        let mut detail =
            json!({"pty_id": pty.reference(), "action": "release", "cmd": pty.cmd, "exit": exit_json(pty.exit)});
        if let (Some(detail), Value::Object(more)) = (detail.as_object_mut(), released(&taken)) {
            detail.extend(more);
        }
        let row = self.plain_row(Kind::Pty, Some(sid), &taken.by, detail);
        self.note(row);
    }
}

fn released(taken: &Taken) -> Value {
    match &taken.typed {
        Some(typed) => json!({"record": true, "typed": String::from_utf8_lossy(typed)}),
        None => json!({"record": false}),
    }
}

fn typed(input: &Input) -> &[u8] {
    match input {
        Input::Text(text) => text.as_bytes(),
        Input::Key(key) => key.as_bytes(),
        Input::Bytes(bytes) => bytes,
    }
}

fn inputs(inputs: &[Input]) -> Result<List<ptyd::Input, 4096>, RpcError> {
    let too_large = |_| RpcError::invalid("input", Reason::TooLarge, "input has at most 1 MiB and 4,096 items");
    if inputs.iter().map(|input| typed(input).len()).sum::<usize>() > limits::PTY_INPUT_BYTES {
        return Err(RpcError::invalid("input", Reason::TooLarge, "input has at most 1 MiB"));
    }
    let items = inputs.iter().map(|input| {
        Ok(match input {
            Input::Text(text) => ptyd::Input::Text(Text::new(text.as_str()).map_err(too_large)?),
            Input::Key(key) => ptyd::Input::Key(Text::new(key.as_str()).map_err(|_| unknown_key(key))?),
            Input::Bytes(bytes) => ptyd::Input::Raw(Bytes::new(bytes.clone()).map_err(too_large)?),
        })
    });
    let items = items.collect::<Result<Vec<_>, RpcError>>()?;
    List::new(items).map_err(too_large)
}

fn unknown_key(key: &str) -> RpcError {
    let message = format!("unknown key `{}`", crate::json::one_line(key, 64));
    RpcError::invalid("input", Reason::Range, message).and("expected", "a named key, e.g. Enter, Up, F1, Ctrl-c")
}

fn refused(reference: &str, why: Refusal) -> RpcError {
    match why {
        Refusal::Unknown | Refusal::Closed => RpcError::unknown_pty(reference, "closed"),
        Refusal::Key(key) => unknown_key(&key),
        Refusal::Regex(why) => RpcError::invalid("wait.regex", Reason::Syntax, crate::json::one_line(&why, 512)),
        Refusal::LineTooLong { max } => {
            let message = format!("a line has at most {max} bytes while the terminal is in canonical mode");
            RpcError::invalid("input", Reason::LineTooLong, message).and("max", max)
        }
    }
}

fn spawn_error(cmd: &str, failed: &shoal_proto::broker_launcher::PtyFailed) -> RpcError {
    let os = std::io::Error::from_raw_os_error(failed.errno).to_string();
    let reason = crate::json::one_line(&failed.reason, 512);
    let detail = if reason.is_empty() { os } else { reason };
    let program = cmd.split(' ').next().unwrap_or_default();
    match failed.stage {
        // The words of `cmd` and `args` are one line here, so the whole line is named: `cmd` may have held a blank.
        SpawnStage::Open => RpcError::pty_spawn(cmd, "not_found", format!("command not found: {cmd}"), &detail),
        SpawnStage::Gate => RpcError::pty_spawn(cmd, "confinement", format!("not permitted: {program}"), &detail),
        SpawnStage::Cwd => RpcError::pty_spawn(cmd, "cwd_gone", "the session's directory is gone", &detail),
        SpawnStage::Setup | SpawnStage::Clone | SpawnStage::Exec => {
            RpcError::pty_spawn(cmd, "os", format!("could not start {program}"), &detail)
        }
    }
}

fn exit_json(exit: Option<ExitStatus>) -> Value {
    match exit {
        Some(exit) => json!({"status": exit.code, "signal": exit.signal.map(signal_name)}),
        None => Value::Null,
    }
}

fn screen_json(pty: &Pty, screen: &Screen, waits: bool, lines_from: Option<u64>) -> String {
    let rows: Vec<&str> = screen.rows.as_slice().iter().map(|row| row.as_str()).collect();
    let exit = screen.exit.or(pty.exit);
    let mut body = json!({"pty_id": pty.reference(), "cmd": pty.cmd, "pid": pty.pid, "cols": screen.cols,
        "rows": rows.len(), "screen": rows,
        "cursor": {"row": screen.row, "col": screen.col, "hidden": screen.hidden}, "changed": screen.changed,
        "alive": exit.is_none(), "exit": exit_json(exit)});
    if waits {
        body["waited_ms"] = screen.waited_ms.into();
        body["matched"] = match screen.matched {
            Some(Matched::Text) => "text".into(),
            Some(Matched::Regex) => "regex".into(),
            Some(Matched::Quiet) => "quiet".into(),
            Some(Matched::Exit) => "exit".into(),
            None => Value::Null,
        };
        body["timed_out"] = screen.timed_out.into();
    }
    if screen.reset {
        body["reset"] = true.into();
    }
    if let Some(start) = lines_from {
        let lines: Vec<&str> = screen.scrollback.as_slice().iter().map(|line| line.as_str()).collect();
        body["scrollback"] = json!({"len": screen.scrollback_len, "start": start, "lines": lines});
    }
    if !screen.formatted.as_slice().is_empty() {
        body["formatted"] = STANDARD.encode(screen.formatted.as_slice()).into();
    }
    body.to_string()
}
