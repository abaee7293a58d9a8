//! The decision of protocol 10.3, with a proof value for what it allowed.

use shoal_proto::section::{AutoApply, Opaque, Section};

use crate::effect::Effect;
use crate::glob::{host_port_matches, name_matches, path_matches};

/// What happens to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allow,
    /// It runs once an approver said yes.
    ApprovalRequired,
    /// It does not run.
    Deny,
}

impl Verdict {
    /// Wire spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::ApprovalRequired => "approval_required",
            Self::Deny => "deny",
        }
    }
}

/// Why one effect is not simply allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Index in the effects judged; `None` when the refusal is about the program as a whole.
    pub effect: Option<usize>,
    /// What is missing, in words.
    pub why: String,
    /// The grant that would change it, as a line of `leash.toml`.
    pub hint: String,
}

/// Outcome of a judgement.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Every reason against allowing it, in order of the effects.
    pub refusals: Vec<Refusal>,
    effects: Vec<Effect>,
}

/// Proof that exactly these effects were judged and allowed. What starts work takes one.
#[must_use]
#[derive(Debug)]
pub struct Grant {
    effects: Vec<Effect>,
    approved: bool,
    _judged: Judged,
}

#[derive(Debug)]
struct Judged(());

impl Grant {
    /// The effects allowed.
    pub fn effects(&self) -> &[Effect] {
        &self.effects
    }

    /// It rests on an approval, not on standing grants alone.
    pub fn is_approved(&self) -> bool {
        self.approved
    }
}

impl Judgement {
    /// The proof, when the verdict is allow; else the judgement again.
    pub fn allowed(self) -> Result<Grant, Self> {
        match self.verdict {
            Verdict::Allow => Ok(Grant { effects: self.effects, approved: false, _judged: Judged(()) }),
            Verdict::ApprovalRequired | Verdict::Deny => Err(self),
        }
    }

    /// The proof for a program whose approval is on record. A denial stays one.
    pub fn approved(self) -> Result<Grant, Self> {
        match self.verdict {
            Verdict::Allow | Verdict::ApprovalRequired => {
                Ok(Grant { effects: self.effects, approved: true, _judged: Judged(()) })
            }
            Verdict::Deny => Err(self),
        }
    }

    /// The effects judged.
    pub fn effects(&self) -> &[Effect] {
        &self.effects
    }

    /// The first refusal's hint, for error data.
    pub fn hint(&self) -> Option<&str> {
        self.refusals.first().map(|r| r.hint.as_str())
    }
}

/// What one effect gets by its key.
enum Single {
    Allow,
    Ask,
    Deny { why: String, hint: String },
}

/// Judges the effects of one program under the section that serves its owner.
pub fn judge(effects: &[Effect], section: Option<&Section>) -> Judgement {
    let effects = effects.to_vec();
    let Some(section) = section else {
        let refusal = Refusal {
            effect: None,
            why: "no policy section serves this principal".to_owned(),
            hint: "add [principal.\"NAME\"] or [default] to leash.toml".to_owned(),
        };
        return Judgement { verdict: Verdict::Deny, refusals: vec![refusal], effects };
    };
    let mut verdict = Verdict::Allow;
    let mut refusals = Vec::new();
    for (index, effect) in effects.iter().enumerate() {
        match judge_one(effect, section) {
            Single::Allow => {}
            Single::Ask => {
                if verdict == Verdict::Allow {
                    verdict = Verdict::ApprovalRequired;
                }
                refusals.push(Refusal {
                    effect: Some(index),
                    why: "opaque = \"ask\"".to_owned(),
                    hint: "set opaque = \"allow\", or have the plan approved".to_owned(),
                });
            }
            Single::Deny { why, hint } => {
                verdict = Verdict::Deny;
                refusals.push(Refusal { effect: Some(index), why, hint });
            }
        }
    }
    if verdict == Verdict::Allow
        && let Some(refusal) = unattended(&effects, section)
    {
        verdict = Verdict::ApprovalRequired;
        refusals.push(refusal);
    }
    Judgement { verdict, refusals, effects }
}

/// The `auto_apply` step, for programs whose every effect is granted.
fn unattended(effects: &[Effect], section: &Section) -> Option<Refusal> {
    let refusal = |why: &str| Refusal {
        effect: None,
        why: why.to_owned(),
        hint: "set auto_apply = \"in-grant\", or have the plan approved".to_owned(),
    };
    match section.auto_apply {
        AutoApply::InGrant => None,
        AutoApply::Never => Some(refusal("auto_apply = \"never\"")),
        AutoApply::Reversible => effects
            .iter()
            .any(|e| matches!(e, Effect::Opaque | Effect::FsDelete { .. }))
            .then(|| refusal("auto_apply = \"reversible\" and an effect deletes or is opaque")),
    }
}

fn judge_one(effect: &Effect, section: &Section) -> Single {
    match effect {
        Effect::FsRead { paths } => paths_granted("fs.read", paths, section.fs_read.as_slice()),
        Effect::FsWrite { paths } => paths_granted("fs.write", paths, section.fs_write.as_slice()),
        Effect::FsDelete { paths } => paths_granted("fs.delete", paths, section.fs_delete.as_slice()),
        Effect::EnvRead { names } => names_granted("env_read", names, section.env_read.as_slice()),
        Effect::EnvWrite { names } => names_granted("env_write", names, section.env_write.as_slice()),
        Effect::SecretUse { names } => names_granted("secret_use", names, section.secret_use.as_slice()),
        Effect::SessionWrite => flag("session_write", section.session_write),
        Effect::JournalRead => flag("journal_read", section.journal_read),
        Effect::Time => flag("time", section.time),
        Effect::ProcSpawn { bin_hash, argv0 } => match crate::spawn::judge_spawn(section, argv0, bin_hash) {
            crate::spawn::SpawnVerdict::Allow => Single::Allow,
            crate::spawn::SpawnVerdict::Deny { why } => {
                Single::Deny { why, hint: format!("grant proc_spawn = [{argv0:?}]") }
            }
        },
        Effect::NetConnect { host, port } => {
            let granted = section.net_connect.as_slice().iter().any(|e| host_port_matches(e, host, *port));
            granted_or(granted, || {
                let port = if *port == 0 { "*".to_owned() } else { port.to_string() };
                (format!("no grant to connect to {host}:{port}"), format!("grant net_connect = [\"{host}:{port}\"]"))
            })
        }
        Effect::NetListen { port } => granted_or(section.net_listen.as_slice().contains(port), || {
            (format!("no grant to listen on {port}"), format!("grant net_listen = [{port}]"))
        }),
        Effect::Opaque => match section.opaque {
            Opaque::Allow => Single::Allow,
            Opaque::Ask => Single::Ask,
            Opaque::Deny => Single::Deny {
                why: "opaque = \"deny\" and the effects are unknown".to_owned(),
                hint: "set opaque = \"ask\" or \"allow\"".to_owned(),
            },
        },
    }
}

fn granted_or(granted: bool, refusal: impl FnOnce() -> (String, String)) -> Single {
    if granted {
        return Single::Allow;
    }
    let (why, hint) = refusal();
    Single::Deny { why, hint }
}

fn flag(key: &str, granted: bool) -> Single {
    granted_or(granted, || (format!("{key} is not granted"), format!("grant {key} = true")))
}

fn paths_granted(key: &str, paths: &[String], globs: &[shoal_proto::section::Entry]) -> Single {
    match paths.iter().find(|path| !globs.iter().any(|glob| path_matches(glob, path))) {
        None => Single::Allow,
        Some(path) => {
            let grant = if path == "*" { "/**" } else { path };
            Single::Deny { why: format!("{key} does not cover {path}"), hint: format!("grant {key} = [{grant:?}]") }
        }
    }
}

fn names_granted(key: &str, names: &[String], entries: &[shoal_proto::section::Entry]) -> Single {
    match names.iter().find(|name| !entries.iter().any(|entry| name_matches(entry, name))) {
        None => Single::Allow,
        Some(name) => {
            Single::Deny { why: format!("{key} does not cover {name}"), hint: format!("grant {key} = [{name:?}]") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_proto::{List, Text};

    fn entries(items: &[&str]) -> List<shoal_proto::section::Entry, 4096> {
        let items: Vec<_> = items.iter().map(|i| Text::new(*i).expect("fits")).collect();
        List::new(items).expect("fits")
    }

    fn docs() -> Section {
        Section {
            fs_read: entries(&["/srv/site/**", "/usr/**"]),
            fs_write: entries(&["/srv/site/content/**"]),
            net_connect: entries(&["*.example.org:443"]),
            proc_spawn: entries(&["git", "zola"]),
            env_read: entries(&["PATH"]),
            session_write: true,
            opaque: Opaque::Ask,
            auto_apply: AutoApply::Reversible,
            ..Section::default()
        }
    }

    fn read(path: &str) -> Effect {
        Effect::FsRead { paths: vec![path.into()] }
    }

    #[test]
    fn no_section_denies_even_nothing() {
        assert_eq!(judge(&[], None).verdict, Verdict::Deny);
    }

    #[test]
    fn never_asks_even_for_nothing() {
        let section = Section { auto_apply: AutoApply::Never, ..docs() };
        assert_eq!(judge(&[], Some(&section)).verdict, Verdict::ApprovalRequired);
        assert_eq!(judge(&[], Some(&docs())).verdict, Verdict::Allow);
    }

    #[test]
    fn denial_wins_over_ask_and_names_the_grant() {
        let judged = judge(&[Effect::Opaque, read("/etc/x")], Some(&docs()));
        assert_eq!(judged.verdict, Verdict::Deny);
        assert_eq!(judged.refusals[1].hint, "grant fs.read = [\"/etc/x\"]");
        assert!(judged.approved().is_err(), "an approval does not overrule a denial");
    }

    #[test]
    fn ask_needs_the_approval() {
        let judged = judge(&[Effect::Opaque, read("/srv/site/a")], Some(&docs()));
        assert_eq!(judged.verdict, Verdict::ApprovalRequired);
        let grant = judged.clone().approved().expect("approvable");
        assert!(grant.is_approved());
        assert!(judged.allowed().is_err());
    }

    #[test]
    fn reversible_asks_for_deletes() {
        let section = Section { fs_delete: entries(&["/srv/site/**"]), ..docs() };
        let delete = Effect::FsDelete { paths: vec!["/srv/site/a".into()] };
        assert_eq!(judge(std::slice::from_ref(&delete), Some(&section)).verdict, Verdict::ApprovalRequired);
        let in_grant = Section { auto_apply: AutoApply::InGrant, ..section };
        assert_eq!(judge(&[delete], Some(&in_grant)).verdict, Verdict::Allow);
    }

    #[test]
    fn every_path_must_be_covered() {
        let effect = Effect::FsRead { paths: vec!["/usr/bin".into(), "/srv/other".into()] };
        assert_eq!(judge(&[effect], Some(&docs())).verdict, Verdict::Deny);
        assert_eq!(judge(&[read("*")], Some(&docs())).verdict, Verdict::Deny);
    }
}
