//! Ordinary work goes on inside, through the running kernel: every tool a development machine has. And what cannot work
//! says why.

use serde_json::json;
use shoal_harness::Client;

use crate::field::{Field, Ground, Principal};

/// Name, script, and what its last line is. Each runs in a directory of its own.
const TOOLS: &[(&str, &str, &str)] = &[
    (
        "git",
        "git init -q a && cd a && git config user.email a@b && git config user.name n && echo x > f && git add f && \
         git commit -qm one && git clone -q . ../b && git worktree add -q ../w -b side && cd ../w && echo y >> f && \
         git commit -qam two && git log --oneline | wc -l",
        "2",
    ),
    (
        "cargo",
        "mkdir -p src && printf '[package]\\nname = \"small\"\\nversion = \"0.1.0\"\\nedition = \"2021\"\\n[workspace]\\n' > Cargo.toml && \
         printf 'fn main() { println!(\"built\"); }' > src/main.rs && /usr/bin/cargo build --offline -q && target/debug/small",
        "built",
    ),
    (
        "npm",
        "mkdir -p dep && echo '{\"name\":\"dep\",\"version\":\"1.0.0\"}' > dep/package.json && \
         echo 'module.exports = 41' > dep/index.js && echo '{\"name\":\"top\",\"dependencies\":{\"dep\":\"file:dep\"}}' > package.json && \
         npm install --offline --no-audit --no-fund --silent && node -p 'require(\"dep\") + 1'",
        "42",
    ),
    (
        "node",
        "node -e 'require(\"child_process\").execFile(\"echo\",[\"node\"],(e,o)=>process.stdout.write(o))'",
        "node",
    ),
    (
        "python-multiprocessing",
        "/usr/bin/python3 -c 'import multiprocessing as m; p = m.Pool(2); print(sum(p.map(abs, [-1, -2, -39])))'",
        "42",
    ),
    (
        "pytest",
        "printf 'def test_it(tmp_path):\\n    (tmp_path / \"f\").write_text(\"x\")\\n' > test_it.py && \
         /usr/bin/python3 -m pytest -q -p no:cacheprovider test_it.py | tail -1 | cut -d' ' -f1,2",
        "1 passed",
    ),
    (
        "gdb",
        "echo 'int main(){return 7;}' > m.c && cc -g -o m m.c && \
         gdb -q -batch -ex 'break main' -ex run -ex 'print 6*7' ./m 2>/dev/null | tail -1 | cut -d' ' -f3",
        "42",
    ),
    ("strace", "strace -f -qq -e trace=none -o /dev/null true && echo traced", "traced"),
    (
        "make",
        "printf 'all: a b c d\\na b c d:\\n\\t@echo $@ > $@\\n' > Makefile && make -s -j4 && cat a b c d | tr -d '\\n'; echo",
        "abcd",
    ),
    // A fresh user has no entry in the system's list, which the program says at its start, outside too.
    ("ssh", "ssh -V 2>&1 | sed 's/^No user.*/OpenSSH/' | cut -c1-7", "OpenSSH"),
    (
        "sqlite3",
        "sqlite3 d.db 'pragma journal_mode=wal; create table t(a); insert into t values(41); select a+1 from t'",
        "42",
    ),
    (
        "renames-and-links",
        "mkdir -p p q && echo x > p/f && ln p/f q/f && mv p/f q/g && ln -s g q/h && mv q r && mv r p/ && cat p/r/h",
        "x",
    ),
    ("a-server-and-its-end", "(setsid sleep 100 & echo $! > pid); kill -9 $(cat pid) && echo killed", "killed"),
    ("affinity", "taskset -c 0 nice -n 3 sh -c 'renice -n 4 $$ > /dev/null && nice'", "4"),
];

/// What does not work by design, and what a person is told.
const BROKEN: &[(&str, &str, &str)] = &[
    (
        "bubblewrap",
        "bwrap --ro-bind / / true",
        "No permissions to create new namespace|No permissions to create a new namespace",
    ),
    ("unshare", "unshare -r true", "unshare failed: Operation not permitted"),
    ("mount", "mount -t tmpfs none /mnt", "ermission denied|must be superuser"),
    ("set-user-id", "su -c true nobody < /dev/null", "uthentication|ermitted|ermission|cannot|Password"),
    ("ping", "/usr/bin/python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'", "not permitted"),
];

/// Runs a script of a file of its own, so that no other language than the shell's looks at it.
fn run(field: &Field, client: &mut Client, whose: Principal, name: &str, script: &str) -> String {
    let whose = whose.name();
    let head = format!("d=$PWD/{whose}-{name}; mkdir -p $d; cd $d; export HOME=$d CARGO_HOME=$d/.cargo; exec 2>&1");
    field.ground.place.write(&format!("repo/{name}.sh"), format!("{head}\n{script}\n"));
    let source = format!("sh {{ sh ./{name}.sh }}");
    let answer = client.ok("exec", json!({"src": source, "position": "value", "timeout_ms": 45_000}));
    answer["render"].as_str().unwrap_or_default().to_owned()
}

fn last_line(text: &str) -> &str {
    text.trim_end().lines().last().unwrap_or_default().trim()
}

#[test]
fn ordinary_work_goes_on() {
    let field = Field::start(Ground::new(&[]), |_| {});
    for principal in Principal::BOTH {
        let mut client = field.session(principal, "work");
        let mut broken = Vec::new();
        for (name, script, expected) in TOOLS {
            let text = run(&field, &mut client, principal, name, script);
            if last_line(&text) != *expected {
                broken.push(format!("{name}: {text}"));
            }
        }
        assert!(broken.is_empty(), "{principal:?}: {broken:#?}");
    }
}

#[test]
fn what_cannot_work_says_why() {
    let field = Field::start(Ground::new(&[]), |_| {});
    let mut client = field.session(Principal::Permissive, "work");
    for (name, script, reasons) in BROKEN {
        let text = run(&field, &mut client, Principal::Permissive, name, script);
        assert!(reasons.split('|').any(|reason| text.contains(reason)), "{name}: {text}");
    }
}
