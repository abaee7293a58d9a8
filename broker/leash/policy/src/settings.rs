//! `shoal.toml`: what it settles for the kernel, and its tables as JSON for the language.

use shoal_proto::section::{QUOTAS, Settings};
use shoal_proto::{List, Text};
use toml::de::DeValue;

use crate::section::integer;
use crate::source::{Node, Source};

/// Tables and keys of the file.
const KNOWN: [&str; 5] = ["durability", "limits", "mcp", "reef", "config"];

/// Compiles the file.
pub(crate) fn compile(text: &str) -> Result<Settings, String> {
    let source = Source::new("shoal.toml", text);
    let table = source.table()?;
    let mut settings = Settings::default();
    for (name, node) in &table {
        match name.get_ref().as_ref() {
            "durability" => {
                settings.durability_full = match node.get_ref() {
                    DeValue::String(text) if text == "normal" => false,
                    DeValue::String(text) if text == "full" => true,
                    DeValue::String(text) => {
                        return Err(source.unknown(node.span(), "value of `durability`:", text, &["normal", "full"]));
                    }
                    _ => return Err(source.wrong_type(node, "durability", "\"normal\" or \"full\"")),
                };
            }
            "limits" => {
                let DeValue::Table(limits) = node.get_ref() else {
                    return Err(source.wrong_type(node, "limits", "a table"));
                };
                let mut quotas = Vec::new();
                for (quota, value) in limits {
                    if !QUOTAS.contains(&quota.get_ref().as_ref()) {
                        return Err(source.unknown(quota.span(), "limit", quota.get_ref(), &QUOTAS));
                    }
                    quotas.push((Text::cut(quota.get_ref()), integer(&source, value, quota.get_ref())?));
                }
                settings.quotas = List::new(quotas).map_err(|e| source.at(node.span(), &format!("limits: {e}")))?;
            }
            "mcp" => servers(&source, node)?,
            "reef" | "config" => {
                if !node.get_ref().is_table() {
                    return Err(source.wrong_type(node, name.get_ref(), "a table"));
                }
            }
            other => return Err(source.unknown(name.span(), "key", other, &KNOWN)),
        }
    }
    settings.config = as_json(text)?;
    Ok(settings)
}

/// Keys of a server.
const SERVER: [&str; 3] = ["command", "args", "env"];

/// The servers whose resources can be watched: each is started with `command`, `args` and `env`.
fn servers(source: &Source<'_>, node: &Node<'_>) -> Result<(), String> {
    let DeValue::Table(servers) = node.get_ref() else {
        return Err(source.wrong_type(node, "mcp", "a table"));
    };
    for (name, server) in servers {
        let DeValue::Table(keys) = server.get_ref() else {
            return Err(source.wrong_type(server, name.get_ref(), "a table"));
        };
        for (key, value) in keys {
            let texts = |mut items: std::slice::Iter<'_, Node<'_>>| items.all(|item| item.get_ref().is_str());
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("command", DeValue::String(_)) => {}
                ("args", DeValue::Array(items)) if texts(items.iter()) => {}
                ("env", DeValue::Table(items)) if items.values().all(|item| item.get_ref().is_str()) => {}
                ("command", _) => return Err(source.wrong_type(value, "command", "a program's name or path")),
                ("args", _) => return Err(source.wrong_type(value, "args", "an array of strings")),
                ("env", _) => return Err(source.wrong_type(value, "env", "a table of strings")),
                (other, _) => return Err(source.unknown(key.span(), "key of a server:", other, &SERVER)),
            }
        }
        if !keys.keys().any(|key| key.get_ref() == "command") {
            let message = format!("server `{}` has no `command`", name.get_ref());
            return Err(source.at(name.span(), &message));
        }
    }
    Ok(())
}

/// The whole file as one JSON object.
fn as_json(text: &str) -> Result<Text<{ 256 * 1024 }>, String> {
    let value: toml::Table = toml::from_str(text).map_err(|e| format!("shoal.toml: {}", e.message()))?;
    let json = serde_json::to_string(&value).map_err(|e| format!("shoal.toml: {e}"))?;
    Text::new(json).map_err(|e| format!("shoal.toml: {e} bytes as JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settles() {
        let settings = compile("durability = \"full\"\n[limits]\nptys = 8\n[config]\nx = [1, 2]\n").expect("compiles");
        assert!(settings.durability_full);
        assert_eq!(settings.quotas.as_slice(), &[(Text::cut("ptys"), 8)]);
        assert!(settings.config.as_str().contains(r#""config":{"x":[1,2]}"#), "{}", settings.config);
    }

    #[test]
    fn refuses() {
        for (text, expect) in [
            ("durabilty = 1", "shoal.toml:1:1: unknown key `durabilty`; did you mean `durability`?"),
            ("durability = 1", "takes \"normal\" or \"full\", got integer"),
            ("[limits]\nptyz = 1", "shoal.toml:2:1: unknown limit `ptyz`; did you mean `ptys`?"),
            ("config = 3", "`config` takes a table, got integer"),
            ("[mcp.kube]\nargs = []", "server `kube` has no `command`"),
            ("[mcp.kube]\ncommand = \"k\"\nargs = [1]", "shoal.toml:3:8: `args` takes an array of strings"),
            ("[mcp.kube]\ncomand = \"k\"", "unknown key of a server: `comand`; did you mean `command`?"),
        ] {
            let error = compile(text).expect_err("refused");
            assert!(error.contains(expect), "{error}");
        }
    }
}
