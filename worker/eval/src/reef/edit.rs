//! Adding a tool to a manifest, whose other lines stay as they are.

use shoal_value::{ErrorValue, PathValue};
use toml::{Table, Value};

use super::manifest::parse_native;

/// The text of a manifest that wants `version` of `tool`, from what it is now.
pub(crate) fn with_tool(path: &PathValue, text: &str, tool: &str, version: &str) -> Result<String, ErrorValue> {
    let mut table = parse_native(path, text)?;
    let edited = by_line(text, tool, version);
    if edited.parse::<Table>().is_ok_and(|table| wants(&table, tool, version)) {
        return Ok(edited);
    }
    // A form that lines do not show, such as an inline table.
    let tools = table.entry("tools").or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(tools) = tools {
        tools.insert(tool.to_owned(), Value::String(version.to_owned()));
    }
    Ok(table.to_string())
}

fn wants(table: &Table, tool: &str, version: &str) -> bool {
    table.get("tools").and_then(|tools| tools.get(tool)).and_then(Value::as_str) == Some(version)
}

fn by_line(text: &str, tool: &str, version: &str) -> String {
    let entry = format!("{} = {}", key(tool), Value::String(version.to_owned()));
    let mut lines: Vec<&str> = text.lines().collect();
    let Some(head) = lines.iter().position(|line| line.trim() == "[tools]") else {
        let gap = if text.trim().is_empty() { "" } else { "\n" };
        return format!(
            "{text}{}{gap}[tools]\n{entry}\n",
            if text.is_empty() || text.ends_with('\n') { "" } else { "\n" }
        );
    };
    let section = lines[head + 1..].iter().take_while(|line| !line.trim_start().starts_with('[')).count();
    let named = |line: &&str| line.split_once('=').is_some_and(|(name, _)| name.trim().trim_matches('"') == tool);
    match lines[head + 1..=head + section].iter().position(named) {
        Some(at) => lines[head + 1 + at] = &entry,
        None => lines.insert(head + 1, &entry),
    }
    lines.join("\n") + "\n"
}

/// A key as TOML writes it.
fn key(name: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.bytes().all(bare) { name.to_owned() } else { Value::String(name.to_owned()).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(text: &str) -> String {
        with_tool(&PathValue::from("/m"), text, "node", "22").expect("a manifest")
    }

    #[test]
    fn other_lines_stay() {
        assert_eq!(add(""), "[tools]\nnode = \"22\"\n");
        assert_eq!(add("# mine\n[options]\n"), "# mine\n[options]\n\n[tools]\nnode = \"22\"\n");
        assert_eq!(add("[tools] \nrg = \"*\" # why\n"), "[tools] \nnode = \"22\"\nrg = \"*\" # why\n");
        assert_eq!(add("[tools]\nnode = \"18\"\nrg = \"*\"\n"), "[tools]\nnode = \"22\"\nrg = \"*\"\n");
    }

    #[test]
    fn forms_of_one_line_are_written_anew() {
        let text = add("tools = {rg = \"*\", node = \"18\"}\n");
        assert!(
            text.parse::<Table>().is_ok_and(|table| wants(&table, "node", "22") && wants(&table, "rg", "*")),
            "{text}"
        );
        assert!(with_tool(&PathValue::from("/m"), "tools = 5", "node", "22").is_err());
    }
}
