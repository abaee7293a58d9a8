//! Configuration files of other programs: changed in one place, everything else as it was, with a backup.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::fail::Fail;

/// A file that may not exist yet.
pub(crate) struct ConfigFile {
    /// Where it really lies: configurations are often links into a folder of dotfiles.
    path: PathBuf,
    text: Option<String>,
}

impl ConfigFile {
    /// Reads a file, if it is there.
    pub(crate) fn open(path: &Path) -> Result<Self, Fail> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let text = match fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(Fail::Said(format!("{}: {e}", path.display()))),
        };
        Ok(Self { path, text })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its text as it was read.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Writes beside the file and renames; the path of the backup, if there was a file. With a secret inside nobody
    /// else may read either.
    pub(crate) fn replace(&self, text: &str, secret: bool) -> Result<Option<PathBuf>, Fail> {
        let failed = |e: std::io::Error| {
            let next = "without --write the text is printed, to be entered by hand";
            Fail::Said(format!("{}: {e}; {next}", self.path.display()))
        };
        if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let found = fs::metadata(&self.path).map(|meta| meta.permissions().mode() & 0o777);
        let mode = if secret { 0o600 } else { found.unwrap_or(0o600) };
        let backup = self.text.is_some().then(|| self.beside("shoal-backup"));
        if let Some(backup) = &backup {
            fs::copy(&self.path, backup).map_err(failed)?;
        }
        let new = self.beside("shoal-new");
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&new).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        file.set_permissions(fs::Permissions::from_mode(mode)).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        fs::rename(&new, &self.path).map_err(failed)?;
        Ok(backup)
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{ending}"));
        self.path.with_file_name(name)
    }
}

/// The JSON of a file with `value` as member `name` of its object `key`. Order and other members stay.
pub(crate) fn with_member(file: &ConfigFile, key: &str, name: &str, value: Value) -> Result<String, Fail> {
    let by_hand = |why: &str| {
        let path = file.path().display();
        Fail::Said(format!("{path} {why}; enter this by hand as member `{name}` of `{key}`:\n{value:#}"))
    };
    let mut config: Value = match file.text().filter(|text| !text.trim().is_empty()) {
        Some(text) => serde_json::from_str(text).map_err(|e| by_hand(&format!("is no plain JSON ({e})")))?,
        None => json!({}),
    };
    let servers = config
        .as_object_mut()
        .map(|members| members.entry(key).or_insert_with(|| json!({})))
        .and_then(Value::as_object_mut)
        .ok_or_else(|| by_hand(&format!("has no object `{key}`")))?;
    servers.insert(name.to_owned(), value);
    Ok(format!("{config:#}\n"))
}

/// The TOML of a file with the tables of `text` at its end, which define `key.name`. A file that defines it already is
/// left to its owner.
pub(crate) fn with_table(file: &ConfigFile, key: &str, name: &str, text: &str) -> Result<String, Fail> {
    let before = file.text().unwrap_or_default();
    let is_ours = |line: &&str| {
        let line: String = line.chars().filter(|c| !c.is_whitespace() && !matches!(c, '"' | '\'')).collect();
        line.starts_with(&format!("[{key}.{name}]"))
            || line.starts_with(&format!("[{key}.{name}."))
            || line.starts_with(&format!("{key}.{name}"))
            || line.starts_with(&format!("{key}="))
    };
    if before.ends_with(text) {
        return Ok(before.to_owned());
    }
    if let Some(line) = before.lines().find(is_ours) {
        let path = file.path().display();
        return Err(Fail::Said(format!("{path} has `{}` already; change it there:\n{text}", line.trim())));
    }
    let gap = match before {
        "" => "",
        ends if ends.ends_with("\n\n") => "",
        ends if ends.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    Ok(format!("{before}{gap}{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: Option<&str>) -> ConfigFile {
        ConfigFile { path: "/config".into(), text: text.map(str::to_owned) }
    }

    #[test]
    fn other_members_and_their_order_stay() {
        let before =
            r#"{"z":1,"mcpServers":{"other":{"command":"x"},"shoal":{"command":"old"}},"a":[1.50,{"k":null}]}"#;
        let after = with_member(&file(Some(before)), "mcpServers", "shoal", json!({"command": "new"})).expect("merged");
        let expected =
            r#"{"z":1,"mcpServers":{"other":{"command":"x"},"shoal":{"command":"new"}},"a":[1.5,{"k":null}]}"#;
        let after: Value = serde_json::from_str(&after).expect("JSON");
        assert_eq!(after.to_string(), expected);
        let fresh = with_member(&file(None), "servers", "shoal", json!({})).expect("made");
        assert_eq!(fresh, "{\n  \"servers\": {\n    \"shoal\": {}\n  }\n}\n");
    }

    #[test]
    fn what_cannot_be_merged_is_left_and_told() {
        for text in ["// comment\n{}", "[]", r#"{"mcpServers":[]}"#, "{"] {
            let Err(Fail::Said(told)) = with_member(&file(Some(text)), "mcpServers", "shoal", json!({"command":"c"}))
            else {
                panic!("{text} was merged")
            };
            assert!(told.contains("by hand") && told.contains("\"command\": \"c\""), "{told}");
        }
    }

    #[test]
    fn toml_is_added_once_at_the_end() {
        let ours = "[mcp_servers.shoal]\ncommand = \"c\"\n";
        let enter = |before: &str| with_table(&file(Some(before)), "mcp_servers", "shoal", ours);
        let before = "model = \"o\"\n\n[mcp_servers.other]\ncommand = \"x\"";
        assert_eq!(enter(before).expect("added"), format!("{before}\n\n{ours}"));
        assert_eq!(enter(ours).expect("unchanged"), ours, "the same once more changes nothing");
        for defined in [
            "[mcp_servers.shoal]\nx=1\n",
            "[ mcp_servers . \"shoal\" ]\n",
            "[mcp_servers.shoal.env]\n",
            "mcp_servers = {}\n",
        ] {
            assert!(enter(defined).is_err(), "{defined}");
        }
        assert!(enter("[mcp_servers.shoal2]\n").is_ok());
    }

    #[test]
    fn links_modes_and_backups() {
        let folder = std::env::temp_dir().join(format!("shoal-config-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let (real, link) = (folder.join("real.json"), folder.join("link.json"));
        fs::write(&real, "{}").expect("written");
        fs::set_permissions(&real, fs::Permissions::from_mode(0o644)).expect("mode");
        std::os::unix::fs::symlink(&real, &link).expect("a link");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;

        let backup =
            ConfigFile::open(&link).expect("open").replace("{\"a\":1}", false).expect("replaced").expect("a backup");
        assert!(fs::symlink_metadata(&link).expect("there").is_symlink(), "the link stays a link");
        assert_eq!(fs::read_to_string(&real).expect("there"), "{\"a\":1}");
        assert_eq!((fs::read_to_string(backup).expect("there").as_str(), mode(&real)), ("{}", 0o644));
        ConfigFile::open(&link).expect("open").replace("{\"t\":1}", true).expect("replaced");
        assert_eq!(mode(&real), 0o600, "a secret is the owner's alone");
        let fresh = folder.join("new/config.json");
        assert!(ConfigFile::open(&fresh).expect("open").replace("{}", false).expect("made").is_none());
        fs::remove_dir_all(&folder).expect("removed");
    }
}
