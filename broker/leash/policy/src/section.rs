//! One principal's table to its compiled section.

use shoal_proto::section::{Approve, AutoApply, Entry, MAX_ENTRIES, Network, Opaque, Section, SectionLimits};
use shoal_proto::{List, Text};
use toml::de::DeValue;

use crate::keys::{self, Key};
use crate::size;
use crate::source::{Node, Source};

/// Processes of a session unless the policy says otherwise.
const DEFAULT_PIDS: u32 = 4096;
/// Bytes of output of an execution unless the policy says otherwise.
const DEFAULT_OUTPUT: u64 = 1 << 30;

/// Limits of a section without `limits`.
pub(crate) fn default_limits() -> SectionLimits {
    SectionLimits { pids: Some(DEFAULT_PIDS), output: Some(DEFAULT_OUTPUT), ..SectionLimits::default() }
}

/// Compiles the table of `principal`.
pub(crate) fn compile(source: &Source<'_>, principal: &str, node: &Node<'_>, home: &str) -> Result<Section, String> {
    let name = Text::new(principal).map_err(|e| source.at(node.span(), &format!("principal name: {e} bytes")))?;
    let mut section = Section { principal: name, git_safe: true, limits: default_limits(), ..Section::default() };
    let mut network_given = false;
    for key in keys::flatten(source, node)? {
        network_given |= key.name == "network";
        set(source, &mut section, &key, home)?;
    }
    if !network_given {
        let any = !section.net_connect.as_slice().is_empty() || !section.net_listen.as_slice().is_empty();
        section.network = if any { Network::Ports } else { Network::None };
    }
    Ok(section)
}

fn set(source: &Source<'_>, section: &mut Section, key: &Key<'_, '_>, home: &str) -> Result<(), String> {
    match key.name {
        "fs.read" => section.fs_read = globs(source, key, home)?,
        "fs.write" => section.fs_write = globs(source, key, home)?,
        "fs.delete" => section.fs_delete = globs(source, key, home)?,
        "net_connect" => section.net_connect = endpoints(source, key)?,
        "net_listen" => section.net_listen = ports(source, key)?,
        "proc_spawn" => section.proc_spawn = strings(source, key)?,
        "env_read" => section.env_read = strings(source, key)?,
        "env_write" => section.env_write = strings(source, key)?,
        "secret_use" => section.secret_use = strings(source, key)?,
        "session_write" => section.session_write = boolean(source, key)?,
        "journal_read" => section.journal_read = boolean(source, key)?,
        "time" => section.time = boolean(source, key)?,
        "hermetic" => section.hermetic = boolean(source, key)?,
        "opaque" => {
            let words = [("deny", Opaque::Deny), ("ask", Opaque::Ask), ("allow", Opaque::Allow)];
            section.opaque = choice(source, key, &words)?;
        }
        "auto_apply" => {
            let words =
                [("never", AutoApply::Never), ("in-grant", AutoApply::InGrant), ("reversible", AutoApply::Reversible)];
            section.auto_apply = choice(source, key, &words)?;
        }
        "approve" => section.approve = approve(source, key)?,
        "network" => {
            let words = [("none", Network::None), ("ports", Network::Ports), ("open", Network::Open)];
            section.network = choice(source, key, &words)?;
        }
        "git" => section.git_safe = choice(source, key, &[("safe", true), ("off", false)])?,
        "require" => section.require = claims(source, key)?,
        "unix_sockets" => section.unix_sockets = sockets(source, key)?,
        "limits" => section.limits = limits(source, key)?,
        "idle_ttl" => section.idle_ttl = Some(integer(source, key.node, key.name)?),
        other => return Err(source.at(key.node.span(), &format!("`{other}` has no reader"))),
    }
    Ok(())
}

/// The text items of an array, each with its place.
fn items<'n>(source: &Source<'_>, key: &'n Key<'_, '_>) -> Result<Vec<(&'n str, std::ops::Range<usize>)>, String> {
    let DeValue::Array(array) = key.node.get_ref() else {
        return Err(source.wrong_type(key.node, key.name, "an array of strings"));
    };
    array
        .iter()
        .map(|item| match item.get_ref() {
            DeValue::String(text) => Ok((text.as_ref(), item.span())),
            _ => Err(source.wrong_type(item, key.name, "strings")),
        })
        .collect()
}

fn entries(
    source: &Source<'_>,
    key: &Key<'_, '_>,
    mut read: impl FnMut(&str) -> Result<String, String>,
) -> Result<List<Entry, MAX_ENTRIES>, String> {
    let mut list = Vec::new();
    for (text, span) in items(source, key)? {
        let entry = read(text).map_err(|e| source.at(span.clone(), &format!("`{}`: {e}", key.name)))?;
        list.push(Text::new(entry).map_err(|e| source.at(span, &format!("`{}`: {e} bytes", key.name)))?);
    }
    List::new(list).map_err(|e| source.at(key.node.span(), &format!("`{}`: {e} entries", key.name)))
}

fn strings(source: &Source<'_>, key: &Key<'_, '_>) -> Result<List<Entry, MAX_ENTRIES>, String> {
    entries(source, key, |text| {
        if text.is_empty() { Err("an empty entry matches nothing".to_owned()) } else { Ok(text.to_owned()) }
    })
}

fn globs(source: &Source<'_>, key: &Key<'_, '_>, home: &str) -> Result<List<Entry, MAX_ENTRIES>, String> {
    entries(source, key, |text| {
        let full = expand(text, home)?;
        // A jail is made of whole trees: what stands after `**` could be judged and never enforced.
        match full.strip_suffix("/**").unwrap_or(&full).split_once("**") {
            None => Ok(full),
            Some((root, _)) => Err(format!(
                "{text:?} has `**` before its end, which no jail can enforce; write \"{}**\" or name the directories",
                root.rsplit_once('/').map_or("/", |(dir, _)| root.get(..=dir.len()).unwrap_or("/"))
            )),
        }
    })
}

fn sockets(source: &Source<'_>, key: &Key<'_, '_>) -> Result<List<Entry, MAX_ENTRIES>, String> {
    entries(source, key, |text| {
        let path = expand(text, "")?;
        if path.contains(['*', '?']) {
            Err(format!("{text:?} is a glob; sockets are named one by one"))
        } else {
            Ok(path)
        }
    })
}

/// An absolute glob, `~/` replaced by the home directory.
fn expand(text: &str, home: &str) -> Result<String, String> {
    let full = match text.strip_prefix("~/") {
        Some(_) if home.is_empty() => return Err(format!("{text:?} needs a home directory; write an absolute path")),
        Some(rest) => format!("{}/{rest}", home.trim_end_matches('/')),
        None => text.to_owned(),
    };
    if full.starts_with('/') { Ok(full) } else { Err(format!("{text:?} is not absolute; write /path or ~/path")) }
}

fn endpoints(source: &Source<'_>, key: &Key<'_, '_>) -> Result<List<Entry, MAX_ENTRIES>, String> {
    entries(source, key, |text| {
        let valid = text
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && (port == "*" || port.parse::<u16>().is_ok_and(|p| p > 0)));
        if valid { Ok(text.to_owned()) } else { Err(format!("{text:?} is not \"host:port\" or \"host:*\"")) }
    })
}

fn ports(source: &Source<'_>, key: &Key<'_, '_>) -> Result<List<u16, MAX_ENTRIES>, String> {
    let DeValue::Array(array) = key.node.get_ref() else {
        return Err(source.wrong_type(key.node, key.name, "an array of ports"));
    };
    let list: Result<Vec<u16>, String> = array
        .iter()
        .map(|item| {
            let port = integer(source, item, key.name)?;
            u16::try_from(port)
                .ok()
                .filter(|p| *p > 0)
                .ok_or_else(|| source.at(item.span(), &format!("`{}`: {port} is no port; 1 to 65535", key.name)))
        })
        .collect();
    List::new(list?).map_err(|e| source.at(key.node.span(), &format!("`{}`: {e} entries", key.name)))
}

fn boolean(source: &Source<'_>, key: &Key<'_, '_>) -> Result<bool, String> {
    match key.node.get_ref() {
        DeValue::Boolean(value) => Ok(*value),
        _ => Err(source.wrong_type(key.node, key.name, "true or false")),
    }
}

fn choice<T: Copy>(source: &Source<'_>, key: &Key<'_, '_>, words: &[(&str, T)]) -> Result<T, String> {
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let DeValue::String(text) = key.node.get_ref() else {
        return Err(source.wrong_type(key.node, key.name, &format!("one of {}", known.join(", "))));
    };
    words
        .iter()
        .find(|(word, _)| *word == text.as_ref())
        .map(|(_, value)| *value)
        .ok_or_else(|| source.unknown(key.node.span(), &format!("value of `{}`:", key.name), text, &known))
}

fn approve(source: &Source<'_>, key: &Key<'_, '_>) -> Result<Approve, String> {
    match key.node.get_ref() {
        DeValue::Boolean(true) => Ok(Approve::Others),
        DeValue::Boolean(false) => Ok(Approve::Human),
        _ => choice(source, key, &[("human", Approve::Human), ("self", Approve::Itself), ("client", Approve::Client)]),
    }
}

/// Bit `n - 1` for `Cn`.
fn claims(source: &Source<'_>, key: &Key<'_, '_>) -> Result<u16, String> {
    let mut mask = 0;
    for (text, span) in items(source, key)? {
        let number = text.strip_prefix('C').and_then(|n| n.parse::<u16>().ok()).filter(|n| (1..=12).contains(n));
        let Some(number) = number else {
            return Err(source.at(span, &format!("`{}`: {text:?} is no claim; C1 to C12", key.name)));
        };
        mask |= 1 << (number - 1);
    }
    Ok(mask)
}

/// A non-negative integer.
pub(crate) fn integer(source: &Source<'_>, node: &Node<'_>, key: &str) -> Result<u64, String> {
    let DeValue::Integer(value) = node.get_ref() else {
        return Err(source.wrong_type(node, key, "a number"));
    };
    u64::from_str_radix(value.as_str(), value.radix())
        .map_err(|_| source.at(node.span(), &format!("`{key}` takes a number from 0, got {}", value.as_str())))
}

fn limits(source: &Source<'_>, key: &Key<'_, '_>) -> Result<SectionLimits, String> {
    const KNOWN: [&str; 5] = ["memory", "pids", "cpu_seconds", "open_files", "output"];
    let DeValue::Table(table) = key.node.get_ref() else {
        return Err(source.wrong_type(key.node, key.name, "a table"));
    };
    let mut limits = default_limits();
    for (name, node) in table {
        let full = format!("limits.{}", name.get_ref());
        let small = |value: u64| {
            u32::try_from(value).map_err(|_| source.at(node.span(), &format!("`{full}` is at most {}", u32::MAX)))
        };
        match name.get_ref().as_ref() {
            "memory" => limits.memory = Some(bytes(source, node, &full)?),
            "output" => limits.output = Some(bytes(source, node, &full)?),
            "cpu_seconds" => limits.cpu_seconds = Some(integer(source, node, &full)?),
            "pids" => limits.pids = Some(small(integer(source, node, &full)?)?),
            "open_files" => limits.open_files = Some(small(integer(source, node, &full)?)?),
            other => return Err(source.unknown(name.span(), "limit", other, &KNOWN)),
        }
    }
    Ok(limits)
}

fn bytes(source: &Source<'_>, node: &Node<'_>, key: &str) -> Result<u64, String> {
    match node.get_ref() {
        DeValue::String(text) => size::parse(text).ok_or_else(|| {
            source.at(node.span(), &format!("`{key}` takes bytes or a size like \"2gib\", got {text:?}"))
        }),
        _ => integer(source, node, key),
    }
}
