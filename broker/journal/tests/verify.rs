//! Verification against a database that somebody changed: any change of a chained member of any row is found, changes of the
//! rest are not taken for one, and with a head noted before any removed tail is found.
#![allow(clippy::disallowed_methods, reason = "tests change the files they made")]

use proptest::prelude::*;
use rusqlite::types::Value as Sql;
use serde_json::json;
use shoal_journal::*;

/// A column of `entry` or `link`, and what counts as the same in it.
struct Column {
    table: &'static str,
    name: &'static str,
    chained: bool,
}

const fn column(table: &'static str, name: &'static str, chained: bool) -> Column {
    Column { table, name, chained }
}

/// Every column of every table the chain is rebuilt from or kept in.
const COLUMNS: &[Column] = &[
    column("entry", "id", true),
    column("entry", "kind", true),
    column("entry", "parent_id", true),
    column("entry", "session", true),
    column("entry", "owner", true),
    column("entry", "principal", true),
    column("entry", "ts", true),
    column("entry", "dur_ns", true),
    column("entry", "cwd", true),
    column("entry", "env_hash", true),
    column("entry", "src", true),
    column("entry", "ast", false),
    column("entry", "effects", true),
    column("entry", "opaque", true),
    column("entry", "status", true),
    column("entry", "ok", true),
    column("entry", "ended", true),
    column("entry", "key", true),
    column("entry", "key_body", false),
    column("entry", "run", false),
    column("entry", "out", false),
    column("entry", "summary", false),
    column("entry", "detail", true),
    column("entry", "outputs", true),
    column("entry", "link", true),
    column("link", "entry_id", true),
    column("link", "closes", true),
    column("link", "digest", true),
];

fn state_dir() -> tempfile::TempDir {
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    tempfile::Builder::new().permissions(private).tempdir().expect("temp dir")
}

fn open(dir: &std::path::Path) -> Journal {
    Journal::open(dir, Settings { without_reserve: true, ..Settings::default() }).expect("opens")
}

/// A row with something in every member, or with as little as possible.
fn row(n: i64, full: bool) -> (NewRow, Closing) {
    let plain = NewRow::plain(Kind::Exec, "s", "uid:1", "agent:x", 100 + n, None);
    if !full {
        return (plain, Closing::default());
    }
    let row = NewRow {
        parent: Some(n + 1),
        cwd: format!("/srv/{n}").into_bytes(),
        env_hash: Some([7; 32]),
        src: format!("make {n}"),
        effects: json!([{"kind": "opaque"}]),
        key: Some((format!("k{n}"), [9; 32])),
        run: Some(n),
        ast: Some(json!({"stmts": []})),
        detail: Some(json!({"plan_ref": "plan:1"})),
        ..plain
    };
    let output = |kind: &str| Output {
        kind: kind.to_owned(),
        data: OutputData::Bytes(format!("{kind} {n}").into_bytes()),
        meta: Some(json!({"truncated": true})),
    };
    let closing = Closing {
        dur_ns: 5,
        status: Some(0),
        ok: true,
        ended: Some(Ended::Cancelled),
        out: Some(n),
        summary: Some(json!({"type": "str"})),
        outputs: vec![output("value"), output("stdout")],
    };
    (row, closing)
}

/// A journal of closed rows and, when asked for, an open one at its end; its head.
fn fill(dir: &std::path::Path, rows: i64, full: bool, open_end: bool) -> String {
    let journal = open(dir);
    journal
        .wait(move |store| {
            for n in 1..=rows {
                let (row, closing) = row(n, full);
                let id = store.open_row(&row)?;
                if n < rows || !open_end {
                    store.close_row(id, &closing)?;
                }
            }
            Ok(store.head().expect("not empty"))
        })
        .expect("written")
}

fn verify(dir: &std::path::Path, head: Option<String>) -> Verified {
    open(dir).wait(move |store| store.verify(head.as_deref())).expect("readable")
}

/// Another value for a column, of a type its table takes.
fn other_value(old: &Sql, declared: &str, n: u8) -> Sql {
    match (old, declared) {
        (Sql::Integer(old), _) => Sql::Integer(old ^ (1 << (n % 40))),
        (Sql::Text(old), _) if old.starts_with(['[', '{']) => Sql::Text(format!(r#"[{{"kind":"time","n":{n}}}]"#)),
        (Sql::Text(old), _) => Sql::Text(format!("{old}{n}")),
        (Sql::Blob(old), _) => {
            let mut new = old.clone();
            match new.get_mut(usize::from(n) % old.len().max(1)) {
                Some(byte) => *byte ^= 1,
                None => new.push(n),
            }
            Sql::Blob(new)
        }
        (Sql::Null, "INTEGER") => Sql::Integer(i64::from(n)),
        (Sql::Null, "BLOB") => Sql::Blob(vec![n]),
        (Sql::Null, _) => Sql::Text(format!(r#"{{"n":{n}}}"#)),
        (Sql::Real(_), _) => Sql::Null,
    }
}

/// Changes one value of one row behind the journal's back; `false` when the table takes no such value there.
fn change(dir: &std::path::Path, column: &Column, at: usize, n: u8, to_null: bool) -> bool {
    let db = rusqlite::Connection::open(dir.join("journal.db")).expect("opens");
    let Column { table, name, .. } = column;
    let rows: Vec<(i64, Sql)> = db
        .prepare(&format!("SELECT rowid, {name} FROM {table} ORDER BY rowid"))
        .expect("a column")
        .query_map([], |r| Ok((r.get(0)?, r.get(1)?)))
        .expect("rows")
        .collect::<Result<_, _>>()
        .expect("rows");
    let Some((rowid, old)) = rows.get(at % rows.len().max(1)) else { return false };
    let declared: String = db
        .query_row("SELECT type FROM pragma_table_info(?1) WHERE name = ?2", [table, name], |r| r.get(0))
        .expect("a type");
    let new = if to_null { Sql::Null } else { other_value(old, &declared, n) };
    if new == *old {
        return false;
    }
    db.execute(&format!("UPDATE {table} SET {name} = ?1 WHERE rowid = ?2"), rusqlite::params![new, rowid]).is_ok()
}

#[test]
fn every_column_counts_as_it_should() {
    for full in [true, false] {
        for column in COLUMNS {
            for to_null in [false, true] {
                let dir = state_dir();
                fill(dir.path(), 3, full, false);
                if !change(dir.path(), column, 1, 1, to_null) {
                    continue;
                }
                let verified = verify(dir.path(), None);
                let what = format!("{}.{} (full {full}, null {to_null}): {verified:?}", column.table, column.name);
                assert_eq!(verified.ok, !column.chained, "{what}");
                assert_eq!(verified.first_bad.is_some(), column.chained, "{what}");
            }
        }
    }
}

#[test]
fn the_list_of_columns_is_complete() {
    let dir = state_dir();
    fill(dir.path(), 1, true, false);
    let db = rusqlite::Connection::open(dir.path().join("journal.db")).expect("opens");
    for table in ["entry", "link"] {
        let mut names = db.prepare("SELECT name FROM pragma_table_info(?1)").expect("a query");
        let names = names.query_map([table], |r| r.get::<_, String>(0)).expect("names");
        for name in names.map(|name| name.expect("a name")).filter(|name| name != "seq") {
            let known = COLUMNS.iter().any(|column| column.table == table && column.name == name);
            assert!(known, "{table}.{name} is in nobody's list");
        }
    }
}

#[test]
fn what_was_added_or_taken_away_is_found() {
    for (what, script) in [
        ("an open row that looks closed", "UPDATE entry SET ok = 1, dur_ns = 0 WHERE id = 3"),
        ("an open row with a status", "UPDATE entry SET status = 0 WHERE id = 3"),
        ("an output of an open row", r#"UPDATE entry SET outputs = '[["value","00",1,null]]' WHERE id = 3"#),
        ("no outputs", "UPDATE entry SET outputs = '[]' WHERE id = 1"),
        (
            "outputs in another order",
            "UPDATE entry SET outputs = json_array(json(outputs -> 1), json(outputs -> 0)) WHERE id = 1",
        ),
        ("another kind", "UPDATE entry SET outputs = json_replace(outputs, '$[0][0]', 'x') WHERE id = 1"),
        ("another hash", "UPDATE entry SET outputs = json_replace(outputs, '$[0][1]', 'x') WHERE id = 1"),
        ("another length", "UPDATE entry SET outputs = json_replace(outputs, '$[0][2]', 9) WHERE id = 1"),
        ("a row in the middle", "DELETE FROM link WHERE entry_id = 2; DELETE FROM entry WHERE id = 2"),
        (
            "a link twice",
            "INSERT INTO link (entry_id, closes, digest) SELECT entry_id, closes, digest FROM link WHERE seq = 1",
        ),
        ("a truth that is neither", "UPDATE entry SET opaque = 2 WHERE id = 1"),
    ] {
        let dir = state_dir();
        fill(dir.path(), 3, true, true);
        assert!(verify(dir.path(), None).ok);
        let db = rusqlite::Connection::open(dir.path().join("journal.db")).expect("opens");
        db.execute_batch(script).expect(what);
        drop(db);
        let verified = verify(dir.path(), None);
        assert!(!verified.ok && verified.first_bad.is_some(), "{what}: {verified:?}");
    }
}

#[test]
fn what_an_output_was_cut_from_is_not_chained() {
    let dir = state_dir();
    fill(dir.path(), 3, true, false);
    let db = rusqlite::Connection::open(dir.path().join("journal.db")).expect("opens");
    db.execute_batch("UPDATE entry SET outputs = json_set(outputs, '$[0][3]', 1) WHERE id = 1").expect("changed");
    drop(db);
    assert!(verify(dir.path(), None).ok);
}

/// So many cases, unless `PROPTEST_CASES` says otherwise.
fn cases(usual: u32) -> ProptestConfig {
    let named = std::env::var_os("PROPTEST_CASES").is_some();
    let config = ProptestConfig::default();
    ProptestConfig { cases: if named { config.cases } else { usual }, ..config }
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn a_change_is_found_exactly_when_it_changes_a_chained_member(
        rows in 1i64..6,
        full: bool,
        open_end: bool,
        column in 0..COLUMNS.len(),
        at in 0usize..16,
        n in 1u8..,
        to_null: bool,
    ) {
        let column = &COLUMNS[column];
        let dir = state_dir();
        let head = fill(dir.path(), rows, full, open_end);
        prop_assert!(verify(dir.path(), Some(head.clone())).ok);
        if change(dir.path(), column, at, n, to_null) {
            let verified = verify(dir.path(), None);
            prop_assert_eq!(verified.ok, !column.chained, "{}.{}: {:?}", column.table, column.name, verified);
        }
    }

    #[test]
    fn any_removed_tail_is_found_with_a_head(rows in 1i64..6, open_end: bool, cut in 1i64..16) {
        let dir = state_dir();
        let head = fill(dir.path(), rows, true, open_end);
        let db = rusqlite::Connection::open(dir.path().join("journal.db")).expect("opens");
        let links: i64 = db.query_row("SELECT count(*) FROM link", [], |r| r.get(0)).expect("a count");
        let keep = links - 1 - (cut - 1) % links;
        // As carefully as somebody who knows the format can: every trace of the last links goes, and nothing else.
        db.execute_batch(&format!(
            "DELETE FROM link WHERE seq > {keep};
             UPDATE entry SET link = (SELECT max(seq) FROM link WHERE entry_id = id) WHERE id IN (SELECT entry_id FROM link);
             UPDATE entry SET ok = NULL, dur_ns = NULL, status = NULL, ended = NULL, outputs = NULL
               WHERE id NOT IN (SELECT entry_id FROM link WHERE closes = 1);
             DELETE FROM entry WHERE id NOT IN (SELECT entry_id FROM link);"
        )).expect("removed");
        drop(db);
        let verified = verify(dir.path(), None);
        prop_assert!(verified.ok, "a shorter chain is right in itself: {:?}", verified);
        let verified = verify(dir.path(), Some(head));
        prop_assert_eq!((verified.ok, verified.head_found), (false, Some(false)));
    }
}
