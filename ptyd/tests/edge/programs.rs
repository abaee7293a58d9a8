//! Programs driven to their end.

use shoal_proto::broker_ptyd::{Matched, ToBroker, Wait};

use crate::host::{Host, SIZE_TELLER, key, lines, patient, text};

#[test]
fn python_answers_and_ends() {
    let mut host = Host::start();
    let python = host.open(1, 80, 10, &["python3", "-q"]);
    host.until(1, ">>> ");
    host.send(1, vec![text("print(6 * 7)"), key("Enter")]);
    let screen = host.until(1, "\n42\n>>> ");
    assert_eq!(lines(&screen), [">>> print(6 * 7)", "42", ">>>"]);
    assert_eq!((screen.row, screen.col, screen.rows.as_slice().len()), (2, 4, 10));
    assert!(screen.changed && screen.exit.is_none());
    host.send(1, vec![key("Ctrl-d")]);
    let status = host.reap(1, &python);
    let screen = host.read(1, Some(Wait { exit: true, ..patient() }));
    assert_eq!((screen.matched, screen.exit), (Some(Matched::Exit), Some(status)));
    assert_eq!(status.code, Some(0));
    let exited = host.event(|event| matches!(event, ToBroker::Exited(_)));
    assert!(matches!(exited, ToBroker::Exited(exited) if exited.id == 1 && exited.status == status));
}

#[test]
fn an_editor_uses_the_alternate_screen_and_gives_the_first_one_back() {
    let mut host = Host::start();
    let name = format!("shoal-ptyd-{}.txt", std::process::id());
    let path = std::env::temp_dir().join(name);
    let script = format!("echo before; vim -u NONE -i NONE -n {0}; echo after; cat {0}", path.display());
    let shell = host.sh(1, &script);
    host.until(1, "~");
    host.send(1, vec![text("ihello"), key("Escape")]);
    let screen = host.until(1, "hello");
    assert!(!lines(&screen).contains(&"before"), "the alternate screen is shown");
    host.send(1, vec![text(":wq"), key("Enter")]);
    let status = host.reap(1, &shell);
    let screen = host.read(1, Some(Wait { exit: true, ..patient() }));
    std::fs::remove_file(&path).expect("the editor wrote it");
    assert_eq!(status.code, Some(0));
    assert_eq!(lines(&screen), ["before", "after", "hello"]);
}

#[test]
fn a_pager_is_scrolled_and_left() {
    let mut host = Host::start();
    let shell = host.open(1, 40, 5, &["sh", "-c", "seq 1 100 | less; echo left"]);
    host.until(1, "1\n2\n3\n4\n:");
    host.send(1, vec![key("PageDown")]);
    host.until(1, "5\n6\n7\n8\n:");
    host.send(1, vec![text("G")]);
    host.until(1, "100\n(END)");
    host.send(1, vec![text("q")]);
    host.reap(1, &shell);
    let screen = host.read(1, Some(Wait { exit: true, ..patient() }));
    assert_eq!(lines(&screen), ["left"]);
}

#[test]
fn a_process_viewer_refreshes_and_is_left() {
    let mut host = Host::start();
    let top = host.open(1, 100, 30, &["top", "-d", "60"]);
    host.until(1, "PID");
    host.send(1, vec![text("1")]);
    host.until(1, "%Cpu0");
    host.send(1, vec![text("q")]);
    assert_eq!(host.reap(1, &top).code, Some(0));
}

#[test]
fn hunks_are_chosen_one_by_one() {
    let mut host = Host::start();
    let dir = Scratch::new("git");
    let script = format!(
        "cd {} && export HOME=$PWD && git init -q . && seq 1 40 >f && git add f && \
         git -c user.name=a -c user.email=a@b commit -qm m && sed -i 's/^3$/three/; s/^30$/thirty/' f && \
         git add -p f && git diff --cached --stat | cat && git --no-pager diff --cached -U0 | grep '^[+-][a-z0-9]'",
        dir.0.display()
    );
    let shell = host.open(1, 80, 60, &["sh", "-c", &script]);
    host.until(1, "Stage this hunk [");
    host.type_text(1, "n\n");
    host.until(1, "(2/2) Stage this hunk [");
    host.type_text(1, "y\n");
    assert_eq!(host.reap(1, &shell).code, Some(0));
    let screen = host.read(1, Some(Wait { exit: true, ..patient() }));
    let shown = lines(&screen);
    assert!(shown.contains(&" 1 file changed, 1 insertion(+), 1 deletion(-)"), "{shown:?}");
    assert_eq!(shown.last_chunk(), Some(&["-30", "+thirty"]), "only the chosen hunk is staged");
}

#[test]
fn a_line_is_found_and_picked() {
    let mut host = Host::start();
    let shell =
        host.open(1, 60, 15, &["sh", "-c", "picked=$(printf 'apple\nbanana\ncherry\n' | fzf); echo \"got $picked\""]);
    host.until(1, "3/3");
    host.send(1, vec![text("ban")]);
    host.until(1, "1/3");
    host.send(1, vec![key("Enter")]);
    host.until(1, "got banana");
    host.reap(1, &shell);
}

#[test]
fn a_passphrase_of_ssh_is_asked_for_and_not_shown() {
    let mut host = Host::start();
    let dir = Scratch::new("ssh");
    let script =
        format!("cd {} && ssh-keygen -q -t ed25519 -C mark -N secret -f k && ssh-keygen -y -f k", dir.0.display());
    let shell = host.sh(1, &script);
    host.until(1, "passphrase: ");
    host.send(1, vec![text("secret"), key("Enter")]);
    let screen = host.until(1, "ssh-ed25519 ");
    assert!(!lines(&screen).concat().contains("secret"), "{:?}", lines(&screen));
    assert_eq!(host.reap(1, &shell).code, Some(0));
}

/// A directory for one test.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("shoal-ptyd-{name}-{}", std::process::id()));
        std::fs::create_dir(&dir).expect("a fresh directory");
        Self(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A test that failed may leave a program that still writes here.
        std::fs::remove_dir_all(&self.0).ok();
    }
}

#[test]
fn a_password_is_typed_without_echo() {
    let mut host = Host::start();
    let script = "stty -echo; printf 'Password: '; read -r p; stty echo; echo; echo \"length ${#p}\"";
    let shell = host.sh(1, script);
    host.until(1, "Password: ");
    host.send(1, vec![text("s3cret"), key("Enter")]);
    let screen = host.until(1, "length 6");
    assert_eq!(lines(&screen), ["Password:", "length 6"]);
    host.reap(1, &shell);
}

#[test]
fn the_size_is_seen_by_the_program_and_a_change_is_told() {
    let mut host = Host::start();
    let shell = host.open(1, 50, 7, &["python3", "-c", SIZE_TELLER]);
    host.until(1, "7 50");
    assert!(matches!(host.resize(1, 5000, 9), ToBroker::Done(_)));
    let screen = host.until(1, "9 1000");
    assert_eq!((screen.cols, screen.rows.as_slice().len(), screen.changed), (1000, 9, true));
    drop(shell);
}
