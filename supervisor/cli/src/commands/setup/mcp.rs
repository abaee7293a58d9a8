//! `shoal setup mcp CLIENT`: the registration, printed or written with a backup.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use shoal_client::Vars;

use crate::args::McpClient;
use crate::context::Context;
use crate::fail::Fail;
use crate::{out, siblings};

/// Prints what to enter, or enters it.
pub(crate) fn run(context: &Context, client: McpClient, write: bool) -> Result<ExitCode, Fail> {
    let program = siblings::find("shoal-mcp")?;
    let program = std::fs::canonicalize(&program).unwrap_or(program);
    let entry = Entry { program: program.display().to_string(), session: context.config.session.clone() };
    let home = Vars::of_process().path("HOME").ok_or_else(|| Fail::Said("HOME is not set".to_owned()))?;
    if !write {
        out::line(&entry.text(client))?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = match client {
        McpClient::Claude => home.join(".claude.json"),
        McpClient::Cursor => home.join(".cursor/mcp.json"),
        McpClient::Gemini => home.join(".gemini/settings.json"),
        McpClient::Vscode => PathBuf::from(".vscode/mcp.json"),
        McpClient::Json => PathBuf::from(".mcp.json"),
        McpClient::Codex => return append_codex(&home.join(".codex/config.toml"), &entry),
    };
    let key = if client == McpClient::Vscode { "servers" } else { "mcpServers" };
    merge_json(&path, key, &entry)?;
    out::line(&format!("entered shoal into {}", path.display()))?;
    Ok(ExitCode::SUCCESS)
}

struct Entry {
    program: String,
    session: String,
}

impl Entry {
    fn server(&self) -> Value {
        json!({"type": "stdio", "command": self.program, "args": [], "env": {"SHOAL_SESSION": self.session}})
    }

    fn codex(&self) -> String {
        format!(
            "[mcp_servers.shoal]\ncommand = {:?}\nargs = []\nenv_vars = [\"XDG_RUNTIME_DIR\", \"XDG_STATE_HOME\", \"XDG_CONFIG_HOME\"]\n\n[mcp_servers.shoal.env]\nSHOAL_SESSION = {:?}\n",
            self.program, self.session
        )
    }

    /// What a person enters by hand.
    fn text(&self, client: McpClient) -> String {
        match client {
            McpClient::Claude => {
                format!("claude mcp add --scope user shoal -e SHOAL_SESSION={} -- {}", self.session, self.program)
            }
            McpClient::Codex => self.codex(),
            McpClient::Vscode => format!("{:#}", json!({"servers": {"shoal": self.server()}})),
            McpClient::Cursor | McpClient::Gemini | McpClient::Json => {
                format!("{:#}", json!({"mcpServers": {"shoal": self.server()}}))
            }
        }
    }
}

/// Reads a file that may be absent.
fn read(path: &Path) -> Result<Option<String>, Fail> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Fail::Said(format!("{}: {e}", path.display()))),
    }
}

/// Writes beside the file, keeps a backup, and renames.
fn replace(path: &Path, before: Option<&str>, after: &str) -> Result<(), Fail> {
    let failed = |e: std::io::Error| Fail::Said(format!("{}: {e}", path.display()));
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    if let Some(before) = before {
        std::fs::write(path.with_extension("shoal-backup"), before).map_err(failed)?;
    }
    let temp = path.with_extension("shoal-new");
    std::fs::write(&temp, after).map_err(failed)?;
    std::fs::rename(&temp, path).map_err(failed)
}

fn merge_json(path: &Path, key: &str, entry: &Entry) -> Result<(), Fail> {
    let before = read(path)?;
    let mut config: Value = match before.as_deref().filter(|t| !t.trim().is_empty()) {
        Some(text) => serde_json::from_str(text).map_err(|e| {
            Fail::Said(format!("{} is no plain JSON ({e}); enter this by hand:\n{:#}", path.display(), entry.server()))
        })?,
        None => json!({}),
    };
    let servers = config
        .as_object_mut()
        .map(|members| members.entry(key).or_insert_with(|| json!({})))
        .and_then(Value::as_object_mut)
        .ok_or_else(|| Fail::Said(format!("{}: `{key}` is no object", path.display())))?;
    servers.insert("shoal".to_owned(), entry.server());
    replace(path, before.as_deref(), &format!("{config:#}\n"))
}

fn append_codex(path: &Path, entry: &Entry) -> Result<ExitCode, Fail> {
    let before = read(path)?;
    let text = before.clone().unwrap_or_default();
    if text.contains("[mcp_servers.shoal]") {
        return Err(Fail::Said(format!("{} has [mcp_servers.shoal] already; change it there", path.display())));
    }
    let gap = if text.is_empty() || text.ends_with("\n\n") { "" } else { "\n" };
    replace(path, before.as_deref(), &format!("{text}{gap}{}", entry.codex()))?;
    out::line(&format!("entered shoal into {}", path.display()))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry { program: "/opt/shoal-mcp".into(), session: "work".into() }
    }

    #[test]
    fn other_servers_stay() {
        let folder = std::env::temp_dir().join(format!("shoal-setup-{}", std::process::id()));
        let path = folder.join("mcp.json");
        replace(&path, None, r#"{"mcpServers":{"other":{"command":"x"}},"more":1}"#).expect("written");
        merge_json(&path, "mcpServers", &entry()).expect("merged");
        let now: Value = serde_json::from_str(&std::fs::read_to_string(&path).expect("there")).expect("JSON");
        assert_eq!(now["mcpServers"]["other"]["command"], json!("x"));
        assert_eq!(now["mcpServers"]["shoal"]["command"], json!("/opt/shoal-mcp"));
        assert_eq!(now["more"], json!(1));
        assert!(path.with_extension("shoal-backup").exists());
        std::fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn every_client_has_a_text() {
        assert!(entry().text(McpClient::Claude).ends_with("-- /opt/shoal-mcp"));
        assert!(entry().text(McpClient::Vscode).contains("\"servers\""));
        assert!(entry().text(McpClient::Codex).contains("[mcp_servers.shoal]"));
    }
}
