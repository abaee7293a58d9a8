//! A scripted role: gives its edge to the test, then does what single bytes tell it.

use std::io::{IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;

use shoal_proto::section::{Section, Sections};
use shoal_proto::{List, Text};
use shoal_sys::fd::inherited;

/// End now with code 7.
pub(crate) const EXIT: u8 = b'x';
/// Start a child that ignores every polite signal, in a session of its own.
pub(crate) const CHILD: u8 = b'c';
/// Close the edge, but stay.
pub(crate) const HANG_UP: u8 = b'h';

pub(crate) fn run(role: &str) {
    if role == "shoal-policy" {
        return policy();
    }
    let numbers = shoal_sys::fd::open_numbers().unwrap();
    let edge = inherited(3).unwrap();
    let report = format!(
        "{role} pid={} fds={numbers:?} env={} threads={}",
        shoal_sys::process::pid(),
        std::env::vars_os().count(),
        shoal_sys::procfs::own_threads().unwrap_or(0),
    );
    let mut script = UnixStream::connect(beside("script.sock")).unwrap();
    shoal_sys::socket::send(&script, &[IoSlice::new(report.as_bytes())], &[edge.as_fd()], true).unwrap();
    let mut edge = Some(edge);
    let mut order = [0];
    while script.read(&mut order).unwrap() == 1 {
        match order[0] {
            EXIT => std::process::exit(7),
            CHILD => stubborn_child(),
            HANG_UP => edge = None,
            other => panic!("no such order: {other}"),
        }
        script.write_all(&order).unwrap();
    }
    drop(edge);
}

fn stubborn_child() {
    use shoal_sys::spawn::{Command, Program};
    let words = ["sh", "-c", "trap '' INT TERM HUP; while :; do sleep 1000; done"];
    let words = words.map(|word| std::ffi::CString::new(word).unwrap()).to_vec();
    Command::new(Program::Path(c"/bin/sh".to_owned()), words).setsid().spawn().unwrap();
}

fn policy() {
    if let Ok(text) = std::fs::read_to_string(beside("policy-error")) {
        eprint!("{text}");
        std::process::exit(1);
    }
    let all = || List::new(vec![Text::new("/**").unwrap()]).unwrap();
    let section = Section {
        principal: Text::new(format!("uid:{}", shoal_sys::process::uid())).unwrap(),
        fs_read: all(),
        fs_write: all(),
        fs_delete: all(),
        network: shoal_proto::section::Network::Open,
        ..Section::default()
    };
    let built_in = std::env::args().any(|arg| arg == "--built-in");
    let sections = Sections { sections: List::new(vec![section]).unwrap(), built_in, ..Sections::default() };
    let output = inherited(5).unwrap();
    shoal_sys::memfd::write_all(&output, &sections.encode().unwrap()).unwrap();
    shoal_sys::memfd::seal(&output).unwrap();
    let _inputs = [inherited(3).unwrap().as_raw_fd(), inherited(4).unwrap().as_raw_fd()];
}

fn beside(name: &str) -> std::path::PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().join(name)
}
