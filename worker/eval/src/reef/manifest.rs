//! Manifests: which tools a directory wants.

use shoal_value::{ErrorValue, PathValue, Str};
use toml::{Table, Value};

use super::{ancestors, child, text_of, trouble};
use crate::machine::Machine;
use crate::unwind::Eval;

/// Name of the manifest of this language.
pub(crate) const NATIVE: &str = ".reef.toml";

/// Manifests of mise and asdf. One that does not parse is theirs to complain about, and counts as absent.
const MISE: [&str; 2] = ["mise.toml", ".mise.toml"];
const VERSIONS: &str = ".tool-versions";

/// What one file asks for.
#[derive(Debug)]
pub(crate) struct Manifest {
    /// The file.
    pub(crate) path: PathValue,
    pub(crate) tools: Vec<Tool>,
    /// Words that run a file, by its extension.
    pub(crate) runners: Vec<(Str, Vec<Str>)>,
    /// Whether programs may find nothing but locked tools.
    pub(crate) hermetic: bool,
}

impl Manifest {
    fn of(path: PathValue, tools: Vec<Tool>) -> Self {
        Self { path, tools, runners: Vec::new(), hermetic: false }
    }
}

/// A wanted tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tool {
    pub(crate) name: Str,
    pub(crate) constraint: Str,
    /// Where it must come from, if that is said.
    pub(crate) provider: Option<Str>,
}

/// The manifests of the working directory and those above it, nearest first.
pub(crate) fn here(machine: &Machine) -> Eval<Vec<Manifest>> {
    let mut found = Vec::new();
    for dir in ancestors(machine.place.cwd.path()) {
        let native = child(&dir, NATIVE);
        if let Some(text) = text_of(machine, &native)? {
            found.push(read_native(&native, &text)?);
        }
        for name in MISE {
            let path = child(&dir, name);
            if let Some(table) = text_of(machine, &path)?.and_then(|text| text.parse::<Table>().ok()) {
                found.push(Manifest::of(path, mise_tools(&table)));
            }
        }
        let path = child(&dir, VERSIONS);
        if let Some(text) = text_of(machine, &path)? {
            found.push(Manifest::of(path, text.lines().filter_map(versions_line).collect()));
        }
    }
    Ok(found)
}

/// The table of a native manifest, whose `tools` is a table if there is one.
pub(crate) fn parse_native(path: &PathValue, text: &str) -> Result<Table, ErrorValue> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        trouble(format!("parsing manifest {}: {}", path.display(), error.message()))
    })?;
    match table.get("tools") {
        None | Some(Value::Table(_)) => Ok(table),
        Some(_) => Err(trouble(format!("{}: `tools` is not a table", path.display()))
            .with_hint("write `[tools]`, and below it lines like `node = \"22\"`")),
    }
}

fn read_native(path: &PathValue, text: &str) -> Result<Manifest, ErrorValue> {
    let table = parse_native(path, text)?;
    let wrong = |what: &str| trouble(format!("parsing manifest {}: {what}", path.display()));
    let section = |name: &str| table.get(name).and_then(Value::as_table).into_iter().flatten();
    let mut manifest = Manifest::of(path.clone(), Vec::new());
    for (name, wanted) in section("tools") {
        let text = |key: &str| wanted.get(key).and_then(Value::as_str).map(Str::from);
        let (constraint, provider) = match wanted {
            Value::String(constraint) => (Some(Str::from(constraint.as_str())), None),
            Value::Table(_) => (Some(text("version").unwrap_or_else(|| "*".into())), text("provider")),
            _ => (None, None),
        };
        let constraint = constraint.ok_or_else(|| wrong(&format!("tools.{name} is neither a version nor a table")))?;
        manifest.tools.push(Tool { name: name.as_str().into(), constraint, provider });
    }
    for (extension, runner) in section("runners") {
        let words = runner_words(runner).ok_or_else(|| wrong(&format!("runners.{extension} names no tool")))?;
        manifest.runners.push((extension.as_str().into(), words));
    }
    let options = table.get("options").and_then(|options| options.get("hermetic"));
    manifest.hermetic = options.and_then(Value::as_bool).unwrap_or(false);
    Ok(manifest)
}

fn runner_words(runner: &Value) -> Option<Vec<Str>> {
    let tool = runner.as_str().or_else(|| runner.get("tool")?.as_str())?;
    let args = runner.get("args").and_then(Value::as_array).into_iter().flatten();
    Some(std::iter::once(tool).chain(args.filter_map(Value::as_str)).map(Str::from).collect())
}

fn mise_tools(table: &Table) -> Vec<Tool> {
    let tools = table.get("tools").and_then(Value::as_table).into_iter().flatten();
    tools
        .filter_map(|(name, wanted)| {
            let first = wanted.as_array().and_then(|versions| versions.first()).unwrap_or(wanted);
            let constraint = first.as_str().or_else(|| first.get("version")?.as_str())?;
            Some(Tool { name: name.as_str().into(), constraint: constraint.into(), provider: None })
        })
        .collect()
}

/// `NAME VERSION ...`, with comments from `#`.
fn versions_line(line: &str) -> Option<Tool> {
    let mut words = line.split('#').next()?.split_whitespace();
    let (name, constraint) = (words.next()?, words.next()?);
    Some(Tool { name: name.into(), constraint: constraint.into(), provider: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Manifest, String> {
        read_native(&PathValue::from("/m"), text).map_err(|error| error.msg.to_string())
    }

    #[test]
    fn native_manifests_are_read() {
        let text = "[tools]\nnode = \"22\"\nrg = {provider = \"cargo\"}\n[runners]\nrb = \"ruby\"\n\
            ts = {tool = \"deno\", args = [\"run\"]}\n[options]\nhermetic = true\n";
        let manifest = read(text).expect("a manifest");
        let tool = |name: &str, constraint: &str, provider: Option<&str>| Tool {
            name: name.into(),
            constraint: constraint.into(),
            provider: provider.map(Str::from),
        };
        assert_eq!(manifest.tools, [tool("node", "22", None), tool("rg", "*", Some("cargo"))]);
        let runners: Vec<String> = manifest.runners.iter().map(|(ext, words)| format!("{ext}: {words:?}")).collect();
        assert_eq!(runners, ["rb: [\"ruby\"]", "ts: [\"deno\", \"run\"]"]);
        assert!(manifest.hermetic);
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(read("[[[").expect_err("no TOML").contains("parsing manifest /m"));
        assert!(read("tools = 5").expect_err("no table").contains("not a table"));
        assert!(read("[tools]\nx = 5").expect_err("no version").contains("tools.x"));
        assert!(read("[runners]\nx = 5").expect_err("no tool").contains("runners.x"));
    }

    #[test]
    fn foreign_manifests_are_read() {
        let table: Table =
            "[tools]\nnode = [\"20\", \"18\"]\ngo = {version = \"1.22\"}\nx = 5\n".parse().expect("TOML");
        let tools: Vec<String> = mise_tools(&table).iter().map(|t| format!("{}@{}", t.name, t.constraint)).collect();
        assert_eq!(tools, ["node@20", "go@1.22"]);
        assert_eq!(versions_line("ruby 3.3 # why").map(|tool| tool.constraint.to_string()), Some("3.3".to_owned()));
        assert_eq!(versions_line("# nothing"), None);
    }
}
