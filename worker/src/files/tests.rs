use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use shoal_eval::cancel::{CancelReason, CancelToken};
use shoal_eval::host::{At, Dir, FileErrorKind, FileKind, Files as _, WriteMode};

use super::{LocalFiles, OpenDir, trash_of};

struct Fixture {
    root: tempfile::TempDir,
    files: LocalFiles,
    dir: Arc<dyn Dir>,
    cancel: CancelToken,
}

impl Fixture {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let files = LocalFiles::new(root.path().join("trash"));
        let work = root.path().join("work");
        std::fs::create_dir(&work).expect("made");
        let dir: Arc<dyn Dir> = Arc::new(OpenDir::open(work.as_os_str().as_bytes()).expect("opened"));
        Self { root, files, dir, cancel: CancelToken::new() }
    }

    fn at<'a>(&'a self, path: &'a str) -> At<'a> {
        At { dir: &self.dir, path: path.as_bytes() }
    }

    fn put(&self, path: &str, text: &str) {
        self.files.write(self.at(path), WriteMode::Truncate, text.as_bytes(), &self.cancel).expect("written");
    }

    fn text(&self, path: &str) -> String {
        let bytes = self.files.read(self.at(path), 1 << 20, &self.cancel).expect("read");
        String::from_utf8(bytes).expect("text")
    }
}

#[test]
fn writes_reads_and_appends() {
    let f = Fixture::new();
    f.put("a.txt", "one\n");
    f.files.write(f.at("a.txt"), WriteMode::Append, b"two\n", &f.cancel).expect("appended");
    assert_eq!(f.text("a.txt"), "one\ntwo\n");
    let too_large = f.files.read(f.at("a.txt"), 3, &f.cancel).expect_err("too large");
    assert_eq!(too_large.kind, FileErrorKind::TooLarge);
    let meta = f.files.meta(f.at("a.txt"), true).expect("there");
    assert_eq!((meta.kind, meta.size, meta.executable), (FileKind::File, 8, false));
    assert!(meta.modified.is_some());
}

#[test]
fn failures_have_their_kinds() {
    let f = Fixture::new();
    f.put("file", "");
    f.files.make_dir(f.at("dir"), false).expect("made");
    let kind = |result: Result<(), shoal_eval::host::FileError>| result.expect_err("fails").kind;
    assert_eq!(kind(f.files.read(f.at("none"), 9, &f.cancel).map(drop)), FileErrorKind::NotFound);
    assert_eq!(kind(f.files.read(f.at("dir"), 9, &f.cancel).map(drop)), FileErrorKind::IsDir);
    assert_eq!(kind(f.files.list(f.at("file"), &f.cancel).map(drop)), FileErrorKind::NotDir);
    assert_eq!(kind(f.files.make_dir(f.at("dir"), false)), FileErrorKind::Exists);
    assert_eq!(kind(f.files.open_dir(f.at("file")).map(drop)), FileErrorKind::NotDir);
    assert_eq!(kind(f.files.make_dir(f.at("file/x"), true)), FileErrorKind::NotDir);
    assert_eq!(kind(f.files.copy(f.at("file"), f.at("file"), &f.cancel)), FileErrorKind::Io);
    f.files.make_dir(f.at("a/b/c"), true).expect("made");
    f.files.make_dir(f.at("a/b/c"), true).expect("an existing one is fine");
}

#[test]
fn a_removed_directory_is_gone_and_a_renamed_one_is_not() {
    let f = Fixture::new();
    f.put("x", "kept");
    std::fs::rename(f.root.path().join("work"), f.root.path().join("moved")).expect("renamed");
    assert_eq!(f.text("x"), "kept");
    f.files.remove(f.at("x"), false, &f.cancel).expect("removed");
    std::fs::remove_dir(f.root.path().join("moved")).expect("removed");
    let gone = f.files.read(f.at("x"), 9, &f.cancel).expect_err("gone");
    assert_eq!(gone.kind, FileErrorKind::CwdGone);
    assert_eq!(f.files.open_dir(f.at("..")).map(drop).expect_err("gone").kind, FileErrorKind::CwdGone);
    assert!(f.files.open_dir(f.at("/")).is_ok(), "an absolute path still works");
}

#[test]
fn directories_are_entered_by_name() {
    let f = Fixture::new();
    f.files.make_dir(f.at("a/b"), true).expect("made");
    let dir = f.files.open_dir(f.at("a/./b/../b/")).expect("opened");
    assert!(dir.path().as_bytes().ends_with(b"work/a/b"), "{:?}", dir.path());
    let names = f.files.list(f.at("a"), &f.cancel).expect("listed");
    assert_eq!(names.iter().map(|e| (&*e.name, e.kind)).collect::<Vec<_>>(), [(&b"b"[..], FileKind::Dir)]);
}

#[test]
fn links_copies_and_renames() {
    let f = Fixture::new();
    f.put("a", "text");
    f.files.link(f.at("a"), f.at("l"), true).expect("linked");
    assert_eq!(f.files.read_link(f.at("l")).expect("a link").as_bytes(), b"a");
    f.files.link(f.at("a"), f.at("h"), false).expect("linked");
    let id = |name| f.files.meta(f.at(name), false).expect("there").id;
    assert_eq!(id("a"), id("h"));
    assert_ne!(id("a"), id("l"));
    f.files.copy(f.at("l"), f.at("c"), &f.cancel).expect("copied");
    f.files.rename(f.at("c"), f.at("d"), &f.cancel).expect("renamed");
    assert_eq!(f.text("d"), "text");
    let missing = f.files.rename(f.at("c"), f.at("e"), &f.cancel).expect_err("missing");
    assert_eq!(missing.kind, FileErrorKind::NotFound);
}

#[test]
fn removing_needs_recursive_and_the_trash_keeps() {
    let f = Fixture::new();
    f.files.make_dir(f.at("d/e"), true).expect("made");
    f.put("d/e/x", "1");
    f.files.link(f.at("/etc"), f.at("d/link"), true).expect("linked");
    assert_eq!(f.files.remove(f.at("d"), false, &f.cancel).expect_err("not empty").kind, FileErrorKind::Io);
    f.files.remove(f.at("d"), true, &f.cancel).expect("removed");
    assert!(f.files.meta(f.at("d"), false).is_err());
    f.put("y", "1");
    let first = f.files.trash(f.at("y"), &f.cancel).expect("moved");
    f.put("y", "2");
    let second = f.files.trash(f.at("y"), &f.cancel).expect("moved");
    assert_ne!(first, second);
    let kept = f.files.read(At { dir: &f.dir, path: first.as_bytes() }, 9, &f.cancel).expect("kept");
    assert_eq!(kept, b"1");
}

#[test]
fn touch_creates_and_dates() {
    let f = Fixture::new();
    f.files.touch(f.at("t")).expect("created");
    let old = std::fs::File::options().write(true).open(f.root.path().join("work/t")).expect("opened");
    old.set_modified(std::time::UNIX_EPOCH).expect("set");
    f.files.touch(f.at("t")).expect("touched");
    let modified = f.files.meta(f.at("t"), true).expect("there").modified.expect("a time");
    assert!(modified.as_second() > 1_000_000_000);
}

#[test]
fn a_waiting_read_ends_with_its_token() {
    let f = Fixture::new();
    let fifo = f.root.path().join("work/fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .expect("made");
    let mut reader = f.files.open(f.at("fifo"), &f.cancel).expect("opened");
    let waiting = std::thread::spawn(move || reader.read(&mut [0; 8]).is_err());
    f.cancel.cancel(CancelReason::Cancelled);
    assert!(waiting.join().expect("no panic"));
}

#[test]
fn the_trash_is_below_the_data_directory() {
    let of = |pairs: &'static [(&str, &str)]| {
        trash_of(move |name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).into()))
    };
    assert_eq!(of(&[("XDG_DATA_HOME", "/d"), ("HOME", "/h")]).to_str(), Some("/d/shoal/trash"));
    assert_eq!(of(&[("XDG_DATA_HOME", "rel"), ("HOME", "/h")]).to_str(), Some("/h/.local/share/shoal/trash"));
}

/// Keeps inverses in memory.
#[derive(Default)]
struct Memory(std::sync::Mutex<Vec<super::Inverse>>);

impl super::Recorder for Memory {
    fn is_open(&self) -> bool {
        true
    }

    fn record(&self, _op: &str, inverse: &super::Inverse) {
        // Through its text, as the journal keeps it.
        let text = serde_json::to_string(inverse).expect("JSON");
        self.0.lock().expect("not poisoned").push(serde_json::from_str(&text).expect("an inverse"));
    }
}

impl Memory {
    fn undo(&self) -> Result<Vec<String>, shoal_value::ErrorValue> {
        let steps = self.0.lock().expect("not poisoned");
        steps.iter().rev().map(super::Inverse::carry_out).filter_map(Result::transpose).collect()
    }
}

#[test]
fn changes_are_taken_back_once_and_only_while_nothing_is_newer() {
    let mut f = Fixture::new();
    let memory = Arc::new(Memory::default());
    f.put("old", "before");
    f.put("gone", "kept");
    f.files = LocalFiles::new(f.root.path().join("trash")).recorded(memory.clone());
    f.put("old", "after");
    f.put("new", "made");
    f.files.make_dir(f.at("dir"), false).expect("made");
    f.files.trash(f.at("gone"), &f.cancel).expect("moved");
    f.files.rename(f.at("new"), f.at("old"), &f.cancel).expect("renamed");
    assert_eq!(f.text("old"), "made");
    let actions = memory.undo().expect("undone");
    assert_eq!(actions.len(), 6, "{actions:?}");
    assert_eq!((f.text("old"), f.text("gone")), ("before".into(), "kept".into()));
    assert!(f.files.meta(f.at("new"), false).is_err() && f.files.meta(f.at("dir"), false).is_err());

    memory.0.lock().expect("not poisoned").clear();
    f.put("old", "later");
    assert_eq!(memory.undo().expect("undone").len(), 1);
    assert!(memory.undo().expect("nothing to do").is_empty(), "twice does nothing");
    memory.0.lock().expect("not poisoned").clear();
    f.put("old", "later");
    std::fs::File::options()
        .append(true)
        .open(f.root.path().join("work/old"))
        .and_then(|mut file| {
            use std::io::Write as _;
            file.write_all(b" and newer")
        })
        .expect("written");
    assert_eq!(&*memory.undo().expect_err("stale").code, "stale_undo");
}
