//! How fast rows are made durable and read back, beside the floor that SQLite itself sets on this machine.
//!
//! `cargo run --release -p shoal-journal --example throughput [DIRECTORY [RECORDS]]`
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement makes its directory, reads the clock and prints"
)]

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};
use serde_json::json;
use shoal_journal::{Closing, Journal, JournalError, Kind, NewRow, Output, OutputData, Settings};

/// Sessions that work at a time.
const SESSIONS: usize = 8;

fn main() {
    let mut words = std::env::args().skip(1);
    let place = words.next().unwrap_or_else(|| "/var/tmp".to_owned());
    let records = words.next().and_then(|n| n.parse().ok()).unwrap_or(40_000);
    let private = || {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        tempfile::Builder::new().permissions(mode).tempdir_in(&place).expect("a directory")
    };
    println!("{records} records in {place}, each a row opened, closed with two outputs, and two events");
    let dir = private();
    sessions(dir.path(), records, SESSIONS, false).tell("8 sessions, committed before each answer");
    sessions(private().path(), records / 4, 1, false).tell("1 session, committed before each answer");
    sessions(private().path(), records / 10, SESSIONS, true).tell("8 sessions, synced before each answer (full)");
    for group in [1, 8, 64] {
        let floor = floor(private().path(), records, group);
        rate(&format!("SQLite alone, the same statements in groups of {group}"), records, floor);
    }
    reading(dir.path(), records);
}

fn rate(what: &str, n: usize, taken: Duration) {
    let each = taken.as_secs_f64() * 1e6 / n as f64;
    println!("{what:<62} {:>9.0} /s {each:>8.1} us", n as f64 / taken.as_secs_f64());
}

/// What sessions took: all of it, and each wait for a commit.
struct Taken {
    all: Duration,
    waits: Vec<Duration>,
}

impl Taken {
    /// A record is two commits.
    fn tell(mut self, what: &str) {
        rate(what, self.waits.len() / 2, self.all);
        self.waits.sort_unstable();
        let at = |share: f64| {
            let nth = ((self.waits.len() - 1) as f64 * share) as usize;
            self.waits[nth].as_secs_f64() * 1e6
        };
        println!(
            "    a commit: p50 {:.0} us, p99 {:.0} us, p99.9 {:.0} us, worst {:.0} us",
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0)
        );
    }
}

fn row(session: usize, n: usize) -> NewRow {
    NewRow {
        cwd: b"/srv/site".to_vec(),
        env_hash: Some([7; 32]),
        src: format!("make -j4 check-{n}"),
        effects: json!([{"kind": "opaque"}]),
        ..NewRow::plain(Kind::Exec, &format!("s{session}"), "uid:1000", "uid:1000", 5, None)
    }
}

fn closing(n: usize) -> Closing {
    let output = |kind: &str, text: String| Output {
        kind: kind.to_owned(),
        data: OutputData::Bytes(text.into_bytes()),
        meta: None,
    };
    Closing {
        dur_ns: 5,
        status: Some(0),
        ok: true,
        out: i64::try_from(n).ok(),
        summary: Some(json!({"type": "outcome", "ok": true})),
        outputs: vec![output("value", format!("{{\"$\":\"int\",\"v\":{n}}}")), output("render", n.to_string())],
        ..Closing::default()
    }
}

/// As the broker does it: each session opens a row, waits for its commit, closes it and waits again.
fn sessions(dir: &Path, records: usize, sessions: usize, full: bool) -> Taken {
    let journal = Arc::new(Journal::open(dir, Settings { full, without_reserve: true }).expect("a journal"));
    let begin = Instant::now();
    let threads: Vec<_> = (0..sessions)
        .map(|session| {
            let journal = Arc::clone(&journal);
            std::thread::spawn(move || {
                let mut waits = Vec::with_capacity(records / sessions * 2);
                for n in 0..records / sessions {
                    let asked = Instant::now();
                    let id = answer(&journal, move |store| store.open_row(&row(session, n)));
                    let opened = Instant::now();
                    answer(&journal, move |store| {
                        store.close_row(id, &closing(n))?;
                        store.append_event("uid:1000", "journal", id)?;
                        store.append_event("uid:1000", "session.transcript", id)
                    });
                    waits.extend([opened - asked, opened.elapsed()]);
                }
                waits
            })
        })
        .collect();
    let waits = threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect();
    Taken { all: begin.elapsed(), waits }
}

/// Runs a job and waits for its commit.
fn answer(
    journal: &Journal,
    job: impl FnMut(&mut shoal_journal::Store) -> Result<i64, JournalError> + Send + 'static,
) -> i64 {
    let (tell, told) = sync_channel(1);
    journal.write(job, move |result| tell.send(result).expect("waited for"));
    told.recv().expect("answered").expect("written")
}

/// The statements of such a record on the same tables, without chain, threads or answers.
fn floor(dir: &Path, records: usize, group: usize) -> Duration {
    drop(Journal::open(dir, Settings { full: false, without_reserve: true }).expect("the tables"));
    let db = Connection::open(dir.join("journal.db")).expect("opens");
    db.execute_batch("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0").expect("set");
    let begin = Instant::now();
    for first in (0..records).step_by(group) {
        db.execute_batch("BEGIN IMMEDIATE").expect("begun");
        for n in first..(first + group).min(records) {
            record(&db, n).expect("written");
        }
        db.execute_batch("COMMIT").expect("committed");
    }
    begin.elapsed()
}

/// As long as the text of two outputs is.
const OUTPUTS: &str = "[[\"value\",\"0000000000000000000000000000000000000000000000000000000000000000\",20,null],\
    [\"render\",\"0000000000000000000000000000000000000000000000000000000000000000\",20,null]]";

fn record(db: &Connection, n: usize) -> rusqlite::Result<()> {
    let id = i64::try_from(n + 1).unwrap_or(i64::MAX);
    let hash = [u8::try_from(n % 251).unwrap_or(0); 32];
    let mut blob = [0u8; 32];
    blob[..8].copy_from_slice(&id.to_le_bytes());
    let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| db.prepare_cached(sql)?.execute(values).map(|_| ());
    run(
        "INSERT INTO entry (id, kind, session, owner, principal, ts, cwd, env_hash, src, effects, opaque, link)
         VALUES (?1, 'exec', 's', 'uid:1000', 'uid:1000', 5, ?2, ?3, ?4, '[{\"kind\":\"opaque\"}]', 1, ?1)",
        params![id, &b"/srv/site"[..], hash, format!("make -j4 check-{n}")],
    )?;
    let link = "INSERT INTO link (entry_id, closes, digest) VALUES (?1, ?2, ?3)";
    run(link, params![id, false, hash])?;
    run(
        "UPDATE entry SET dur_ns = 5, status = 0, ok = 1, out = ?1, summary = '{}', outputs = ?2, link = ?1 WHERE id = ?1",
        params![id, OUTPUTS],
    )?;
    for kind in ["value", "render"] {
        blob[31] = kind.as_bytes()[0];
        run(
            "INSERT OR IGNORE INTO blob (hash, stored_len, created_ns, last_access_ns, data) VALUES (?1, 20, 1, 1, ?1)",
            params![blob],
        )?;
        run("INSERT OR IGNORE INTO owned (hash, owner, kind) VALUES (?1, 'uid:1000', ?2)", params![blob, kind])?;
    }
    run(link, params![id, true, hash])?;
    for channel in ["journal", "session.transcript"] {
        run(
            "INSERT INTO durable_event (owner, channel, seq, entry_id) VALUES ('uid:1000', ?1, ?2, ?2)",
            params![channel, id],
        )?;
    }
    Ok(())
}

/// Opening again, following the events from the first, and recomputing the chain.
fn reading(dir: &Path, records: usize) {
    let begin = Instant::now();
    let journal = Journal::open(dir, Settings { full: false, without_reserve: true }).expect("opens");
    println!("{:<62} {:>9.1} ms", "open", begin.elapsed().as_secs_f64() * 1e3);
    let begin = Instant::now();
    let replayed = journal.wait(|store| {
        let (mut since, mut count) = (None, 0usize);
        loop {
            let page = store.events("uid:1000", "journal", since, 1024)?;
            let Some((last, _)) = page.last() else { return Ok(count) };
            since = Some(*last);
            count += page.len();
        }
    });
    assert_eq!(replayed.expect("readable"), records / SESSIONS * SESSIONS);
    rate("events replayed with their rows", records, begin.elapsed());
    let begin = Instant::now();
    let verified = journal.wait(|store| store.verify(None)).expect("readable");
    assert!(verified.ok, "{verified:?}");
    rate("rows verified (two links each)", records, begin.elapsed());
    drop(journal);
    let db = Connection::open(dir.join("journal.db")).expect("opens");
    let begin = Instant::now();
    let mut rows = db.prepare("SELECT * FROM entry ORDER BY id").expect("a statement");
    let mut cursor = rows.query([]).expect("rows");
    let mut bytes = 0;
    while let Some(row) = cursor.next().expect("readable") {
        bytes += row.get::<_, String>("src").expect("text").len();
    }
    assert!(bytes > records);
    rate("SQLite alone, every row read once", records, begin.elapsed());
}
