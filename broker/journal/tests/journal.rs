//! The journal on a real directory: rows, chain, blobs, groups, recovery, collection.
#![allow(clippy::disallowed_methods, reason = "tests damage the files they made")]

use std::sync::mpsc::channel;

use proptest::prelude::*;
use serde_json::json;
use shoal_journal::*;

fn state_dir() -> tempfile::TempDir {
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    tempfile::Builder::new().permissions(private).tempdir().expect("temp dir")
}

fn exec(src: &str) -> NewRow {
    NewRow {
        cwd: b"/srv".to_vec(),
        src: src.to_owned(),
        effects: json!([{"kind": "opaque"}]),
        ..NewRow::plain(Kind::Exec, "default", "uid:1", "uid:1", 5, None)
    }
}

fn output(kind: &str, bytes: &[u8]) -> Output {
    Output { kind: kind.to_owned(), data: OutputData::Bytes(bytes.to_vec()), meta: None }
}

fn open(dir: &std::path::Path) -> Journal {
    Journal::open(dir, Settings { without_reserve: true, ..Settings::default() }).expect("opens")
}

#[test]
fn a_row_is_there_after_its_answer_and_the_chain_verifies() {
    let dir = state_dir();
    let journal = open(dir.path());
    let id = journal.wait(|s| s.open_row(&exec("make check"))).expect("opened");
    journal
        .wait(move |s| {
            let closing = Closing {
                ok: true,
                status: Some(0),
                out: Some(1),
                outputs: vec![output("stdout", b"done\n")],
                ..Closing::default()
            };
            s.close_row(id, &closing)
        })
        .expect("closed");
    drop(journal);

    let journal = open(dir.path());
    let row = journal.wait(move |s| s.row(id)).expect("there");
    assert_eq!((row.src.as_str(), row.ok, row.opaque), ("make check", Some(true), true));
    assert_eq!(row.outputs.len(), 1);
    let verified = journal.wait(|s| s.verify(None)).expect("verified");
    assert!(verified.ok && verified.rows == 1, "{verified:?}");
    let twice = journal.wait(move |s| s.close_row(id, &Closing::default()));
    assert!(matches!(twice, Err(JournalError::Unknown("open row"))));
    assert!(journal.wait(|s| s.verify(None)).expect("verified").ok, "a refused job leaves the chain alone");
}

#[test]
fn any_changed_member_is_found() {
    for change in [
        "UPDATE entry SET src = 'x' WHERE id = 2",
        "UPDATE entry SET ts = ts + 1 WHERE id = 2",
        "UPDATE entry SET ok = 0 WHERE id = 2",
        "UPDATE entry SET status = 9 WHERE id = 2",
        "UPDATE entry SET principal = 'agent:x' WHERE id = 2",
        "UPDATE entry SET effects = '[]' WHERE id = 2",
        "UPDATE entry SET outputs = replace(outputs, ',1,', ',2,') WHERE id = 2",
        "UPDATE entry SET outputs = NULL WHERE id = 2",
        "DELETE FROM link WHERE entry_id = 2",
        "DELETE FROM entry WHERE id = 2",
        "INSERT INTO entry (kind, session, owner, principal, ts, cwd, src, effects, opaque, link) VALUES ('exec','a','b','c',1,x'','x','[]',0,1)",
    ] {
        let dir = state_dir();
        let journal = open(dir.path());
        for n in 0..3 {
            let id = journal.wait(move |s| s.open_row(&exec(&format!("echo {n}")))).expect("opened");
            let closing =
                Closing { ok: true, status: Some(0), outputs: vec![output("value", b"1")], ..Closing::default() };
            journal.wait(move |s| s.close_row(id, &closing)).expect("closed");
        }
        assert!(journal.wait(|s| s.verify(None)).expect("verified").ok);
        drop(journal);
        let db = rusqlite::Connection::open(dir.path().join("journal.db")).expect("opens");
        db.execute_batch(change).expect("changed");
        drop(db);
        let journal = open(dir.path());
        let verified = journal.wait(|s| s.verify(None)).expect("verified");
        assert!(!verified.ok && verified.first_bad.is_some(), "{change}: {verified:?}");
    }
}

#[test]
fn a_removed_tail_is_found_with_a_head() {
    let dir = state_dir();
    let journal = open(dir.path());
    for _ in 0..2 {
        journal.wait(|s| s.write_row(&exec("1"))).expect("written");
    }
    let head = journal.wait(|s| Ok(s.head())).expect("head").expect("not empty");
    drop(journal);
    let db = rusqlite::Connection::open(dir.path().join("journal.db")).expect("opens");
    db.execute_batch("DELETE FROM link WHERE entry_id = 2; DELETE FROM entry WHERE id = 2").expect("removed");
    drop(db);
    let journal = open(dir.path());
    assert!(journal.wait(|s| s.verify(None)).expect("verified").ok);
    let verified = journal.wait(move |s| s.verify(Some(&head))).expect("verified");
    assert_eq!((verified.ok, verified.head_found), (false, Some(false)));
    let bad = journal.wait(|s| s.verify(Some("XY")));
    assert!(matches!(bad, Err(JournalError::Invalid(_))));
}

#[test]
fn blobs_of_every_size_come_back_and_damage_is_seen() {
    let dir = state_dir();
    let journal = open(dir.path());
    for len in [0usize, 1, INLINE_MAX, INLINE_MAX + 1, 3_000_000] {
        let bytes: Vec<u8> = (0..len).map(|i| u8::try_from(i % 251).expect("small")).collect();
        let given = bytes.clone();
        let hash = journal.wait(move |s| s.put_blob(&given)).expect("stored");
        assert_eq!(hash, *blake3::hash(&bytes).as_bytes());
        let blob = journal.wait(move |s| s.blob(&hash, 0, u64::MAX)).expect("read");
        assert_eq!((blob.len, &blob.bytes), (len as u64, &bytes));
        let page = journal.wait(move |s| s.blob(&hash, 1, 100)).expect("read");
        assert_eq!(page.bytes, bytes.iter().copied().skip(1).take(100).collect::<Vec<_>>());
    }
    let big = journal.wait(|s| s.put_blob(&vec![7; 100_000])).expect("stored");
    let hex = big.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let file = dir.path().join("cas").join(&hex[..2]).join(&hex[2..4]).join(format!("{hex}.zst"));
    std::fs::write(&file, b"not zstd").expect("damaged");
    assert!(matches!(journal.wait(move |s| s.blob(&big, 0, 10)), Err(JournalError::Damaged(_))));
    std::fs::remove_file(&file).expect("removed");
    assert!(matches!(journal.wait(move |s| s.blob(&big, 0, 10)), Err(JournalError::Unknown("blob"))));
    assert!(matches!(journal.wait(|s| s.blob(&[9; 32], 0, 10)), Err(JournalError::Unknown("blob"))));
}

#[test]
fn an_unfinished_blob_leaves_no_file() {
    let dir = state_dir();
    let journal = open(dir.path());
    let mut writer = BlobWriter::new(journal.dir(), 1).expect("started");
    writer.write(b"half").expect("written");
    let temps = dir.path().join("cas/tmp");
    assert_eq!(std::fs::read_dir(&temps).expect("there").count(), 1);
    drop(writer);
    assert_eq!(std::fs::read_dir(&temps).expect("there").count(), 0);
    std::fs::write(temps.join("left"), b"by a killed broker").expect("written");
    drop(journal);
    drop(open(dir.path()));
    assert_eq!(std::fs::read_dir(&temps).expect("there").count(), 0);
}

#[test]
fn open_rows_are_found_however_many_were_closed_since() {
    let dir = state_dir();
    let journal = open(dir.path());
    let first = journal.wait(|s| s.open_row(&exec("sleep 1000"))).expect("opened");
    let close_many = |s: &mut Store| {
        for n in 0..600 {
            let id = s.open_row(&exec(&n.to_string()))?;
            s.close_row(id, &Closing::default())?;
        }
        Ok(s.open_rows()?.iter().map(|row| row.id).collect::<Vec<_>>())
    };
    assert_eq!(journal.wait(close_many).expect("written"), [first]);
    journal.wait(move |s| s.close_row(first, &Closing::default())).expect("closed");
    assert_eq!(journal.wait(close_many).expect("written"), [0i64; 0]);
    let last = journal.wait(|s| s.open_row(&exec("sleep 1000"))).expect("opened");
    drop(journal);
    let journal = open(dir.path());
    let found = journal.wait(|s| Ok((s.counter("open/floor")?, s.open_rows()?))).expect("readable");
    assert!((600..=last).contains(&found.0), "{}", found.0);
    assert_eq!(found.1.iter().map(|row| row.id).collect::<Vec<_>>(), [last]);
}

#[test]
fn open_rows_of_dead_work_are_closed_as_interrupted() {
    let dir = state_dir();
    let journal = open(dir.path());
    let dead = journal.wait(|s| s.open_row(&exec("dead"))).expect("opened");
    let live = journal.wait(|s| s.open_row(&exec("live"))).expect("opened");
    assert_eq!(journal.wait(move |s| s.recover(&[live])).expect("recovered"), 1);
    let row = journal.wait(move |s| s.row(dead)).expect("there");
    assert_eq!((row.ok, row.ended.as_deref()), (Some(false), Some("interrupted")));
    assert_eq!(journal.wait(move |s| s.row(live)).expect("there").ok, None);
    assert!(journal.wait(|s| s.verify(None)).expect("verified").ok);
}

#[test]
fn queries_filter_before_the_limit() {
    let dir = state_dir();
    let journal = open(dir.path());
    let rows = [
        ("git status", "uid:1", true),
        ("  git\tlog", "uid:1", false),
        ("gitk", "agent:x", true),
        ("git", "agent:x", true),
    ];
    for (src, principal, ok) in rows {
        let row = NewRow { principal: principal.into(), owner: principal.into(), ..exec(src) };
        let id = journal.wait(move |s| s.open_row(&row)).expect("opened");
        let closing = Closing { ok, status: Some(i64::from(!ok)), ..Closing::default() };
        journal.wait(move |s| s.close_row(id, &closing)).expect("closed");
    }
    let ask = |query: Query| {
        journal.wait(move |s| s.query(&query)).expect("queried").iter().map(|r| r.id).collect::<Vec<_>>()
    };
    let head = || Query { head: Some("git".into()), ..Query::default() };
    assert_eq!(ask(head()), [4, 2, 1]);
    assert_eq!(ask(Query { limit: 1, ok: Some(false), ..head() }), [2]);
    assert_eq!(ask(Query { visible_to: Some("agent:x".into()), ..Query::default() }), [4, 3]);
    assert_eq!(ask(Query { before: Some(3), ..Query::default() }), [2, 1]);
    assert_eq!(ask(Query { effects: vec!["opaque".into()], limit: 2, ..Query::default() }), [4, 3]);
    assert_eq!(ask(Query { effects: vec!["fs_read".into()], ..Query::default() }), [] as [i64; 0]);
    assert_eq!(ask(Query { kinds: vec!["admin".into()], ..Query::default() }), [] as [i64; 0]);
    assert_eq!(ask(Query { since: Some(6), ..Query::default() }), [] as [i64; 0]);
}

#[test]
fn jobs_of_one_group_do_not_disturb_each_other() {
    let dir = state_dir();
    let journal = open(dir.path());
    let (tell, told) = channel();
    for n in 0..500i64 {
        let tell = tell.clone();
        let job = move |s: &mut Store| {
            let id = s.open_row(&exec(&n.to_string()))?;
            if n % 7 == 0 { Err(JournalError::Invalid("refused".to_owned())) } else { Ok(id) }
        };
        journal.write(job, move |result| tell.send((n, result)).expect("test waits"));
    }
    let mut good = 0;
    for _ in 0..500 {
        let (n, result) = told.recv().expect("answered");
        assert_eq!(result.is_err(), n % 7 == 0);
        good += i64::from(result.is_ok());
    }
    let verified = journal.wait(|s| s.verify(None)).expect("verified");
    assert!(verified.ok, "{verified:?}");
    assert_eq!(verified.rows, good);
}

#[test]
fn collection_is_a_dry_run_and_spares_pins() {
    let dir = state_dir();
    let journal = open(dir.path());
    let hashes: Vec<[u8; 32]> =
        (0..3u8).map(|n| journal.wait(move |s| s.put_blob(&[n; 20_000])).expect("stored")).collect();
    let pinned = hashes[0].iter().map(|b| format!("{b:02x}")).collect::<String>();
    journal.wait(move |s| s.pin(&pinned)).expect("pinned");
    let request = GcRequest { budget_bytes: Some(0), ..GcRequest::default() };
    let files = || {
        let all = std::fs::read_dir(dir.path().join("cas")).expect("there").flatten().map(|entry| entry.path());
        all.filter(|path| !path.ends_with("tmp"))
            .flat_map(|path| std::fs::read_dir(path).expect("there").flatten())
            .flat_map(|entry| std::fs::read_dir(entry.path()).expect("there").flatten())
            .count()
    };
    let dry = journal.wait(move |s| s.gc(request)).expect("ran");
    assert_eq!((dry.candidates, dry.deleted, dry.dry_run, files()), (2, 0, true, 3));
    // Left by a broker that was killed before its commit.
    let orphan = dir.path().join("cas/ab/cd");
    std::fs::create_dir_all(&orphan).expect("made");
    std::fs::write(orphan.join(format!("{}.zst", "abcd".repeat(16))), b"orphan").expect("written");
    // One of them is stored again in the same transaction: its file stays.
    let done = journal.wait(move |s| {
        let done = s.gc(GcRequest { apply: true, ..request })?;
        s.put_blob(&[2; 20_000])?;
        Ok(done)
    });
    assert_eq!((done.expect("ran").deleted, files()), (2, 2));
    let again = hashes[2];
    assert_eq!(journal.wait(move |s| s.blob(&again, 0, 1)).expect("stored again").bytes, [2]);
    let first = hashes[0];
    assert!(journal.wait(move |s| s.blob(&first, 0, 1)).is_ok());
    let unknown = journal.wait(|s| s.pin(&"0".repeat(64)));
    assert!(matches!(unknown, Err(JournalError::Unknown("blob"))));
}

#[test]
fn counters_events_plans_and_undo_survive() {
    let dir = state_dir();
    let journal = open(dir.path());
    let id = journal.wait(|s| s.write_row(&exec("1"))).expect("written");
    let plan = PlanRecord {
        plan_ref: "plan:1".into(),
        owner: "uid:1".into(),
        session: "default".into(),
        principal: "uid:1".into(),
        state: "pending".into(),
        created_ns: 1,
        expires_ns: 2,
        body: json!({"src": "x"}),
    };
    let stored = plan.clone();
    journal
        .wait(move |s| {
            s.raise_counter("out", 5)?;
            s.raise_counter("out", 3)?;
            s.append_event("uid:1", "journal", id)?;
            s.append_event("uid:1", "journal", id)?;
            s.add_undo(id, &UndoRecord { op: "move_back".into(), inverse: json!({"n": 1}) })?;
            s.add_undo(id, &UndoRecord { op: "delete_created".into(), inverse: json!({"n": 2}) })?;
            s.put_plan(&stored)
        })
        .expect("written");
    drop(journal);
    let journal = open(dir.path());
    assert_eq!(journal.wait(|s| s.counter("out")).expect("read"), 5);
    let events = journal.wait(|s| s.events("uid:1", "journal", Some(0), 10)).expect("read");
    assert_eq!(events.iter().map(|(seq, row)| (*seq, row.id)).collect::<Vec<_>>(), [(1, id)]);
    assert_eq!(journal.wait(|s| s.newest_event("uid:1", "journal")).expect("read"), Some(1));
    let undo = journal.wait(move |s| s.undo_records(id)).expect("read");
    assert_eq!(undo[0].op, "delete_created");
    assert_eq!(journal.wait(|s| s.plan("plan:1")).expect("read"), Some(plan));
    assert!(journal.wait(|s| s.move_plan("plan:1", "pending", "approved")).expect("moved"));
    assert!(!journal.wait(|s| s.move_plan("plan:1", "pending", "approved")).expect("not again"));
}

#[test]
fn a_second_owner_is_refused() {
    let dir = state_dir();
    let journal = open(dir.path());
    journal.wait(|s| s.write_row(&exec("1"))).expect("written");
    let second = rusqlite::Connection::open(dir.path().join("journal.db")).expect("opens");
    assert!(second.query_row("SELECT count(*) FROM entry", [], |r| r.get::<_, i64>(0)).is_err(), "locked");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn whatever_a_row_holds_verifies(src in ".{0,60}", session in "[^/]{1,20}", detail in "\\PC{0,20}", cwd in proptest::collection::vec(any::<u8>(), 0..40)) {
        let dir = state_dir();
        let journal = open(dir.path());
        let row = NewRow { session, src, cwd, detail: Some(json!({"z": detail, "a": [1, null, 2.5]})), ..exec("") };
        journal.wait(move |s| s.write_row(&row)).expect("written");
        prop_assert!(journal.wait(|s| s.verify(None)).expect("verified").ok);
    }
}
