//! Ordinary work goes on inside: every tool that works on this machine without a jail works in one.

use crate::Test;
use crate::rig::{Rig, permissive};

pub(crate) const TESTS: &[Test] =
    &[("tools_work_inside", tools_work_inside), ("what_cannot_work_says_why", what_cannot_work_says_why)];

/// Name, script, and what its last line is. The directory is fresh for each run.
const TOOLS: &[(&str, &str, &str)] = &[
    (
        "git",
        "git init -q a && cd a && git config user.email a@b && git config user.name n && echo x > f && git add f &&
         git commit -qm one && git clone -q . ../b && git worktree add -q ../w -b side && cd ../w && echo y >> f &&
         git commit -qam two && git log --oneline | wc -l",
        "2",
    ),
    (
        "make",
        "printf 'all: a b\\na b:\\n\\t@echo $@ > $@\\n' > Makefile && make -s -j4 && cat a b | tr -d '\\n'; echo",
        "ab",
    ),
    ("cc", "echo 'int main(){return 7;}' > m.c && cc -o m m.c && ./m; echo $?", "7"),
    (
        "node",
        "node -e 'require(\"child_process\").execFile(\"echo\",[\"node\"],(e,o)=>process.stdout.write(o))'",
        "node",
    ),
    (
        "npm",
        "npm init -y >/dev/null && npm pack --silent --offline >/dev/null 2>&1 && tar -tzf *.tgz",
        "package/package.json",
    ),
    (
        "sqlite3",
        "sqlite3 d.db 'pragma journal_mode=wal; create table t(a); insert into t values(41); select a+1 from t'",
        "42",
    ),
    ("ssh", "ssh -V 2>&1 | cut -c1-7", "OpenSSH"),
    ("strace", "strace -qq -e trace=none -o /dev/null true && echo traced", "traced"),
    (
        "gdb",
        "gdb -q -batch -ex 'break main' -ex run -ex 'print 6*7' --args true 2>/dev/null | tail -1 | tr -d '$' | cut -d' ' -f3",
        "42",
    ),
    (
        "vim",
        "script -qec \"vim -u NONE -es -c 'put =6*7' -c 'wq! out'\" /dev/null </dev/null >/dev/null; grep -c 42 out",
        "1",
    ),
    (
        "tmux",
        "tmux -L t new-session -d 'echo in-tmux > out; sleep 0' && until test -s out; do sleep 0.05; done; cat out",
        "in-tmux",
    ),
    ("jq", "echo '{\"a\":[1,2]}' | jq -c .a", "[1,2]"),
    ("tar", "mkdir d && echo x > d/f && tar -czf t.tgz d && rm -r d && tar -xzf t.tgz && cat d/f", "x"),
    ("jobs", "sleep 100 & kill $!; wait $! 2>/dev/null; echo $?", "143"),
    ("later-signal", "(setsid sleep 100 & echo $! > pid); kill -9 $(cat pid) && echo killed", "killed"),
    ("nice", "nice -n 5 sh -c 'renice -n 6 $$ >/dev/null && nice'", "6"),
    ("taskset", "taskset -c 0 echo pinned", "pinned"),
    ("links", "mkdir p q && echo x > p/f && ln p/f q/f && mv p/f q/g && ln -s g q/h && cat q/h", "x"),
    ("man-pages", "ls /usr/share >/dev/null && echo listed", "listed"),
];

fn last_line(text: &str) -> &str {
    text.trim_end().lines().last().unwrap_or_default().trim()
}

fn tools_work_inside() {
    let rig = Rig::new();
    let plan = rig.plan(&permissive(), &rig.host(), std::path::Path::new("/"), None);
    let mut absent = Vec::new();
    let mut broken = Vec::new();
    for (name, script, expected) in TOOLS {
        let run = |of: &str| {
            format!("d={}/{name}-{of}; mkdir -p $d && cd $d && export HOME=$d && {script}", rig.home("work"))
        };
        if last_line(&Rig::shell_outside(&run("out"))) != *expected {
            absent.push(*name);
            continue;
        }
        let text = rig.shell_in(&plan, &run("in"));
        if last_line(&text) != *expected {
            broken.push(format!("{name}: {text}"));
        }
    }
    println!("not on this machine: {absent:?}");
    assert!(broken.is_empty(), "{broken:#?}");
    // The ones every development machine has, so that the test cannot pass by their absence.
    for name in ["git", "make", "cc", "tar", "jobs", "later-signal", "links"] {
        assert!(!absent.contains(&name), "{name} does not work outside either");
    }
}

/// Known limits, each with the error a person sees.
fn what_cannot_work_says_why() {
    let rig = Rig::new();
    for (script, reason) in [
        ("unshare -r true", "unshare failed: Operation not permitted"),
        ("mount -t tmpfs none /mnt", "ermission denied|must be superuser|ermitted"),
        ("su -c true nobody </dev/null", "uthentication|ermitted|ermission|cannot"),
        ("PATH=$PATH:/usr/sbin:/sbin chroot / true", "Operation not permitted"),
    ] {
        let text = rig.shell(&permissive(), &format!("{script} 2>&1"));
        assert!(reason.split('|').any(|reason| text.contains(reason)), "{script}: {text}");
    }
}
