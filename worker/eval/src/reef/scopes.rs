//! The scopes that count at a place, and what they want of a name together.

use shoal_value::{ErrorValue, PathValue, Str, code};

use super::lock::{self, Locked};
use super::manifest::{self, Manifest, Tool};
use super::{child, trouble, version};
use crate::machine::Machine;
use crate::unwind::Eval;

/// `with reef:` blocks and manifests, nearest first.
pub(crate) struct Scopes {
    /// Where it stands, and what it wants.
    wants: Vec<(Str, Vec<Tool>)>,
    manifests: Vec<Manifest>,
}

/// What all scopes that mention a name want of it.
#[derive(Debug)]
pub(crate) struct Demand {
    pub(crate) name: Str,
    /// The narrowest constraint.
    pub(crate) constraint: Str,
    provider: Option<Str>,
    /// Scopes and their constraints, nearest first.
    pub(crate) chain: Vec<(Str, Str)>,
}

impl Demand {
    /// Whether a version of a provider is what is wanted.
    pub(crate) fn accepts(&self, version: Option<&str>, provider: &str) -> bool {
        version::satisfies(version, &self.constraint)
            && self.provider.as_deref().is_none_or(|wanted| wanted == provider)
    }

    /// Whether a locked tool is what is wanted.
    pub(crate) fn is_met_by(&self, entry: &Locked) -> bool {
        entry.name == self.name && self.accepts(Some(&entry.version), &entry.provider)
    }
}

impl Scopes {
    /// The scopes of the place where the program stands.
    pub(crate) fn here(machine: &Machine) -> Eval<Self> {
        let manifests = manifest::here(machine)?;
        if let Some(hermetic) = manifests.iter().find(|manifest| manifest.hermetic) {
            let text = format!("{}: `hermetic` is not available in this build", hermetic.path.display());
            return Err(trouble(text).with_hint("take it out: programs find tools that are not locked on PATH").into());
        }
        let mut wants = Vec::new();
        let mut overlay = machine.place.reef.as_deref();
        while let Some(block) = overlay {
            let tool = |(name, constraint): &(Str, Str)| Tool {
                name: name.clone(),
                constraint: constraint.clone(),
                provider: None,
            };
            wants.push((Str::from("with reef:"), block.tools.iter().map(tool).collect()));
            overlay = block.outer.as_deref();
        }
        wants.extend(manifests.iter().map(|m| (Str::from(&*m.path.display()), m.tools.clone())));
        Ok(Self { wants, manifests })
    }

    /// The names mentioned, nearest first.
    pub(crate) fn names(&self) -> Vec<Str> {
        let mut names: Vec<Str> = Vec::new();
        for tool in self.wants.iter().flat_map(|(_, tools)| tools) {
            if !names.contains(&tool.name) {
                names.push(tool.name.clone());
            }
        }
        names
    }

    /// Scopes that mention `name`, with their constraints.
    pub(crate) fn chain(&self, name: &str) -> Vec<(Str, Str)> {
        self.mentions(name).map(|(place, tool)| (place.clone(), tool.constraint.clone())).collect()
    }

    fn mentions<'s>(&'s self, name: &'s str) -> impl Iterator<Item = (&'s Str, &'s Tool)> {
        self.wants.iter().flat_map(move |(place, tools)| {
            tools.iter().filter(move |tool| *tool.name == *name).map(move |tool| (place, tool))
        })
    }

    /// What is wanted of `name`; `None` if nothing is. Scopes that do not agree are `reef_conflict`.
    pub(crate) fn demand(&self, name: &str) -> Result<Option<Demand>, ErrorValue> {
        let mut demand: Option<Demand> = None;
        for (place, tool) in self.mentions(name) {
            let Some(known) = &mut demand else {
                let chain = self.chain(name);
                let (constraint, provider) = (tool.constraint.clone(), tool.provider.clone());
                demand = Some(Demand { name: name.into(), constraint, provider, chain });
                continue;
            };
            let providers = known.provider.iter().chain(&tool.provider);
            let one_provider = providers.clone().all(|provider| Some(provider) == providers.clone().next());
            if !version::agree(&known.constraint, &tool.constraint) || !one_provider {
                let (first, wanted) = (&known.chain[0].0, &known.constraint);
                let text = format!("{first} wants {name} {wanted}, {place} wants {}", tool.constraint);
                return Err(ErrorValue::new(code::REEF_CONFLICT, text).with_hint("make the manifests agree"));
            }
            known.provider = known.provider.take().or_else(|| tool.provider.clone());
            if version::is_any(&known.constraint) || tool.constraint.len() > known.constraint.len() {
                known.constraint = tool.constraint.clone();
            }
        }
        Ok(demand)
    }

    /// The lock: beside the nearest manifest.
    pub(crate) fn lock_path(&self) -> Option<PathValue> {
        let nearest = self.manifests.first()?;
        super::ancestors(&nearest.path).get(1).map(|dir| child(dir, "reef.lock"))
    }

    /// The entry of the lock that is what is wanted.
    pub(crate) fn locked(&self, machine: &Machine, demand: &Demand) -> Eval<Option<Locked>> {
        let Some(path) = self.lock_path() else { return Ok(None) };
        Ok(lock::read(machine, &path)?.into_iter().find(|entry| demand.is_met_by(entry)))
    }

    /// The nearest native manifest.
    pub(crate) fn native(&self) -> Option<&PathValue> {
        let is_native = |path: &&PathValue| path.as_bytes().ends_with(manifest::NATIVE.as_bytes());
        self.manifests.iter().map(|manifest| &manifest.path).find(is_native)
    }

    /// The words that run a file of this extension.
    pub(crate) fn runner(&self, extension: &str) -> Option<Vec<Str>> {
        let mut runners = self.manifests.iter().flat_map(|manifest| &manifest.runners);
        runners.find(|(known, _)| **known == *extension).map(|(_, words)| words.clone())
    }
}
