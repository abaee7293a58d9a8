//! The documents: what they name in the repository is there.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "the checks read the repository")]

use std::path::Path;

use shoal_tidy::{files, root};

/// Folders at the top whose names begin the path of something in the repository.
const FOLDERS: [&str; 9] = ["ipc", "supervisor", "broker", "worker", "ptyd", "mcp", "tests", "packaging", "docs"];

/// What is in backquotes, a line at a time.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Targets of links, without the part of a page they lead to.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets
        .map(|(target, _)| target.split('#').next().unwrap_or(target))
        .filter(|t| !t.is_empty() && !t.contains("://"))
}

fn is_path_of_ours(name: &str) -> bool {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
    plain && name.split_once('/').is_some_and(|(folder, _)| FOLDERS.contains(&folder))
}

#[test]
fn files_named_in_documents_exist() {
    let root = root();
    let mut named = 0;
    for page in files(&root).into_iter().filter(|path| path.extension().is_some_and(|e| e == "md")) {
        let text = std::fs::read_to_string(&page).unwrap_or_default();
        let folder = page.parent().unwrap_or(Path::new("."));
        for (number, line) in text.lines().enumerate() {
            let at = format!("{}:{}", page.display(), number + 1);
            for name in quoted(line).filter(|name| is_path_of_ours(name)) {
                assert!(root.join(name).exists(), "{at}: there is no {name}");
                named += 1;
            }
            for target in links(line) {
                assert!(folder.join(target).exists(), "{at}: a link to {target}, which is not there");
            }
        }
    }
    assert!(named > 50, "the search still finds them: {named}");
}
