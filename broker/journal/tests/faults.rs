//! A journal whose disk is full, read-only or damaged: said, refused, and recovered without a restart where that is
//! possible. Each test makes a small file system in a mount namespace of its own; nothing is left mounted.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests fill and damage the files they made")]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use shoal_harness::mounts::{Disk, mount, own};
use shoal_journal::*;

/// A state directory on a small file system of the test's own.
struct Small {
    // Unmounted before its directory goes.
    disk: Disk,
    dir: tempfile::TempDir,
}

impl Small {
    /// Of so many mebibytes.
    fn new(mib: u32) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        Self { disk: Disk::over(dir.path(), mib, ""), dir }
    }

    fn state(&self) -> PathBuf {
        self.dir.path().to_owned()
    }
}

fn exec(src: &str) -> NewRow {
    NewRow { src: src.to_owned(), ..NewRow::plain(Kind::Exec, "s", "uid:1", "uid:1", 5, None) }
}

fn write(journal: &Journal, src: String) -> Result<i64, JournalError> {
    journal.wait(move |store| store.write_row(&exec(&src)))
}

/// The journal's own probe runs once a second; what it finds is polled, for as long as anybody would wait.
fn until_writable(journal: &Journal) {
    let end = Instant::now() + Duration::from_secs(30);
    while journal.health() != Health::Writable {
        assert!(Instant::now() < end, "not writable again: {:?}", journal.health());
        std::thread::sleep(Duration::from_millis(20)); // poll interval
    }
}

fn unavailable(journal: &Journal) -> String {
    match journal.health() {
        Health::Unavailable(why) => why,
        Health::Writable => panic!("still called writable"),
    }
}

#[test]
fn a_full_disk_refuses_rows_and_takes_them_again_once_there_is_room() {
    if !own("a_full_disk_refuses_rows_and_takes_them_again_once_there_is_room") {
        return;
    }
    let small = Small::new(4);
    let journal =
        Journal::open(&small.state(), Settings { without_reserve: true, ..Settings::default() }).expect("opens");
    let first = write(&journal, "1".into()).expect("there is room");
    let ballast = small.disk.fill();
    let refused = (0..200).find_map(|_| write(&journal, "x".repeat(8192)).err()).expect("the disk is full");
    assert!(matches!(&refused, JournalError::Unavailable(why) if why.contains("no space left")), "{refused:?}");
    assert!(unavailable(&journal).contains("no space left"));
    // Reading goes on.
    assert_eq!(journal.wait(move |store| store.row(first)).map(|row| row.id).ok(), Some(first));
    let rows = journal.wait(|store| store.verify(None)).map(|verified| (verified.ok, verified.rows));
    let (ok, rows) = rows.expect("readable");
    assert!(ok);
    std::fs::remove_file(ballast).expect("room");
    until_writable(&journal);
    write(&journal, "again".into()).expect("there is room again");
    let verified = journal.wait(|store| store.verify(None)).expect("readable");
    assert_eq!((verified.ok, verified.rows), (true, rows + 1), "nothing of what was refused is there");
}

#[test]
fn the_reserve_lets_open_rows_be_closed_on_a_full_disk() {
    if !own("the_reserve_lets_open_rows_be_closed_on_a_full_disk") {
        return;
    }
    let small = Small::new(80);
    let journal = Journal::open(&small.state(), Settings::default()).expect("opens");
    let running = journal.wait(|store| store.open_row(&exec("make"))).expect("opened");
    let ballast = small.disk.fill();
    // What brings the disk to its end is written all the same: the reserve is given back for it.
    for n in 0..30 {
        write(&journal, format!("{n} {}", "x".repeat(4096))).expect("the reserve has room");
    }
    assert!(unavailable(&journal).contains("no space left"), "new work is refused from here on");
    let closing = Closing { ok: true, status: Some(0), ..Closing::default() };
    journal.wait(move |store| store.close_row(running, &closing)).expect("running work closes its row");
    std::fs::remove_file(ballast).expect("room");
    until_writable(&journal);
    let reserve = std::fs::metadata(small.state().join("reserve")).expect("there").len();
    assert_eq!(reserve, 64 * 1024 * 1024, "made again");
    assert!(journal.wait(|store| store.verify(None)).expect("readable").ok);
}

#[test]
fn the_reserve_is_not_for_new_work() {
    if !own("the_reserve_is_not_for_new_work") {
        return;
    }
    let small = Small::new(80);
    let journal = Journal::open(&small.state(), Settings::default()).expect("opens");
    let ballast = small.disk.fill();
    let begin = |src: String| {
        let (tell, told) = std::sync::mpsc::channel();
        journal.begin(move |store| store.open_row(&exec(&src)), move |result| tell.send(result).expect("waited for"));
        told.recv().expect("answered")
    };
    let refused = (0..200).find_map(|_| begin("x".repeat(8192)).err()).expect("the disk is full");
    assert!(matches!(&refused, JournalError::Unavailable(why) if why.contains("no space left")), "{refused:?}");
    write(&journal, "what runs may end".into()).expect("on the reserve");
    std::fs::remove_file(ballast).expect("room");
    until_writable(&journal);
    begin("again".into()).expect("there is room again");
    assert!(journal.wait(|store| store.verify(None)).expect("readable").ok);
}

#[test]
fn a_read_only_place_is_said_and_takes_blobs_again_when_it_is_none_any_more() {
    if !own("a_read_only_place_is_said_and_takes_blobs_again_when_it_is_none_any_more") {
        return;
    }
    let small = Small::new(8);
    let settings = Settings { without_reserve: true, ..Settings::default() };
    let journal = Journal::open(&small.state(), settings).expect("opens");
    journal.wait(|store| store.put_blob(&[7; 100_000])).expect("stored");
    let cas = small.state().join("cas");
    mount(&["--bind", &cas.display().to_string()], &cas);
    mount(&["-o", "remount,bind,ro"], &cas);
    let refused = journal.wait(|store| store.put_blob(&[8; 100_000])).expect_err("read-only");
    assert!(matches!(&refused, JournalError::Unavailable(why) if why.contains("Read-only")), "{refused:?}");
    // Rows that need no file are taken again as soon as the probe went through.
    until_writable(&journal);
    write(&journal, "2".into()).expect("written");
    assert!(Command::new("umount").arg(&cas).status().expect("umount runs").success());
    journal.wait(|store| store.put_blob(&[9; 100_000])).expect("stored again");
    assert!(journal.wait(|store| store.verify(None)).expect("readable").ok);
    drop(journal);
    small.disk.remount("ro");
    let error = Journal::open(&small.state(), settings).expect_err("a read-only start");
    assert!(error.is_unavailable(), "{error:?}");
    small.disk.remount("rw");
    drop(Journal::open(&small.state(), settings).expect("opens again"));
}

#[test]
fn a_damaged_page_stops_new_work_until_nothing_is_wrong_any_more() {
    let private = PermissionsExt::from_mode(0o700);
    let dir = tempfile::Builder::new().permissions(private).tempdir().expect("a directory");
    let settings = Settings { without_reserve: true, ..Settings::default() };
    let journal = Journal::open(dir.path(), settings).expect("opens");
    for n in 0..400 {
        write(&journal, format!("{n} {}", "x".repeat(2000))).expect("written");
    }
    drop(journal);
    let path = dir.path().join("journal.db");
    let whole = std::fs::read(&path).expect("readable");
    // The header of the page that holds one of the rows.
    let row = b"200 xxxx";
    let at = whole.windows(row.len()).position(|window| window == row).expect("its text is there") / 4096 * 4096;
    let mut damaged = whole.clone();
    damaged[at..at + 8].fill(0xA5);
    std::fs::write(&path, &damaged).expect("damaged");
    let journal = Journal::open(dir.path(), settings).expect("the page is not met at the start");
    let met = journal.wait(|store| store.verify(None)).expect_err("damaged pages are met");
    assert!(matches!(met, JournalError::Unavailable(_) | JournalError::Unusable(_)), "{met:?}");
    assert!(!unavailable(&journal).is_empty());
    assert!(write(&journal, "new".into()).is_err(), "new work is refused");
    // Somebody puts the file back: no restart is needed.
    let mut file = std::fs::OpenOptions::new().write(true).open(&path).expect("there");
    std::io::Write::write_all(&mut file, &whole).expect("restored");
    until_writable(&journal);
    write(&journal, "new".into()).expect("written again");
    assert!(journal.wait(|store| store.verify(None)).expect("readable").ok);
}

#[test]
fn a_database_that_is_none_stops_the_start_with_its_path() {
    let private = PermissionsExt::from_mode(0o700);
    let dir = tempfile::Builder::new().permissions(private).tempdir().expect("a directory");
    std::fs::write(dir.path().join("journal.db"), vec![7u8; 8192]).expect("written");
    let error = Journal::open(dir.path(), Settings { without_reserve: true, ..Settings::default() }).expect_err("none");
    assert!(matches!(error, JournalError::Unusable(_)), "{error:?}");
}
