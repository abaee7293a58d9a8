//! Frames that are none: headers, lengths, sequence, descriptors, encodings.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use shoal_proto::broker_worker::{Prepared, ToBroker};
use shoal_proto::header::{FLAG_MEMFD, HEADER_LEN};
use shoal_proto::{Header, Message};

use super::Raw;

/// Sends what a worker's name stands for; `false` when it is not about frames.
pub(super) fn send<Rx: Message>(
    edge: &mut Raw<ToBroker, Rx>,
    name: &str,
    claim: impl FnOnce() -> Prepared,
) -> io::Result<bool> {
    send_as(edge, name, &ToBroker::Prepared(claim()))
}

/// Sends the frame a name stands for, made out of an honest message.
pub(super) fn send_as<Tx: Message, Rx: Message>(edge: &mut Raw<Tx, Rx>, name: &str, message: &Tx) -> io::Result<bool> {
    let body = message.encode_body().map_err(|violation| io::Error::other(violation.to_string()))?;
    let honest = edge.header(message.kind(), &body, 0);
    if let Some(bytes) = header(name, honest) {
        edge.frame(&bytes, &body, &[])?;
        return Ok(true);
    }
    if let Some((header, body)) = bodies(name, honest, &body) {
        edge.frame(&header, &body, &[])?;
        return Ok(true);
    }
    descriptors(edge, name, honest, &body)
}

/// A header with one thing wrong in it.
fn header(name: &str, honest: Header) -> Option<Vec<u8>> {
    let mut bytes = honest.encode().to_vec();
    let mut set = |at: usize, value: u8| bytes[at] = value;
    match name {
        "magic" => set(0, 0xFF),
        "version" => set(2, 0xFE),
        "type-unknown" => set(3, 0xEE),
        "type-zero" => set(3, 0),
        "flag" => set(4, 0x80),
        "descriptor-announced" => set(5, 1),
        "reserved" => set(6, 1),
        "memfd-missing" => set(4, FLAG_MEMFD),
        "length-more" => bytes = Header { len: honest.len + 1, ..honest }.encode().to_vec(),
        "length-less" => bytes = Header { len: honest.len - 1, ..honest }.encode().to_vec(),
        "length-huge" => bytes = Header { len: u32::MAX, ..honest }.encode().to_vec(),
        "sequence-again" => bytes = Header { seq: honest.seq.wrapping_sub(1), ..honest }.encode().to_vec(),
        "sequence-gap" => bytes = Header { seq: honest.seq.wrapping_add(7), ..honest }.encode().to_vec(),
        _ => return None,
    }
    Some(bytes)
}

/// Header and body where the body is wrong.
fn bodies(name: &str, honest: Header, body: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let with = |body: Vec<u8>| {
        let len = u32::try_from(body.len()).unwrap_or(u32::MAX);
        Some((Header { len, ..honest }.encode().to_vec(), body))
    };
    // A length of 2^60 in the codec's variable form.
    let bomb = [0xFD, 0, 0, 0, 0, 0, 0, 0, 0x10];
    match name {
        "no-body" => with(Vec::new()),
        "trailing-byte" => with([body, &[0]].concat()),
        "short-header" => Some((honest.encode().get(..HEADER_LEN - 1)?.to_vec(), Vec::new())),
        "one-byte" => Some((vec![7], Vec::new())),
        "random" => Some(((0..200_u8).map(|n| n.wrapping_mul(167).wrapping_add(43)).collect(), Vec::new())),
        "text-not-utf8" => {
            // Finished with a render of two bytes that are no text, for a worker; for a ptyd a refusal with such a key.
            let (kind, body): (u8, Vec<u8>) = match honest.kind {
                2 if body.len() > 40 => (3, [&[0, 0, 0, 0, 2][..], &[0xC3, 0x28]].concat()),
                _ => (5, vec![0, 1, 2, 0xC3, 0x28]),
            };
            let len = u32::try_from(body.len()).unwrap_or(0);
            Some((Header { kind, len, ..honest }.encode().to_vec(), body))
        }
        "list-bomb" => {
            // A hello whose list of open executions says to be longer than memory.
            let mut body = vec![1, 0, 0];
            body.extend(bomb);
            let len = u32::try_from(body.len()).unwrap_or(0);
            Some((Header { kind: 1, len, ..honest }.encode().to_vec(), body))
        }
        "bytes-bomb" => with([&[0][..], &bomb].concat()),
        "bad-variant" => {
            // An up-call with a method that does not exist.
            let body = vec![1, 1, 200, 0];
            Some((Header { kind: 5, len: 4, ..honest }.encode().to_vec(), body))
        }
        _ => None,
    }
}

/// Descriptors where none belong, of the wrong kind, or too many.
fn descriptors<Tx: Message, Rx: Message>(
    edge: &mut Raw<Tx, Rx>,
    name: &str,
    honest: Header,
    body: &[u8],
) -> io::Result<bool> {
    if name == "descriptor-smuggled" {
        let smuggled = shoal_sys::memfd::sealed("x", b"x")?;
        edge.frame(&honest.encode(), body, &[smuggled.as_fd()])?;
        return Ok(true);
    }
    let (read, _write) = shoal_sys::fd::pipe()?;
    let many = |n: usize| std::iter::repeat_n(read.as_fd(), n).collect::<Vec<_>>();
    let numbered = |n: u8| Header { nfds: n, ..honest }.encode();
    let in_memfd = Header { flags: FLAG_MEMFD, nfds: 1, ..honest }.encode();
    let in_body = |edge: &mut Raw<Tx, Rx>, fd: BorrowedFd<'_>| edge.frame(&in_memfd, &[], &[fd]);
    match name {
        "descriptor-undeclared" => edge.frame(&numbered(1), body, &many(1))?,
        "descriptors-nine" => edge.frame(&numbered(9), body, &many(9))?,
        "descriptors-253" => edge.frame(&numbered(253), body, &many(253))?,
        "memfd-pipe" => in_body(edge, read.as_fd())?,
        "memfd-directory" => in_body(edge, std::fs::File::open("/")?.as_fd())?,
        "memfd-short" => in_body(edge, shoal_sys::memfd::sealed("x", b"x")?.as_fd())?,
        "memfd-open" => {
            let open: OwnedFd = shoal_sys::memfd::create("x")?;
            shoal_sys::memfd::write_all(&open, body)?;
            in_body(edge, open.as_fd())?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}
