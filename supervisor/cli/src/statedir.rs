//! The state directory while no kernel runs: opened under its lock, so that none starts meanwhile, and asked the same
//! questions in the same words.

use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::value::RawValue;
use serde_json::{Value, json};
use shoal_journal::{GcRequest, Journal, JournalError, Kind, NewRow, NewToken, Query, Settings, Store, TokenFile};
use shoal_wire::RpcError;
use shoal_wire::params::admin::{TokenCreate, TokenRevoke};
use shoal_wire::params::journal::{JournalGc, JournalPin, JournalQuery, JournalVerify};
use shoal_wire::params::{Empty, decode};

use crate::fail::Fail;

/// A state directory whose lock this process holds.
pub(crate) struct StateDir {
    path: PathBuf,
    journal: Journal,
    /// Held as long as it is open.
    _lock: std::fs::File,
}

impl StateDir {
    /// Opens a directory that a kernel has used.
    pub(crate) fn open(path: &Path) -> Result<Self, Fail> {
        if !path.join("journal.db").exists() {
            return Err(Fail::Said(format!("no kernel runs, and there is no journal in {}", path.display())));
        }
        Self::take(path)
    }

    /// Opens a directory, or makes it.
    pub(crate) fn make(path: &Path) -> Result<Self, Fail> {
        let mut builder = std::fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(path);
        made.map_err(|e| {
            let next = "name one you can write to with SHOAL_STATE_DIR";
            Fail::Said(format!("cannot make the state directory {}: {e}; {next}", path.display()))
        })?;
        Self::take(path)
    }

    fn take(path: &Path) -> Result<Self, Fail> {
        let at = path.display();
        let said = |what: String| move |e: std::io::Error| Fail::Said(format!("{what}: {e}"));
        let lock = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path.join("lock"))
            .map_err(said(format!("cannot open {at}/lock")))?;
        if !shoal_sys::lock::try_exclusive(&lock).map_err(said(format!("cannot lock {at}/lock")))? {
            return Err(Fail::Said(format!("{at} is in use by a kernel that does not answer; ask again in a moment")));
        }
        // The reserve is the kernel's: it is made again when one starts.
        let journal = Journal::open(path, Settings { full: true, without_reserve: true }).map_err(unusable)?;
        Ok(Self { path: path.to_owned(), journal, _lock: lock })
    }

    /// Answers a method of the kernel as the kernel would answer the human.
    pub(crate) fn answer(&self, method: &str, params: &Value) -> Result<Value, Fail> {
        let params = RawValue::from_string(params.to_string()).map_err(|e| Fail::Said(e.to_string()))?;
        match method {
            "journal.query" => self.query(&params),
            "journal.verify" => {
                let head = decode::<JournalVerify>(Some(&params)).map_err(refused)?.head;
                let verified = self.job(move |store| store.verify(head.as_ref().map(|head| head.as_str())))?;
                Ok(verified.to_wire())
            }
            "journal.pin" | "journal.unpin" => self.pin(method, &params),
            "journal.gc" => self.gc(&params),
            "token.create" => self.create(&params),
            "token.list" => {
                decode::<Empty>(Some(&params)).map_err(refused)?;
                let now = now_ns();
                let tokens: Vec<Value> = self.tokens()?.tokens().iter().map(|token| token.to_wire(now)).collect();
                Ok(json!({"tokens": tokens}))
            }
            "token.revoke" => self.revoke(&params),
            other => Err(Fail::Said(format!("{other} needs a running kernel: `shoal kernel start`"))),
        }
    }

    fn query(&self, params: &RawValue) -> Result<Value, Fail> {
        let query = Query::of_wire(&decode::<JournalQuery>(Some(params)).map_err(refused)?, None);
        let rows = self.job(move |store| store.query(&query))?;
        Ok(rows.iter().map(|row| row.to_wire(wire_path)).collect::<Vec<_>>().into())
    }

    fn pin(&self, method: &str, params: &RawValue) -> Result<Value, Fail> {
        let hash = decode::<JournalPin>(Some(params)).map_err(refused)?.hash.as_str().to_owned();
        let pinned = method == "journal.pin";
        let row = self.admin_row(method, json!({"hash": hash}));
        let asked = hash.clone();
        self.job(move |store| {
            if pinned { store.pin(&asked) } else { store.unpin(&asked) }?;
            store.write_row(&row)
        })?;
        Ok(json!({"hash": hash, "pinned": pinned}))
    }

    fn gc(&self, params: &RawValue) -> Result<Value, Fail> {
        let wanted = decode::<JournalGc>(Some(params)).map_err(refused)?;
        let request = GcRequest::from(&wanted);
        let row = self.admin_row(
            "journal.gc",
            json!({"ttl_s": wanted.ttl_s, "budget_bytes": wanted.budget_bytes, "apply": wanted.apply}),
        );
        let report = self.job(move |store| {
            let report = store.gc(request)?;
            store.write_row(&row)?;
            Ok(report)
        })?;
        Ok(report.to_wire())
    }

    fn create(&self, params: &RawValue) -> Result<Value, Fail> {
        let wanted = decode::<TokenCreate>(Some(params)).map_err(refused)?;
        let new = NewToken {
            principal: wanted.principal.0,
            profile: wanted.profile.map_or("default".to_owned(), |profile| profile.into_string()),
            caps: wanted.caps.into_iter().map(|cap| cap.into_string()).collect(),
            ttl_s: wanted.ttl_s.map(|ttl| ttl.unsigned()),
        };
        let mut file = self.tokens()?;
        let (token, bearer) = file.create(new, now_ns()).map_err(|e| Fail::Said(e.to_string()))?;
        self.replace_tokens(&file)?;
        self.record("token.create", token.arguments())?;
        Ok(token.created(&bearer))
    }

    fn revoke(&self, params: &RawValue) -> Result<Value, Fail> {
        let id = decode::<TokenRevoke>(Some(params)).map_err(refused)?.id;
        let mut file = self.tokens()?;
        let revoked = file.revoke(&id, now_ns()).ok_or_else(|| Fail::Said(format!("no token has the id {id}")))?;
        self.replace_tokens(&file)?;
        self.record("token.revoke", json!({"id": id}))?;
        Ok(json!({"id": id, "revoked_ns": revoked}))
    }

    fn tokens(&self) -> Result<TokenFile, Fail> {
        TokenFile::read(&self.path).map_err(|e| Fail::Said(e.to_string()))
    }

    fn replace_tokens(&self, file: &TokenFile) -> Result<(), Fail> {
        file.replace(&self.path).map_err(|e| Fail::Said(format!("{}: {e}", self.path.display())))
    }

    fn record(&self, method: &str, arguments: Value) -> Result<(), Fail> {
        let row = self.admin_row(method, arguments);
        self.job(move |store| store.write_row(&row)).map(|_| ())
    }

    fn admin_row(&self, method: &str, arguments: Value) -> NewRow {
        let me = format!("uid:{}", shoal_sys::process::uid());
        let detail = json!({"method": method, "arguments": arguments});
        NewRow::plain(Kind::Admin, "", &me, &me, now_ns(), Some(detail))
    }

    /// Runs a job on the journal and waits for it; it is synced.
    fn job<T: Send + 'static>(
        &self,
        job: impl FnMut(&mut Store) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, Fail> {
        self.journal.wait(job).map_err(unusable)
    }
}

fn unusable(error: JournalError) -> Fail {
    Fail::Said(format!("journal: {error}"))
}

fn refused(error: RpcError) -> Fail {
    Fail::Usage(error.message)
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// A path as the protocol has it: its text, and its bytes when they are not text.
fn wire_path(path: &[u8]) -> Value {
    use base64::Engine as _;
    match std::str::from_utf8(path) {
        Ok(text) => json!({"display": text}),
        Err(_) => {
            let raw = base64::engine::general_purpose::STANDARD.encode(path);
            json!({"display": String::from_utf8_lossy(path), "raw": raw})
        }
    }
}
