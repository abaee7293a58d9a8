//! The jail of macOS as data: a Seatbelt profile with its parameters, made from what a session is ordered with. Nothing
//! here runs on macOS only, so the texts are tested everywhere; that macOS takes them is not (see `docs/testing.md`).
//!
//! Every path is a parameter, never part of the text. The last rule that matches wins, so what is granted comes first and
//! what belongs to the kernel is taken away at the end.

use std::fmt::Write as _;
use std::path::Path;

use shoal_proto::section::Network;
use shoal_proto::supervisor_launcher::Access;

use crate::lower::Roots;
use crate::order::Order;

/// What every program on macOS needs: its libraries and frameworks, its terminals, and itself.
const BASE: &str = r#"(version 1)
(deny default)
(allow process-fork)
(allow process-exec)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow file-read-metadata)
(allow file-read* (subpath "/System") (subpath "/usr") (subpath "/bin") (subpath "/sbin") (subpath "/Library")
    (subpath "/opt") (subpath "/private/etc") (subpath "/private/var/db/timezone") (literal "/") (literal "/dev"))
(allow file-read* file-write-data (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty"))
(allow file-read* (literal "/dev/random") (literal "/dev/urandom"))
(allow pseudo-tty)
(allow file-read* file-write* file-ioctl (literal "/dev/ptmx") (regex #"^/dev/ttys[0-9]+$"))
(allow ipc-posix-sem)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
"#;

/// A profile and the values of its parameters, in the order of their first use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The text.
    pub text: String,
    /// Names and values.
    pub parameters: Vec<(String, String)>,
}

impl Profile {
    /// Adds a rule about everything below a path. A path that is not UTF-8 cannot be a parameter: granting it is left
    /// out; taking it away is refused by the caller, see [`profile`].
    fn rule(&mut self, verdict: &str, operations: &str, path: &Path) -> Option<()> {
        let value = path.to_str()?.to_owned();
        let known = self.parameters.iter().position(|(_, known)| *known == value);
        let number = known.unwrap_or(self.parameters.len());
        if known.is_none() {
            self.parameters.push((format!("P{number}"), value));
        }
        // Both forms: a path that does not exist yet is no tree, and a tree is more than its name.
        let parameter = format!("(param \"P{number}\")");
        writeln!(self.text, "({verdict} {operations} (literal {parameter}) (subpath {parameter}))").ok()
    }
}

/// The profile of a session; `None` when a place that has to be protected cannot be named.
pub fn profile(order: &Order<'_>) -> Option<Profile> {
    let mut profile = Profile { text: BASE.to_owned(), parameters: Vec::new() };
    for (root, access) in &Roots::new(order.section, order.lane).0 {
        for (kind, operations) in [
            (Access::READ, "file-read*"),
            (Access::WRITE, "file-write-create file-write-data file-write-mode file-write-times file-write-xattr"),
            (Access::DELETE, "file-write-unlink"),
        ] {
            if access.has(kind) {
                // A grant that cannot be said is not given.
                let _unsaid = profile.rule("allow", operations, root);
            }
        }
    }
    network(&mut profile, order);
    for path in &order.kernel.hidden {
        profile.rule("deny", "file-read* file-write* network-outbound", path)?;
    }
    for path in &order.kernel.fixed {
        profile.rule("deny", "file-write*", path)?;
    }
    Some(profile)
}

/// Seatbelt knows ports and no hosts. A section without a grant reaches nothing; launchd, which starts programs outside
/// of every sandbox, is reached by none.
fn network(profile: &mut Profile, order: &Order<'_>) {
    let is_open = order.lane.is_some_and(|lane| lane.network) || order.section.network == Network::Open;
    if is_open {
        profile.text.push_str("(allow network*)\n(allow system-socket)\n");
    } else if order.section.network == Network::Ports {
        let entries = order.section.net_connect.as_slice().iter();
        for port in entries.filter_map(|entry| entry.as_str().rsplit_once(':').map(|(_, port)| port)) {
            // A port is a number or `*`; anything else never got through the policy compiler.
            if port == "*" || port.parse::<u16>().is_ok() {
                profile.text.push_str(&format!("(allow network-outbound (remote tcp \"*:{port}\"))\n"));
            }
        }
        for port in order.section.net_listen.as_slice() {
            profile.text.push_str(&format!("(allow network-bind network-inbound (local tcp \"*:{port}\"))\n"));
        }
    }
    for service in ["com.apple.coreservices.launchservicesd", "com.apple.launchservicesd"] {
        profile.text.push_str(&format!("(deny mach-lookup (global-name \"{service}\"))\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Protected;
    use shoal_proto::section::Section;
    use shoal_proto::supervisor_broker::Limits;
    use shoal_proto::{List, Text};

    fn made(section: &Section, kernel: &Protected) -> Option<Profile> {
        profile(&Order { section, cwd: Path::new("/"), limits: &Limits::default(), lane: None, kernel })
    }

    fn globs(globs: &[&str]) -> List<Text<4096>, 4096> {
        List::new(globs.iter().map(|glob| Text::new(*glob).unwrap()).collect::<Vec<_>>()).unwrap()
    }

    /// The rules after the part that every profile has.
    fn own(profile: &Profile) -> Vec<&str> {
        profile.text.strip_prefix(BASE).unwrap().lines().collect()
    }

    #[test]
    fn the_text_of_a_section_without_grants() {
        let profile = made(&Section { network: Network::None, ..Section::default() }, &Protected::default()).unwrap();
        assert_eq!(
            own(&profile),
            [
                "(deny mach-lookup (global-name \"com.apple.coreservices.launchservicesd\"))",
                "(deny mach-lookup (global-name \"com.apple.launchservicesd\"))",
            ]
        );
        assert_eq!(profile.parameters, []);
    }

    #[test]
    fn grants_come_first_and_the_kernel_s_places_last() {
        let section = Section {
            fs_read: globs(&["/usr/**"]),
            fs_write: globs(&["/usr/share/**"]),
            network: Network::Open,
            ..Section::default()
        };
        let hidden = "/usr/share/a\") (allow default) (\"".into();
        let kernel = Protected { hidden: vec![hidden], fixed: vec!["/usr/bin/x".into()], ..Protected::default() };
        let profile = made(&section, &kernel).unwrap();
        let rules = own(&profile);
        assert_eq!(rules[0], "(allow file-read* (literal (param \"P0\")) (subpath (param \"P0\")))");
        assert!(rules[1].starts_with("(allow file-write-create"), "{rules:?}");
        assert!(rules.contains(&"(allow network*)"));
        let last = "(deny file-write* (literal (param \"P3\")) (subpath (param \"P3\")))";
        assert_eq!(rules.last(), Some(&last));
        // A path is a value, whatever stands in it.
        assert!(!profile.text.contains("allow default"));
        let values: Vec<&str> = profile.parameters.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["/usr", "/usr/share", "/usr/share/a\") (allow default) (\"", "/usr/bin/x"]);
    }

    #[test]
    fn ports_are_numbers() {
        let mut section = Section { network: Network::Ports, ..Section::default() };
        let hosts = ["a.example:443", "b.example:\"))", "c.example:*"].map(|e| Text::new(e).unwrap());
        section.net_connect = List::new(hosts.to_vec()).unwrap();
        section.net_listen = List::new(vec![8080]).unwrap();
        let profile = made(&section, &Protected::default()).unwrap();
        assert_eq!(
            own(&profile)[..3],
            [
                "(allow network-outbound (remote tcp \"*:443\"))",
                "(allow network-outbound (remote tcp \"*:*\"))",
                "(allow network-bind network-inbound (local tcp \"*:8080\"))",
            ]
        );
    }

    #[test]
    fn what_must_be_hidden_and_cannot_be_named_makes_no_profile() {
        use std::os::unix::ffi::OsStrExt as _;
        let nameless = std::ffi::OsStr::from_bytes(b"/\xff").into();
        let kernel = Protected { hidden: vec![nameless], ..Protected::default() };
        assert_eq!(made(&Section::default(), &kernel), None);
    }
}
