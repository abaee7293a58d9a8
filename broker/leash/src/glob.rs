//! Matching of paths, hosts and names against the entries of a section.

/// Normalises an absolute path lexically: `.` and `..` and double slashes are resolved, symlinks are not looked at.
pub fn normalise(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Whether a glob covers a path. `*` and `?` stop at `/`, `**` crosses; `/dir/**` covers `/dir` itself. The unknown
/// path `*` is covered by `/**` alone.
pub fn path_matches(glob: &str, path: &str) -> bool {
    if glob == "/**" {
        return true;
    }
    if path == "*" || !path.starts_with('/') {
        return false;
    }
    let path = normalise(path);
    if let Some(dir) = glob.strip_suffix("/**")
        && matches(dir.as_bytes(), path.as_bytes())
    {
        return true;
    }
    matches(glob.as_bytes(), path.as_bytes())
}

/// One run through the text with two marks to return to, one for `*` and one for `**`: linear in practice and never
/// exponential, whatever the pattern.
fn matches(glob: &[u8], text: &[u8]) -> bool {
    let (mut g, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    let mut double: Option<(usize, usize)> = None;
    loop {
        match glob.get(g) {
            Some(b'*') if glob.get(g + 1) == Some(&b'*') => {
                g += 2;
                double = Some((g, t));
                star = None;
                continue;
            }
            Some(b'*') => {
                g += 1;
                star = Some((g, t));
                continue;
            }
            Some(b'?') if text.get(t).is_some_and(|c| *c != b'/') => {
                g += 1;
                t += 1;
                continue;
            }
            Some(want) if text.get(t) == Some(want) && *want != b'?' => {
                g += 1;
                t += 1;
                continue;
            }
            None if t == text.len() => return true,
            _ => {}
        }
        if let Some((after, at)) = star
            && text.get(at).is_some_and(|c| *c != b'/')
        {
            star = Some((after, at + 1));
            (g, t) = (after, at + 1);
        } else if let Some((after, at)) = double
            && at < text.len()
        {
            double = Some((after, at + 1));
            star = None;
            (g, t) = (after, at + 1);
        } else {
            return false;
        }
    }
}

/// Whether an entry `host-glob:port` or `host-glob:*` covers a host and port. Hosts compare without case; the unknown
/// host `*` needs the glob `*`, the unknown port 0 needs `*`.
pub fn host_port_matches(entry: &str, host: &str, port: u16) -> bool {
    let Some((host_glob, port_text)) = entry.rsplit_once(':') else { return false };
    let port_ok = port_text == "*" || (port != 0 && port_text.parse() == Ok(port));
    let host_ok = if host == "*" {
        host_glob == "*"
    } else {
        matches(host_glob.to_ascii_lowercase().as_bytes(), host.to_ascii_lowercase().as_bytes())
    };
    port_ok && host_ok
}

/// Whether an entry is the name itself or `*`.
pub fn name_matches(entry: &str, name: &str) -> bool {
    entry == "*" || entry == name
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn globs() {
        let table = [
            ("/srv/site/**", "/srv/site", true),
            ("/srv/site/**", "/srv/site/a/b", true),
            ("/srv/site/**", "/srv/sitemap", false),
            ("/srv/site/**", "/srv/site/../other", false),
            ("/srv/*/x", "/srv/a/x", true),
            ("/srv/*/x", "/srv/a/b/x", false),
            ("/srv/**/x", "/srv/a/b/x", true),
            ("/srv/?.txt", "/srv/a.txt", true),
            ("/srv/?.txt", "/srv//.txt", false),
            ("/**", "*", true),
            ("/srv/**", "*", false),
            ("/a", "/a/b", false),
        ];
        for (glob, path, expect) in table {
            assert_eq!(path_matches(glob, path), expect, "{glob} {path}");
        }
    }

    #[test]
    fn hosts() {
        assert!(host_port_matches("*.example.org:443", "www.Example.org", 443));
        assert!(!host_port_matches("*.example.org:443", "example.org", 443));
        assert!(!host_port_matches("*.example.org:443", "www.example.org", 80));
        assert!(host_port_matches("*:*", "*", 0));
        assert!(!host_port_matches("*:443", "*", 0));
    }

    proptest! {
        #[test]
        fn a_literal_matches_only_itself(a in "/[a-c/]{0,12}", b in "/[a-c/]{0,12}") {
            let (a, b) = (normalise(&a), normalise(&b));
            prop_assert_eq!(path_matches(&a, &b), a == b);
        }

        #[test]
        fn hostile_patterns_end(stars in "[*?a/]{0,40}", text in "/[a/]{0,200}") {
            let _covered: bool = path_matches(&stars, &text);
        }
    }
}
