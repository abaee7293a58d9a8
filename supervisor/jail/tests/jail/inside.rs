//! What holds inside.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use shoal_proto::section::{Network, Section};
use shoal_proto::supervisor_broker::Lane;
use shoal_proto::{List, Text};

use crate::Test;
use crate::rig::{Rig, globs, permissive};

pub(crate) const TESTS: &[Test] = &[
    ("claims_hold", claims_hold),
    ("the_kernels_places_are_not_there", the_kernels_places_are_not_there),
    ("the_session_is_alone", the_session_is_alone),
    ("no_capability_and_no_namespace", no_capability_and_no_namespace),
    ("temporary_files_are_its_own", temporary_files_are_its_own),
    ("a_kernel_below_tmp_stays_hidden", a_kernel_below_tmp_stays_hidden),
    ("protected_names_are_read_only", protected_names_are_read_only),
    ("ordinary_work_goes_on", ordinary_work_goes_on),
    ("a_scoped_session_sees_what_is_granted", a_scoped_session_sees_what_is_granted),
    ("a_lane_adds_its_effects", a_lane_adds_its_effects),
    ("no_network_means_loopback", no_network_means_loopback),
    ("ports_are_for_tcp_alone", ports_are_for_tcp_alone),
    ("a_missing_directory_is_told", a_missing_directory_is_told),
    ("the_host_is_untouched", the_host_is_untouched),
    ("without_namespaces_it_is_weaker_and_says_so", without_namespaces_it_is_weaker_and_says_so),
];

/// Every claim but C10 for root, whom the process limit does not bind, and C11, which needs a memory controller.
fn claims_hold() {
    let rig = Rig::new();
    let host = rig.host();
    assert_eq!((host.level(), host.missing.as_str()), ("L3", ""));
    let mut expected = 0b1011_1111_1111;
    if shoal_sys::process::uid() == 0 {
        expected &= !(1 << 9);
    }
    assert_eq!(host.claims, expected, "{:012b}", host.claims);
}

fn the_kernels_places_are_not_there() {
    let rig = Rig::new();
    let (state, socket) = (rig.home("state"), rig.home("run/k.sock"));
    let script = format!(
        "cat {state}/lock; ls {state}; chmod 700 {state}; touch {state}/x; mv {state} {state}2; rmdir {state};
         mv {home} {home}2; mkdir -p {state}/y; head -c1 {socket}; rm {socket}; : > {socket}; umount {state}; echo done",
        home = rig.dir.join("home").display(),
    );
    let text = rig.shell(&permissive(), &script);
    assert!(!text.contains("secret"), "{text}");
    assert_eq!(text.lines().last(), Some("done"));
    let failures = text
        .lines()
        .filter(|line| line.contains("annot") || line.contains("failed") || line.contains("denied"))
        .count();
    assert!(failures >= 8, "{text}");
    // The same from outside: all there.
    assert_eq!(std::fs::read_to_string(rig.dir.join("home/state/lock")).unwrap(), "secret");
    assert!(rig.dir.join("home/run/k.sock").exists());
}

fn the_session_is_alone() {
    let rig = Rig::new();
    let me = std::process::id();
    let text = rig.shell(&permissive(), &format!("ls -d /proc/[0-9]* | wc -l; kill -0 {me}; ls /dev/pts; echo $$"));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].parse::<u32>().unwrap() <= 4, "{text}");
    assert!(text.contains("No such process") || text.contains("no such process"), "{text}");
    assert!(lines.contains(&"ptmx") && !lines.contains(&"0"), "{text}");
}

fn no_capability_and_no_namespace() {
    let rig = Rig::new();
    let script = "grep -E 'Cap(Eff|Prm|Bnd|Amb|Inh)|NoNewPrivs|^Seccomp:' /proc/self/status | tr '\\n' ' '; echo;
        unshare -U true; unshare -m true; mount -t tmpfs x /mnt; umount /proc; echo 1 > /proc/sys/vm/drop_caches;
        echo x > /proc/sys/kernel/core_pattern; id -u";
    let text = rig.shell(&permissive(), script);
    assert!(!text.contains("Permission granted"));
    let first = text.lines().next().unwrap();
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(first.contains(&format!("{set}:\t0000000000000000")), "{first}");
    }
    assert!(first.contains("NoNewPrivs:\t1") && first.contains("Seccomp:\t2"), "{first}");
    assert_eq!(text.lines().last(), Some(shoal_sys::process::uid().to_string().as_str()));
    assert!(text.matches("unshare").count() >= 2, "{text}");
    assert!(text.contains("Read-only file system") || text.contains("Permission denied"), "{text}");
}

fn temporary_files_are_its_own() {
    let rig = Rig::new();
    let mark = format!("shoal-mark-{}", std::process::id());
    let outside = std::env::temp_dir().join(&mark);
    std::fs::write(&outside, "host").unwrap();
    let text = rig.shell(
        &permissive(),
        &format!("cat /tmp/{mark}; echo in > /tmp/x && cat /tmp/x; echo s > /dev/shm/{mark} && echo shm"),
    );
    std::fs::remove_file(&outside).unwrap();
    assert!(!text.contains("host") && text.contains("in\n") && text.contains("shm\n"), "{text}");
    assert!(!Path::new("/dev/shm").join(&mark).exists());
    // The directory a session starts in comes along, even from there.
    let cwd = std::env::temp_dir().join(format!("shoal-cwd-{}", std::process::id()));
    std::fs::create_dir(&cwd).unwrap();
    let cwd = std::fs::canonicalize(cwd).unwrap();
    let plan = rig.plan(&permissive(), &rig.host(), &cwd, None);
    let text = rig.shell_in(&plan, &format!("echo new > {}/file; echo ok", cwd.display()));
    assert_eq!((text.as_str(), std::fs::read_to_string(cwd.join("file")).unwrap().as_str()), ("ok\n", "new\n"));
    std::fs::remove_dir_all(cwd).unwrap();
}

/// A directory below `/tmp` that holds the kernel's own places comes along without them, in both views.
fn a_kernel_below_tmp_stays_hidden() {
    let base = std::env::temp_dir().join(format!("shoal-below-{}", std::process::id()));
    std::fs::create_dir_all(base.join("deep/state")).unwrap();
    let base = std::fs::canonicalize(base).unwrap();
    std::fs::write(base.join("deep/state/lock"), "secret").unwrap();
    std::fs::write(base.join("mine"), "mine").unwrap();
    let mut rig = Rig::new();
    rig.kernel.hidden.push(base.join("deep/state"));
    let script = format!(
        "cat {base}/mine; cat {base}/deep/state/lock; mv {base}/deep {base}/away; ls {base}/deep/state; echo end",
        base = base.display()
    );
    let plan = rig.plan(&permissive(), &rig.host(), &base, None);
    let text = rig.shell_in(&plan, &script);
    assert!(text.starts_with("mine") && text.ends_with("end\n") && !text.contains("secret"), "{text}");
    let granted = globs(&[&format!("{}/**", base.display())]);
    let section =
        Section { fs_read: granted.clone(), fs_write: granted.clone(), fs_delete: granted, ..Section::default() };
    let text = rig.shell(&section, &script);
    assert!(text.starts_with("mine") && text.ends_with("end\n") && !text.contains("secret"), "{text}");
    // All of /tmp is the session's own.
    let all = Section { fs_read: globs(&["/tmp/**"]), ..Section::default() };
    let text = rig.shell(&all, &script);
    assert!(!text.starts_with("mine") && !text.contains("secret"), "{text}");
    std::fs::remove_dir_all(base).unwrap();
}

fn protected_names_are_read_only() {
    let rig = Rig::new();
    let work = rig.dir.join("home/work");
    std::fs::create_dir_all(work.join(".git/hooks")).unwrap();
    std::fs::write(work.join(".git/config"), "[core]").unwrap();
    let (bashrc, ssh, home) = (rig.home(".bashrc"), rig.home(".ssh"), rig.dir.join("home"));
    let mut section = permissive();
    section.git_safe = true;
    let plan = rig.plan(&section, &rig.host(), &work, None);
    let script = format!(
        "echo evil >> {bashrc}; echo key > {ssh}/authorized_keys; mv {ssh} {ssh}2; mv {home} {home}2; cat {bashrc};
         cd {work}; echo h > .git/hooks/pre-commit; mv .git .g2; echo c > .git/config; echo o > .git/HEAD && echo commit works",
        home = home.display(),
        work = work.display(),
    );
    let text = rig.shell_in(&plan, &script);
    assert!(text.contains("# mine") && text.contains("commit works"), "{text}");
    assert_eq!(std::fs::read_to_string(rig.dir.join("home/.bashrc")).unwrap(), "# mine");
    assert!(!rig.dir.join("home/.ssh/authorized_keys").exists());
    assert!(!work.join(".git/hooks/pre-commit").exists());
    assert_eq!(std::fs::read_to_string(work.join(".git/config")).unwrap(), "[core]");
}

fn ordinary_work_goes_on() {
    let rig = Rig::new();
    let work = rig.home("work");
    let script = format!(
        "cd {work} && mkdir -p a b && echo x > a/f && mv a/f b/g && ln b/g a/h && cat a/h && rm -r a b && echo files
         echo data | (cat; sleep 0) | tr d D; exec 3</dev/zero; head -c2 <&3 | wc -c; test -c /dev/null && echo null
         python3 -c 'import subprocess, threading, multiprocessing as m
t=threading.Thread(target=print, args=(\"thread\",)); t.start(); t.join()
print(subprocess.run([\"echo\",\"sub\"],capture_output=True,text=True).stdout.strip())
with m.Pool(2) as p: print(sum(p.map(abs,[-1,-2])))
import pty,os
print(os.path.basename(os.ttyname(pty.openpty()[1])).isdigit())' 2>&1"
    );
    let text = rig.shell(&permissive(), &script);
    for line in ["x", "files", "Data", "2", "null", "thread", "sub", "3", "True"] {
        assert!(text.lines().any(|got| got.trim() == line), "{line}: {text}");
    }
}

fn a_scoped_session_sees_what_is_granted() {
    let rig = Rig::new();
    let (work, home) = (rig.home("work"), rig.dir.join("home"));
    std::fs::write(home.join("work/seen"), "seen").unwrap();
    std::fs::write(home.join("private"), "private").unwrap();
    let granted = globs(&[&format!("{work}/**")]);
    let section = Section { fs_read: granted.clone(), ..Section::default() };
    let script = format!(
        "cat {work}/seen; cat {home}/private; ls {home}/state; echo n > {work}/new; ls /; cat /etc/passwd | head -1;
         ls /dev | tr '\\n' ' '; echo; echo t > /tmp/t && cat /tmp/t; echo x > /usr/x; ls /run /root",
        home = home.display(),
    );
    let text = rig.shell(&section, &script);
    assert!(text.contains("seen") && text.contains("root:") && text.contains("t\n"), "{text}");
    assert!(
        text.lines().any(|line| line == "usr") && !text.lines().any(|line| line == "srv"),
        "names of its tree: {text}"
    );
    assert!(!text.contains("private\n") && !text.contains("secret"), "{text}");
    assert!(!home.join("work/new").exists());
    let writable =
        Section { fs_write: granted.clone(), fs_delete: granted.clone(), fs_read: granted, ..Section::default() };
    let text = rig.shell(
        &writable,
        &format!("cd {work} && echo n > new && mkdir d && mv new d/ && cat d/new && rm -r d && echo gone"),
    );
    assert_eq!(text, "n\ngone\n");
    // Changing without removing, and neither without reading.
    let write_only = Section { fs_write: globs(&[&format!("{work}/**")]), ..Section::default() };
    let text = rig.shell(&write_only, &format!("echo w > {work}/w; cat {work}/w; rm {work}/w; echo end"));
    assert!(home.join("work/w").exists() && !text.contains("w\n") && text.ends_with("end\n"), "{text}");
}

fn a_lane_adds_its_effects() {
    let rig = Rig::new();
    let work = rig.home("work");
    let lane = Lane { write: List::new(vec![Text::new(format!("{work}/made")).unwrap()]).unwrap(), ..Lane::default() };
    let plan = rig.plan(&Section::default(), &rig.host(), Path::new("/"), Some(&lane));
    assert_eq!(rig.shell_in(&plan, &format!("echo l > {work}/made && cat {work}/made")), "l\n");
    let without = rig.shell(&Section::default(), &format!("cat {work}/made; echo end"));
    assert!(!without.contains("l\n"), "{without}");
}

fn no_network_means_loopback() {
    let rig = Rig::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!(
        "python3 -c 'import socket
def go(f):
    try: f(); print(\"through\")
    except OSError as e: print(\"refused\", e.errno)
go(lambda: socket.create_connection((\"127.0.0.1\", {port}), 2))
s=socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen(); go(lambda: socket.create_connection(s.getsockname(), 2))
go(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b\"x\", (\"8.8.8.8\", 53)))' 2>&1"
    );
    let none = Section { network: Network::None, ..permissive() };
    let text = rig.shell(&none, &script);
    assert_eq!(text.lines().collect::<Vec<_>>(), ["refused 111", "through", "refused 101"], "{text}");
    let open = rig.shell(&permissive(), &script);
    assert!(open.starts_with("through\nthrough\n"), "{open}");
    let mut ports = Section { network: Network::Ports, ..permissive() };
    let text = rig.shell(&ports, &script);
    assert!(text.contains("refused 13\n") && text.contains("PermissionError"), "nothing granted: {text}");
    ports.net_connect = List::new(vec![Text::new(format!("127.0.0.1:{port}")).unwrap()]).unwrap();
    let text = rig.shell(&ports, &script);
    assert!(text.contains("through\n"), "{text}");
}

/// The system holds TCP to the granted ports and nothing else that reaches a server of TCP.
fn ports_are_for_tcp_alone() {
    let rig = Rig::new();
    let script = "python3 -c 'import socket
for family in (socket.AF_INET, socket.AF_INET6):
    for kind, protocol in ((1, 0), (1, 6), (1, 262), (1, 132), (1 | socket.SOCK_CLOEXEC, 262), (5, 132), (2, 17)):
        try: socket.socket(family, kind, protocol); print(0, end=\" \")
        except OSError as e: print(e.errno, end=\" \")'";
    let text = rig.shell(&Section { network: Network::Ports, ..permissive() }, script);
    assert_eq!(text, "0 0 93 93 93 1 1 ".repeat(2));
}

fn a_missing_directory_is_told() {
    let rig = Rig::new();
    let plan = rig.plan(&Section::default(), &rig.host(), &rig.dir.join("home/work"), None);
    let text = rig.shell_in(&plan, "echo never");
    assert!(text.contains("enter the session's directory") && !text.contains("never"), "{text}");
}

fn the_host_is_untouched() {
    let rig = Rig::new();
    let mounts = || -> BTreeSet<String> {
        std::fs::read_to_string("/proc/self/mountinfo").unwrap().lines().map(str::to_owned).collect()
    };
    let before = mounts();
    for section in [permissive(), Section::default()] {
        assert_eq!(rig.shell(&section, "echo in"), "in\n");
    }
    // Tests that run at the same time mount and unmount too: theirs come to an end.
    let added = || mounts().difference(&before).cloned().collect::<Vec<_>>();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !added().is_empty() {
        assert!(Instant::now() < deadline, "{:#?}", added());
        std::thread::yield_now();
    }
    assert_eq!(std::fs::read_dir("/tmp/.dev").map(|_| ()).unwrap_err().kind(), std::io::ErrorKind::NotFound);
}

fn without_namespaces_it_is_weaker_and_says_so() {
    let rig = Rig::new();
    let mut weak = rig.host();
    weak.namespaces = false;
    assert_eq!(weak.level(), "L2");
    let granted = globs(&[&format!("{}/**", rig.home("work"))]);
    let section = Section { fs_read: granted.clone(), fs_write: granted, network: Network::Open, ..Section::default() };
    let plan = rig.plan(&section, &weak, Path::new("/"), None);
    let script = format!(
        "cat {}/lock; kill -0 {}; python3 -c 'import socket; socket.socket(socket.AF_UNIX)' 2>&1 | tail -1; echo end",
        rig.home("state"),
        std::process::id()
    );
    let text = rig.shell_in(&plan, &script);
    assert!(!text.contains("secret") && text.contains("PermissionError") && text.ends_with("end\n"), "{text}");
}
