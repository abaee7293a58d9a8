//! Which server a URI belongs to.

use shoal_wire::uri::SCHEME;

/// A configured server as it describes itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// Name in the configuration.
    pub name: String,
    /// URIs it lists.
    pub resources: Vec<String>,
    /// Templates it lists.
    pub templates: Vec<String>,
    /// Whether it offers subscriptions.
    pub subscribes: bool,
}

/// Where a URI is read and watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'s> {
    /// The session's own resources.
    Session,
    /// A configured server.
    Server(&'s Server),
}

/// The server of a URI: the one that lists it, else the first whose template matches, else the first that offers
/// subscriptions. `None` when there is no server at all to try.
pub fn find<'s>(uri: &str, servers: &'s [Server]) -> Option<Target<'s>> {
    if uri.starts_with(SCHEME) {
        return Some(Target::Session);
    }
    let lists = |server: &&Server| server.resources.iter().any(|listed| listed == uri);
    let matching = |server: &&Server| server.templates.iter().any(|template| matches(template, uri));
    let found = servers.iter().find(lists).or_else(|| servers.iter().find(matching));
    found.or_else(|| servers.iter().find(|server| server.subscribes)).map(Target::Server)
}

/// Whether a URI may come from an RFC 6570 template: `{x}` stands for one segment, `{+x}` for anything, `{/x}` for an
/// optional segment, `{?x}`, `{&x}` and `{#x}` for an optional tail.
pub fn matches(template: &str, uri: &str) -> bool {
    let Some((literal, rest)) = template.split_once('{') else { return template == uri };
    let Some(tail) = uri.strip_prefix(literal) else { return false };
    let Some((expression, rest)) = rest.split_once('}') else { return false };
    let segment = |c: char| !matches!(c, '/' | '?' | '#');
    match expression.chars().next() {
        Some('+') => splits(tail, |_| true).any(|(_, after)| matches(rest, after)),
        Some('/') => {
            matches(rest, tail)
                || tail
                    .strip_prefix('/')
                    .is_some_and(|tail| splits(tail, segment).any(|(_, after)| matches(rest, after)))
        }
        Some(mark @ ('?' | '&' | '#')) => {
            matches(rest, tail)
                || tail
                    .strip_prefix(mark)
                    .is_some_and(|tail| splits(tail, |_| true).any(|(_, after)| matches(rest, after)))
        }
        _ => splits(tail, segment).any(|(value, after)| !value.is_empty() && matches(rest, after)),
    }
}

/// Every way to take a beginning of `text` whose characters all pass.
fn splits<'t>(text: &'t str, pass: impl Fn(char) -> bool + 't) -> impl Iterator<Item = (&'t str, &'t str)> {
    let end = text.find(|c| !pass(c)).unwrap_or(text.len());
    (0..=end).filter(|at| text.is_char_boundary(*at)).map(|at| text.split_at(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str, resources: &[&str], templates: &[&str], subscribes: bool) -> Server {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        Server { name: name.to_owned(), resources: owned(resources), templates: owned(templates), subscribes }
    }

    #[test]
    fn templates() {
        let template = "kube://watch/{cluster}/{kind}{?namespace,name}";
        assert!(matches(template, "kube://watch/main/configmaps?namespace=*"));
        assert!(matches(template, "kube://watch/main/configmaps"));
        assert!(!matches(template, "kube://watch/main"));
        assert!(!matches(template, "kube://watch//configmaps"));
        assert!(!matches(template, "kube://watch/main/configmaps/x"));
        assert!(matches("file://{+path}", "file:///a/b?c"));
        assert!(matches("a://x{/y}", "a://x") && matches("a://x{/y}", "a://x/y") && !matches("a://x{/y}", "a://x/y/z"));
        assert!(matches("a://plain", "a://plain") && !matches("a://{", "a://x"));
    }

    #[test]
    fn the_best_server_is_found() {
        let servers = [
            server("one", &[], &[], true),
            server("two", &[], &["memo://{name}"], false),
            server("three", &["memo://notes"], &[], false),
        ];
        let name = |uri: &str| match find(uri, &servers) {
            Some(Target::Server(server)) => server.name.clone(),
            other => format!("{other:?}"),
        };
        assert_eq!(name("memo://notes"), "three");
        assert_eq!(name("memo://other"), "two");
        assert_eq!(name("x://y"), "one");
        assert_eq!(find("shoal://jobs", &servers), Some(Target::Session));
        assert_eq!(find("x://y", &servers[1..]), None);
    }
}
