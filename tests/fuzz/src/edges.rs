//! Edge messages: a body decodes to a value that encodes to a body which decodes to the same value, or is a violation.

use shoal_proto::{
    Header, Message, Section, Sections, broker_launcher, broker_ptyd, broker_worker, launcher_ptyd, launcher_worker,
    supervisor_broker, supervisor_launcher,
};

use crate::Target;

/// The first byte picks the type among all there are and one that is not.
fn body<M: Message + PartialEq + std::fmt::Debug>(kinds: &[u8], bytes: &[u8]) {
    let Some((pick, body)) = bytes.split_first() else { return };
    let at = usize::from(*pick) % (kinds.len() + 1);
    let kind = kinds.get(at).copied().unwrap_or(0xEE);
    match M::decode_body(kind, body) {
        Ok(message) => {
            assert_eq!(message.kind(), kind);
            let again = message.encode_body().expect("what decodes encodes");
            assert_eq!(M::decode_body(kind, &again).as_ref(), Ok(&message), "{}", M::EDGE);
            M::fd_rule(kind).expect("a known type has a rule");
        }
        Err(violation) => assert!(!violation.to_string().is_empty()),
    }
}

macro_rules! edge_targets {
    ($($name:ident = $module:ident :: $message:ident;)+) => {
        $(fn $name(bytes: &[u8]) {
            body::<$module::$message>($module::$message::KINDS, bytes);
        })+
        pub(crate) const TARGETS: &[Target] = &[
            $(Target { name: stringify!($name), run: $name, seeds: SEEDS },)+
            Target { name: "edge_header", run: header, seeds: SEEDS },
            Target { name: "sections", run: sections, seeds: SEEDS },
        ];
    };
}

/// Small bodies: zeros decode as empty texts and lists of most types.
const SEEDS: &[&[u8]] = &[
    &[0; 24],
    &[1; 24],
    &[2, 1, 5, b'0', b'.', b'1', b'.', b'0', 0, 0, 0, 0],
    &[3, 7, 2, b'a', b'b', 3, b'/', b't', b'm', 0, 0, 0, 0, 0],
    &[4, 0xFB, 0xFF, 0xFF, 0xFC, 1, 0, 0, 0],
];

edge_targets! {
    supervisor_to_broker = supervisor_broker::ToBroker;
    broker_to_supervisor = supervisor_broker::ToSupervisor;
    supervisor_to_launcher = supervisor_launcher::ToLauncher;
    launcher_to_supervisor = supervisor_launcher::ToSupervisor;
    broker_to_launcher = broker_launcher::ToLauncher;
    launcher_to_broker = broker_launcher::ToBroker;
    broker_to_worker = broker_worker::ToWorker;
    worker_to_broker = broker_worker::ToBroker;
    broker_to_ptyd = broker_ptyd::ToPtyd;
    ptyd_to_broker = broker_ptyd::ToBroker;
    launcher_to_worker = launcher_worker::ToWorker;
    worker_to_launcher = launcher_worker::ToLauncher;
    launcher_to_ptyd = launcher_ptyd::ToPtyd;
    ptyd_to_launcher = launcher_ptyd::ToLauncher;
}

/// A header that decodes encodes to the same bytes.
fn header(bytes: &[u8]) {
    if let Ok((header, rest)) = Header::decode(bytes) {
        assert_eq!(header.encode().as_slice(), &bytes[..bytes.len() - rest.len()]);
        assert!(header.check_len(rest.len()).is_ok() || header.check_len(rest.len()).is_err());
    }
}

/// Compiled policy, as launchers and broker read it.
fn sections(bytes: &[u8]) {
    if let Ok(sections) = Sections::decode(bytes) {
        assert_eq!(Sections::decode(&sections.encode().expect("encodes")), Ok(sections));
    }
    if let Ok(section) = Section::decode(bytes) {
        assert_eq!(Section::decode(&section.encode().expect("encodes")), Ok(section));
    }
}
