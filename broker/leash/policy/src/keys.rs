//! Keys of a principal section: their spellings, nested or not, resolved to one name.

use toml::de::DeValue;

use crate::source::{Node, Source};

/// One key as written, under its canonical name.
pub(crate) struct Key<'n, 't> {
    /// Canonical name.
    pub(crate) name: &'static str,
    /// Its value.
    pub(crate) node: &'n Node<'t>,
}

/// Canonical names with their aliases.
const NAMES: &[(&str, &[&str])] = &[
    ("fs.read", &[]),
    ("fs.write", &[]),
    ("fs.delete", &[]),
    ("net_connect", &["net", "net.connect"]),
    ("net_listen", &["net.listen"]),
    ("proc_spawn", &["spawn", "proc.spawn"]),
    ("env_read", &["env.read"]),
    ("env_write", &["env.write"]),
    ("secret_use", &["secrets", "secret.use"]),
    ("session_write", &["session.write"]),
    ("journal_read", &["journal.read"]),
    ("time", &[]),
    ("opaque", &[]),
    ("auto_apply", &[]),
    ("approve", &[]),
    ("require", &[]),
    ("hermetic", &[]),
    ("network", &[]),
    ("unix_sockets", &[]),
    ("git", &[]),
    ("limits", &[]),
    ("idle_ttl", &[]),
];

/// Tables that only group keys: `fs.read`, `net.connect`.
const GROUPS: &[&str] = &["fs", "net", "proc", "env", "secret", "session", "journal"];

/// Flattens a section's table to its keys; an unknown one, or one given twice under two spellings, is an error.
pub(crate) fn flatten<'n, 't>(source: &Source<'_>, section: &'n Node<'t>) -> Result<Vec<Key<'n, 't>>, String> {
    let DeValue::Table(table) = section.get_ref() else {
        return Err(source.wrong_type(section, "principal section", "a table"));
    };
    let mut keys: Vec<Key<'n, 't>> = Vec::new();
    for (name, node) in table {
        match node.get_ref() {
            DeValue::Table(inner) if GROUPS.contains(&name.get_ref().as_ref()) => {
                for (leaf, node) in inner {
                    let full = format!("{}.{}", name.get_ref(), leaf.get_ref());
                    add(source, &mut keys, &full, leaf.span(), node)?;
                }
            }
            _ => add(source, &mut keys, name.get_ref(), name.span(), node)?,
        }
    }
    Ok(keys)
}

fn add<'n, 't>(
    source: &Source<'_>,
    keys: &mut Vec<Key<'n, 't>>,
    spelling: &str,
    span: std::ops::Range<usize>,
    node: &'n Node<'t>,
) -> Result<(), String> {
    let found = NAMES.iter().find(|(name, aliases)| *name == spelling || aliases.contains(&spelling));
    let Some((name, _)) = found else {
        let known: Vec<&str> =
            NAMES.iter().flat_map(|(name, aliases)| std::iter::once(*name).chain(aliases.iter().copied())).collect();
        return Err(source.unknown(span, "key", spelling, &known));
    };
    if keys.iter().any(|k| k.name == *name) {
        return Err(source.at(span, &format!("`{name}` is given twice, here as `{spelling}`")));
    }
    keys.push(Key { name, node });
    Ok(())
}
