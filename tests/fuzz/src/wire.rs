//! The public socket: frames, requests, parameters, references, effects.

use shoal_wire::frame::{Fed, FrameReader};
use shoal_wire::{Request, path, refs, uri};

use crate::Target;

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "wire_frames", run: frames, seeds: &[b"{}\n{\"a\":1}\r\n", b"\n\n", b"x"] },
    Target { name: "wire_request", run: request, seeds: REQUESTS },
    Target {
        name: "wire_uri",
        run: uris,
        seeds: &[b"shoal://out/8?path=.x&slice=0..5", b"shoal://val/blake3:00", b"shoal://events/journal"],
    },
    Target {
        name: "wire_ref",
        run: references,
        seeds: &[b"out:3", b"task:7", b"plan:9b1f6c0e4d7a4c33a1e05b7d2f8890ce", b"val:blake3:00"],
    },
    Target { name: "wire_path", run: paths, seeds: &[b".rows[0].a", b"out[0..2]", b"[\"a b\"]", b"a.b.c"] },
    Target {
        name: "leash_effects",
        run: effects,
        seeds: &[br#"[{"kind":"fs_read","paths":["/a/../b"]},{"kind":"opaque"}]"#],
    },
];

const REQUESTS: &[&[u8]] = &[
    br#"{"jsonrpc":"2.0","id":1,"method":"exec","params":{"src":"1 + 1","position":"value","elide":{"max_bytes":10}}}"#,
    br#"{"jsonrpc":"2.0","id":null,"method":"session.attach","params":{"session":"a","client":{"kind":"x","more":[1]}}}"#,
    br#"{"jsonrpc":"2.0","id":{},"method":"pty.send","params":{"pty_id":"pty:1","input":[{"key":"Enter"},[{"bytes":"AA=="}]]}}"#,
    br#"{"jsonrpc":"2.0","id":2,"method":"journal.query","params":{"effects":["fs.read"],"limit":5}}"#,
];

/// However the bytes are split, the same frames come out.
fn frames(bytes: &[u8]) {
    let whole = read(bytes, bytes.len().max(1));
    for step in [1, 3, 7] {
        assert_eq!(read(bytes, step), whole);
    }
}

fn read(bytes: &[u8], step: usize) -> Vec<Vec<u8>> {
    let mut reader = FrameReader::new(64 * 1024);
    let mut frames = Vec::new();
    for part in bytes.chunks(step) {
        let mut rest = part;
        while !rest.is_empty() {
            match reader.feed(&mut rest) {
                Fed::Frame(frame) => frames.push(frame.to_vec()),
                Fed::NeedMore => {}
                Fed::TooLong => return frames,
            }
        }
    }
    frames
}

/// A request decodes or is rejected, and its parameters decode for their method or are refused.
fn request(bytes: &[u8]) {
    if let Ok(request) = Request::decode(bytes) {
        let text = request.params.map(|p| p.get());
        assert!(text.is_none_or(|t| bytes.windows(t.len().max(1)).any(|w| w == t.as_bytes())));
        if let Err(refusal) = shoal_wire::params::decode::<shoal_wire::params::exec::Exec>(request.params) {
            assert!(!refusal.message.is_empty());
        }
    }
}

/// A reference whose segments are given decodes to what it names, and never panics.
fn uris(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(bad) = uri::Uri::parse(text) {
        assert!(!format!("{bad:?}").is_empty());
    }
}

fn references(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(parsed) = refs::Ref::parse(text) {
        let shown = parsed.to_string();
        assert_eq!(refs::Ref::parse(&shown).map(|r| r.to_string()), Some(shown));
    }
}

fn paths(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(steps) = path::parse(text) {
        assert!(steps.len() <= text.len() + 1);
    }
}

/// Judging never panics, and a denial is never approvable.
fn effects(bytes: &[u8]) {
    let Ok(effects) = serde_json::from_slice::<Vec<shoal_leash::Effect>>(bytes) else { return };
    let section = shoal_leash::Section::default();
    let judged = shoal_leash::judge(&effects, Some(&section));
    if judged.verdict == shoal_leash::Verdict::Deny {
        assert!(judged.approved().is_err());
    }
}
