//! What is installed: candidates for a name, of each provider.

use shoal_value::{PathValue, Str};
use toml::Table;

use super::scopes::Demand;
use super::{ancestors, child, text_of, version};
use crate::command::on_path;
use crate::host::{At, FileKind};
use crate::machine::Machine;
use crate::unwind::Eval;

/// A program that a name could mean.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) provider: &'static str,
    /// Its version, if the provider knows it.
    pub(crate) version: Option<Str>,
    pub(crate) path: PathValue,
}

/// The candidates that satisfy a demand: the highest version first, equal ones in the order of the providers.
pub(crate) fn candidates(machine: &Machine, demand: &Demand) -> Eval<Vec<Candidate>> {
    let mut found = all(machine, &demand.name)?;
    found.retain(|candidate| demand.accepts(candidate.version.as_deref(), candidate.provider));
    found.sort_by(|a, b| version::order(b.version.as_deref(), a.version.as_deref()));
    Ok(found)
}

fn all(machine: &Machine, name: &str) -> Eval<Vec<Candidate>> {
    let mut found = Vec::new();
    found.extend(npm(machine, name)?);
    found.extend(venv(machine, name)?);
    found.extend(mise(machine, name)?);
    found.extend(cargo(machine, name)?);
    found.extend(on_path(machine, name).map(|path| Candidate { provider: "system", version: None, path }));
    Ok(found)
}

/// `node_modules/.bin` of the directory or one above it.
fn npm(machine: &Machine, name: &str) -> Eval<Option<Candidate>> {
    for dir in ancestors(machine.place.cwd.path()) {
        let modules = child(&dir, "node_modules");
        let path = child(&child(&modules, ".bin"), name);
        if is_program(machine, &path) {
            let package = child(&child(&modules, name), "package.json");
            let package = text_of(machine, &package)?.and_then(|text| serde_json::from_str(&text).ok());
            let version = package.and_then(|json: serde_json::Value| json["version"].as_str().map(Str::from));
            return Ok(Some(Candidate { provider: "npm-local", version, path }));
        }
    }
    Ok(None)
}

/// The active virtual environment, or `.venv` of the directory or one above it. It knows the version of its Python alone.
fn venv(machine: &Machine, name: &str) -> Eval<Option<Candidate>> {
    let active = machine.place.var("VIRTUAL_ENV").map(PathValue::from);
    let near = ancestors(machine.place.cwd.path()).into_iter().map(|dir| child(&dir, ".venv"));
    for environment in active.into_iter().chain(near) {
        let path = child(&child(&environment, "bin"), name);
        if !is_program(machine, &path) {
            continue;
        }
        let settings = match name.starts_with("python") {
            true => text_of(machine, &child(&environment, "pyvenv.cfg"))?,
            false => None,
        };
        let settings = settings.unwrap_or_default();
        let mut lines = settings.lines().filter_map(|line| line.split_once('='));
        let version = lines.find(|(key, _)| key.trim() == "version").map(|(_, version)| Str::from(version.trim()));
        return Ok(Some(Candidate { provider: "venv", version, path }));
    }
    Ok(None)
}

/// The installations of mise, a directory for each version.
fn mise(machine: &Machine, name: &str) -> Eval<Vec<Candidate>> {
    let var = |name: &str| machine.place.var(name).filter(|dir| dir.starts_with('/')).map(PathValue::from);
    let data = var("MISE_DATA_DIR")
        .or_else(|| var("XDG_DATA_HOME").map(|dir| child(&dir, "mise")))
        .or_else(|| var("HOME").map(|dir| child(&dir, ".local/share/mise")));
    let Some(data) = data.filter(|_| !name.contains('/')) else { return Ok(Vec::new()) };
    let installed = child(&child(&data, "installs"), name);
    let at = At { dir: &machine.place.cwd, path: installed.as_bytes() };
    let Ok(versions) = machine.session.host.files().list(at, &machine.run.cancel) else { return Ok(Vec::new()) };
    // Links such as `latest` name a version that has a directory of its own.
    let mut versions: Vec<String> = versions
        .into_iter()
        .filter(|entry| entry.kind == FileKind::Dir)
        .map(|entry| String::from_utf8_lossy(&entry.name).into_owned())
        .collect();
    versions.sort();
    Ok(versions
        .into_iter()
        .filter_map(|version| {
            let dir = child(&installed, &version);
            let path =
                [child(&child(&dir, "bin"), name), child(&dir, name)].into_iter().find(|p| is_program(machine, p))?;
            Some(Candidate { provider: "mise", version: Some(version.into()), path })
        })
        .collect())
}

/// Programs that cargo has installed; its record of them names the versions.
fn cargo(machine: &Machine, name: &str) -> Eval<Option<Candidate>> {
    let home = machine.place.var("CARGO_HOME").map(PathValue::from);
    let home = home.or_else(|| machine.place.var("HOME").map(|home| child(&PathValue::from(home), ".cargo")));
    let Some(home) = home else { return Ok(None) };
    let path = child(&child(&home, "bin"), name);
    if !is_program(machine, &path) {
        return Ok(None);
    }
    let record = text_of(machine, &child(&home, ".crates.toml"))?.unwrap_or_default();
    Ok(Some(Candidate { provider: "cargo", version: crate_version(&record, name), path }))
}

/// The version of the package that installed `program`: keys are `NAME VERSION (SOURCE)`, values its programs.
fn crate_version(record: &str, program: &str) -> Option<Str> {
    let record: Table = record.parse().ok()?;
    let (package, _) = record.get("v1")?.as_table()?.iter().find(|(_, programs)| {
        programs.as_array().is_some_and(|programs| programs.iter().any(|name| name.as_str() == Some(program)))
    })?;
    package.split_whitespace().nth(1).map(Str::from)
}

fn is_program(machine: &Machine, path: &PathValue) -> bool {
    let at = At { dir: &machine.place.cwd, path: path.as_bytes() };
    let meta = machine.session.host.files().meta(at, true);
    meta.is_ok_and(|meta| meta.kind == FileKind::File && meta.executable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_knows_the_versions_of_its_programs() {
        let record = "[v1]\n\"ripgrep 14.1.0 (registry+https://x)\" = [\"rg\"]\n";
        assert_eq!(crate_version(record, "rg").as_deref(), Some("14.1.0"));
        assert_eq!(crate_version(record, "fd"), None);
        assert_eq!(crate_version("no = [", "rg"), None);
    }
}
