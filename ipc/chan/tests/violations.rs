//! A peer that breaks the protocol: each fault is named, ends the channel, and leaks no descriptor.
#![allow(missing_docs)]

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use shoal_chan::{Carrier, Chan, ChanError};
use shoal_proto::header::{FLAG_MEMFD, HEADER_LEN};
use shoal_proto::launcher_ptyd::{ToLauncher, ToPtyd};
use shoal_proto::supervisor_launcher::Generation;
use shoal_proto::{Header, Message, Violation};

/// A hostile launcher in front of a ptyd.
struct Rig {
    raw: OwnedFd,
    ptyd: Chan<ToLauncher, ToPtyd>,
}

impl Rig {
    fn new(carrier: Carrier) -> Self {
        let (raw, end) = shoal_sys::socket::pair(carrier).unwrap();
        Self { raw, ptyd: Chan::from_fd(end).unwrap() }
    }

    fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
        shoal_sys::socket::send(&self.raw, &[IoSlice::new(bytes)], fds, true).unwrap();
    }

    fn fault(&mut self) -> Violation {
        let Err(ChanError::Violation(violation)) = self.ptyd.recv() else { panic!("no violation") };
        // What follows, however well-formed, is not looked at.
        assert!(matches!(self.ptyd.recv(), Err(ChanError::Closed)));
        violation
    }
}

const ADOPT: u8 = 2;
const LEADER: u8 = 3;

fn body() -> Vec<u8> {
    ToPtyd::Adopt(Generation { generation: 3 }).encode_body().unwrap()
}

fn header(kind: u8, nfds: u8, len: usize) -> Header {
    Header { kind, flags: 0, nfds, len: len.try_into().unwrap(), seq: 0 }
}

fn frame(header: &Header, body: &[u8]) -> Vec<u8> {
    [header.encode().as_slice(), body].concat()
}

/// The fault of one frame with descriptors, on packets; no descriptor may stay open.
fn fault_of(bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Violation {
    let mut rig = Rig::new(Carrier::Packet);
    let before = shoal_sys::fd::open_numbers().unwrap();
    rig.send(bytes, fds);
    let fault = rig.fault();
    assert_eq!(shoal_sys::fd::open_numbers().unwrap(), before, "a descriptor leaked");
    fault
}

fn socket() -> OwnedFd {
    shoal_sys::socket::pair(Carrier::Packet).unwrap().0
}

#[test]
fn a_good_frame_passes_the_same_rig() {
    let mut rig = Rig::new(Carrier::Packet);
    let (end, _other) = shoal_sys::socket::pair(Carrier::Packet).unwrap();
    rig.send(&frame(&header(ADOPT, 1, body().len()), &body()), &[end.as_fd()]);
    assert_eq!(rig.ptyd.recv().unwrap().fds.len(), 1);
}

#[test]
fn headers() {
    let good = frame(&header(ADOPT, 1, body().len()), &body());
    let end = socket();
    let fds = [end.as_fd()];
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    assert_eq!(fault_of(&with(0, 0), &fds), Violation::Magic(0x5300));
    assert_eq!(fault_of(&with(2, 9), &fds), Violation::Version(9));
    assert_eq!(fault_of(&with(3, 77), &fds), Violation::Type(77));
    assert_eq!(fault_of(&with(4, 2), &fds), Violation::Reserved);
    assert_eq!(fault_of(&with(6, 1), &fds), Violation::Reserved);
    assert_eq!(fault_of(&with(12, 5), &fds), Violation::Sequence { got: 5, expected: 0 });
    assert_eq!(fault_of(&good[..HEADER_LEN - 1], &fds), Violation::Short(HEADER_LEN - 1));
}

#[test]
fn lengths() {
    let said = body().len() + 1;
    assert_eq!(fault_of(&frame(&header(ADOPT, 0, said), &body()), &[]), Violation::Length { said, got: body().len() });
    let huge = Header { len: u32::MAX, ..header(ADOPT, 0, 0) };
    assert!(matches!(fault_of(&frame(&huge, &body()), &[]), Violation::Length { .. }));
    let long = vec![0; 70 * 1024];
    assert_eq!(fault_of(&frame(&header(ADOPT, 0, long.len()), &long), &[]), Violation::Truncated);
}

#[test]
fn bodies() {
    let end = socket();
    let fds = [end.as_fd()];
    let trailing = [body().as_slice(), &[0]].concat();
    assert_eq!(
        fault_of(&frame(&header(ADOPT, 1, trailing.len()), &trailing), &fds),
        Violation::Trailing { used: body().len(), len: trailing.len() }
    );
    assert!(matches!(fault_of(&frame(&header(ADOPT, 1, 0), &[]), &fds), Violation::Body(_)));
}

#[test]
fn descriptor_counts() {
    let (a, b) = (socket(), socket());
    let good = frame(&header(ADOPT, 1, body().len()), &body());
    assert_eq!(fault_of(&good, &[]), Violation::Descriptors { kind: ADOPT, got: 0, min: 1, max: 1 });
    assert_eq!(
        fault_of(&good, &[a.as_fd(), b.as_fd()]),
        Violation::Descriptors { kind: ADOPT, got: 2, min: 1, max: 1 }
    );
    let two = frame(&header(ADOPT, 2, body().len()), &body());
    assert_eq!(fault_of(&two, &[a.as_fd(), b.as_fd()]), Violation::Descriptors { kind: ADOPT, got: 2, min: 1, max: 1 });
    let none = frame(&header(ADOPT, 0, body().len()), &body());
    assert_eq!(fault_of(&none, &[]), Violation::Descriptors { kind: ADOPT, got: 0, min: 1, max: 1 });
}

#[test]
fn descriptor_kinds() {
    let (read, write) = shoal_sys::fd::pipe().unwrap();
    let pty = shoal_sys::pty::open(80, 24).unwrap();
    let lone = rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM, None).unwrap();
    let dir: OwnedFd = std::fs::File::open("/").unwrap().into();
    let memfd = shoal_sys::memfd::create("t").unwrap();
    let null = shoal_sys::fd::null().unwrap();
    let wrong_socket = [&read, &write, &pty.leader, &lone, &dir, &memfd, &null];
    for fd in wrong_socket {
        let fault = fault_of(&frame(&header(ADOPT, 1, body().len()), &body()), &[fd.as_fd()]);
        assert_eq!(fault, Violation::DescriptorKind { kind: ADOPT, index: 0, expected: "connected socket" });
    }
    // The kind is looked at before the body, so any body will do.
    for fd in [&read, &pty.follower, &dir, &null, &memfd] {
        let fault = fault_of(&frame(&header(LEADER, 1, 0), &[]), &[fd.as_fd()]);
        assert_eq!(fault, Violation::DescriptorKind { kind: LEADER, index: 0, expected: "terminal leader" });
    }
}

#[test]
fn memfd_bodies() {
    let end = socket();
    let in_memfd = |len: usize| Header { flags: FLAG_MEMFD, ..header(ADOPT, 2, len) };
    let unsealed = shoal_sys::memfd::create("t").unwrap();
    shoal_sys::memfd::write_all(&unsealed, &body()).unwrap();
    let head = frame(&in_memfd(body().len()), &[]);
    assert!(matches!(fault_of(&head, &[end.as_fd(), unsealed.as_fd()]), Violation::Body(_)));
    let longer = shoal_sys::memfd::sealed("t", &[body(), vec![0]].concat()).unwrap();
    assert!(matches!(fault_of(&head, &[end.as_fd(), longer.as_fd()]), Violation::Body(_)));
    let shorter = shoal_sys::memfd::sealed("t", &[]).unwrap();
    assert_eq!(fault_of(&head, &[end.as_fd(), shorter.as_fd()]), Violation::Length { said: body().len(), got: 0 });
    let none = Header { nfds: 0, ..in_memfd(body().len()) };
    assert!(matches!(fault_of(&frame(&none, &[]), &[]), Violation::Descriptors { .. }));
    let both = frame(&in_memfd(body().len()), &body());
    assert!(matches!(fault_of(&both, &[end.as_fd(), longer.as_fd()]), Violation::Length { .. }));
}

#[test]
fn more_descriptors_than_fit_are_closed() {
    let mut rig = Rig::new(Carrier::Packet);
    let null = std::fs::File::open("/dev/null").unwrap();
    let before = shoal_sys::fd::open_numbers().unwrap();
    // Past the bound of our own sender: straight through the system call that has none.
    let many = vec![null.as_fd(); 30];
    let mut space = vec![std::mem::MaybeUninit::uninit(); 1024];
    let mut control = rustix::net::SendAncillaryBuffer::new(&mut space);
    assert!(control.push(rustix::net::SendAncillaryMessage::ScmRights(&many)));
    let bytes = frame(&header(ADOPT, 1, body().len()), &body());
    rustix::net::sendmsg(&rig.raw, &[IoSlice::new(&bytes)], &mut control, rustix::net::SendFlags::empty()).unwrap();
    assert_eq!(rig.fault(), Violation::Truncated);
    assert_eq!(shoal_sys::fd::open_numbers().unwrap(), before, "a descriptor leaked");
}

#[test]
fn a_gap_or_a_repeat_in_the_sequence() {
    for (second, got) in [(0, 0), (2, 2)] {
        let mut rig = Rig::new(Carrier::Packet);
        let end = socket();
        let (keep, other) = shoal_sys::socket::pair(Carrier::Packet).unwrap();
        drop(end);
        rig.send(&frame(&header(ADOPT, 1, body().len()), &body()), &[keep.as_fd()]);
        rig.send(&frame(&Header { seq: second, ..header(ADOPT, 1, body().len()) }, &body()), &[other.as_fd()]);
        rig.ptyd.recv().unwrap();
        assert_eq!(rig.fault(), Violation::Sequence { got, expected: 1 });
    }
}

#[test]
fn streams_refuse_the_same() {
    let mut rig = Rig::new(Carrier::Stream);
    rig.send(&[0; HEADER_LEN], &[]);
    assert_eq!(rig.fault(), Violation::Magic(0));
    let mut rig = Rig::new(Carrier::Stream);
    rig.send(&header(ADOPT, 0, 70 * 1024).encode(), &[]);
    assert!(matches!(rig.fault(), Violation::Length { .. }));
    // Descriptors in the middle of a message belong to none.
    let mut rig = Rig::new(Carrier::Stream);
    let end = socket();
    let bytes = frame(&header(ADOPT, 1, body().len()), &body());
    rig.send(&bytes[..8], &[]);
    assert!(rig.ptyd.try_recv().unwrap().is_none());
    rig.send(&bytes[8..], &[end.as_fd()]);
    assert_eq!(rig.fault(), Violation::Truncated);
}

#[test]
fn a_stream_message_may_come_byte_by_byte() {
    let mut rig = Rig::new(Carrier::Stream);
    let (end, _other) = shoal_sys::socket::pair(Carrier::Packet).unwrap();
    let bytes = frame(&header(ADOPT, 1, body().len()), &body());
    let (last, first) = bytes.split_last().unwrap();
    for (at, byte) in first.iter().enumerate() {
        let fds = [end.as_fd()];
        rig.send(&[*byte], if at == 0 { &fds } else { &[] });
        assert!(rig.ptyd.try_recv().unwrap().is_none());
    }
    rig.send(&[*last], &[]);
    assert_eq!(rig.ptyd.recv().unwrap().fds.len(), 1);
}
