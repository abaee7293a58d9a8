//! `shoal setup mcp CLIENT`: the registration of `shoal-mcp`, printed or entered into the client's configuration.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Map, Value, json};

use super::config_file::{self, ConfigFile};
use crate::args::{McpClient, SetupMcp};
use crate::commands::token;
use crate::context::{Context, text};
use crate::fail::Fail;
use crate::{out, siblings};

/// Variables that say where the kernel is; hosts that strip the environment must be told to pass them.
const PLACES: [&str; 3] = ["XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"];

/// Prints what to enter, or enters it.
pub(crate) fn run(context: &Context, asked: SetupMcp) -> Result<ExitCode, Fail> {
    let program = siblings::find("shoal-mcp")?;
    let program = std::fs::canonicalize(&program).unwrap_or(program);
    let client = asked.client;
    let file = (asked.write && !asked.print).then(|| open(client, context)).transpose()?;
    // Asked for last: a configuration that cannot be changed costs no token.
    let token = asked.principal.as_deref().map(|principal| create_token(context, principal)).transpose()?;
    let entry = Entry { program: program.display().to_string(), session: context.config.session.clone(), token };
    let Some(file) = file else {
        out::either(context, &json!({"text": entry.text(client)}), &entry.text(client))?;
        return Ok(ExitCode::SUCCESS);
    };
    let path = file.path().display().to_string();
    let (before, after) = (file.text(), entry.entered(client, &file)?);
    if before == Some(after.as_str()) {
        out::either(context, &json!({"path": path, "changed": false}), &format!("{path} has shoal already"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let backup = file.replace(&after, entry.token.is_some())?;
    let backup = backup.map(|backup| backup.display().to_string());
    let kept = backup.as_ref().map(|backup| format!("\nthe file as it was: {backup}")).unwrap_or_default();
    let document = json!({"path": path, "changed": true, "backup": backup});
    out::either(
        context,
        &document,
        &format!("entered shoal into {path}{kept}\nstart the client anew; its tools begin with shoal_"),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// The configuration of a client: of the user where the client has one for all projects, else of this directory.
fn open(client: McpClient, context: &Context) -> Result<ConfigFile, Fail> {
    let home = context.vars().path("HOME").ok_or_else(|| Fail::Said("HOME is not set".to_owned()))?;
    ConfigFile::open(&match client {
        McpClient::Claude => home.join(".claude.json"),
        McpClient::Cursor => home.join(".cursor/mcp.json"),
        McpClient::Gemini => home.join(".gemini/settings.json"),
        McpClient::Codex => home.join(".codex/config.toml"),
        McpClient::Vscode => PathBuf::from(".vscode/mcp.json"),
        McpClient::Json => PathBuf::from(".mcp.json"),
    })
}

/// A token for an agent of its own; its secret goes into the client's environment and nowhere else.
fn create_token(context: &Context, principal: &str) -> Result<String, Fail> {
    let created = token::create(context, &json!({"principal": principal, "profile": "mcp"}))?;
    let id = text(&created, "id");
    out::note(&format!("created {id} for {principal}; `shoal token revoke {id}` ends it"));
    Ok(text(&created, "token"))
}

/// What is entered.
struct Entry {
    program: String,
    session: String,
    token: Option<String>,
}

impl Entry {
    fn env(&self) -> Vec<(&'static str, &str)> {
        let token = self.token.as_deref().map(|token| ("SHOAL_TOKEN", token));
        [("SHOAL_SESSION", &*self.session)].into_iter().chain(token).collect()
    }

    fn server(&self, client: McpClient) -> Value {
        let env: Map<String, Value> =
            self.env().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        let mut server = json!({"command": self.program, "args": [], "env": env});
        // Gemini knows the kind by the members; the others name it.
        if client != McpClient::Gemini {
            server["type"] = "stdio".into();
        }
        server
    }

    fn codex(&self) -> String {
        let env: Vec<String> =
            self.env().iter().map(|(name, value)| format!("{name} = {}", toml_text(value))).collect();
        let passed: Vec<String> = PLACES.iter().map(|name| toml_text(name)).collect();
        format!(
            "[mcp_servers.shoal]\ncommand = {}\nargs = []\nenv_vars = [{}]\n\n[mcp_servers.shoal.env]\n{}\n",
            toml_text(&self.program),
            passed.join(", "),
            env.join("\n")
        )
    }

    /// What a person enters by hand.
    fn text(&self, client: McpClient) -> String {
        match client {
            McpClient::Claude => {
                let env = self
                    .env()
                    .into_iter()
                    .map(|(name, value)| format!("-e {} ", shell_word(&format!("{name}={value}"))));
                let env: String = env.collect();
                format!("claude mcp add --scope user shoal {env}-- {}", shell_word(&self.program))
            }
            McpClient::Codex => self.codex(),
            other => format!("{:#}", json!({ key(other): {"shoal": self.server(other)} })),
        }
    }

    /// The client's file with the entry in it; everything else stays as it is.
    fn entered(&self, client: McpClient, file: &ConfigFile) -> Result<String, Fail> {
        match client {
            McpClient::Codex => config_file::with_table(file, "mcp_servers", "shoal", &self.codex()),
            other => config_file::with_member(file, key(other), "shoal", self.server(other)),
        }
    }
}

/// The member that holds a client's servers.
fn key(client: McpClient) -> &'static str {
    if client == McpClient::Vscode { "servers" } else { "mcpServers" }
}

/// A basic string of TOML: JSON's escapes are a subset of its.
fn toml_text(text: &str) -> String {
    Value::from(text).to_string()
}

/// A word of a shell command.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:@%+,".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(token: Option<&str>) -> Entry {
        Entry { program: "/opt/my tools/shoal-mcp".into(), session: "work".into(), token: token.map(str::to_owned) }
    }

    const CLIENTS: [McpClient; 6] =
        [McpClient::Claude, McpClient::Codex, McpClient::Cursor, McpClient::Vscode, McpClient::Gemini, McpClient::Json];

    #[test]
    fn every_client_has_a_text_with_program_session_and_token() {
        for client in CLIENTS {
            let text = entry(Some("shoal_secret")).text(client);
            for part in ["/opt/my tools/shoal-mcp", "work", "SHOAL_TOKEN", "shoal_secret"] {
                assert!(text.contains(part), "{client:?}: {text}");
            }
            assert!(!entry(None).text(client).contains("SHOAL_TOKEN"), "{client:?}");
        }
        assert!(entry(None).text(McpClient::Claude).ends_with("-- '/opt/my tools/shoal-mcp'"));
        assert!(entry(None).text(McpClient::Vscode).contains("\"servers\""));
        assert!(!entry(None).text(McpClient::Gemini).contains("\"type\""));
    }
}
