//! Places inside a session's writable roots that it may read and not change: what the human's programs run by
//! themselves, and the repository's own machinery.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::step::{Depth, Step};

/// Files and directories below the home that something runs or obeys without being asked.
const HOME_NAMES: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".inputrc",
    ".xprofile",
    ".xinitrc",
    ".xsession",
    ".xsessionrc",
    ".pam_environment",
    ".config/fish",
    ".config/autostart",
    ".config/systemd",
    ".config/environment.d",
    ".config/git",
    ".config/direnv",
    ".config/shoal",
    ".local/share/systemd",
    ".local/share/dbus-1",
    ".local/share/applications",
    ".gitconfig",
    ".ssh",
    ".gnupg",
    ".vimrc",
    ".config/nvim",
    ".emacs",
    ".emacs.d/init.el",
    ".config/emacs",
    ".tmux.conf",
    ".screenrc",
    ".direnvrc",
];

/// Parts of a repository that git obeys by itself.
const GIT_NAMES: &[&str] = &["hooks", "config", "config.worktree", "info/attributes"];
/// What is beside a repository that programs obey when its directory is entered or opened. Whole directories of editors,
/// so that no file that is not there yet can be put beside the others.
const PROJECT_NAMES: &[&str] = &[".envrc", ".vscode", ".idea"];

/// The existing protected places of a home directory.
pub(crate) fn in_home(home: &Path) -> Vec<PathBuf> {
    existing(home, HOME_NAMES)
}

/// The protected places of the repository that holds `dir`, and the directories whose names must stay for them.
pub(crate) fn in_repository(dir: &Path) -> Vec<PathBuf> {
    let Some(root) = dir.ancestors().find(|dir| dir.join(".git").symlink_metadata().is_ok()) else { return Vec::new() };
    let git = root.join(".git");
    let mut found = existing(root, PROJECT_NAMES);
    if git.is_dir() {
        found.extend(existing(&git, GIT_NAMES));
    } else {
        // A worktree: the file points at the repository.
        found.push(git);
    }
    found
}

fn existing(base: &Path, names: &[&str]) -> Vec<PathBuf> {
    let paths = names.iter().map(|name| base.join(name));
    // A symbolic link is protected where it leads; the link itself can be replaced, which is said in the documentation.
    paths.filter_map(|path| std::fs::canonicalize(path).ok()).collect()
}

/// Steps that keep the names of all directories above the given places, outermost first.
///
/// Each mount hides the one it copies, so a directory must be pinned before what is below it is.
pub(crate) fn pins<'a>(places: impl IntoIterator<Item = &'a PathBuf>, prefix: &Path) -> Vec<Step> {
    let above: BTreeSet<PathBuf> = places
        .into_iter()
        .flat_map(|place| place.ancestors().skip(1))
        .filter(|dir| *dir != Path::new("/"))
        .map(Path::to_owned)
        .collect();
    let mut above: Vec<PathBuf> = above.into_iter().collect();
    above.sort_by_key(|dir| dir.components().count());
    above.into_iter().map(|dir| Step::Pin(within(prefix, &dir))).collect()
}

/// Steps that make the given places read-only where they are.
pub(crate) fn read_only(places: &[PathBuf], prefix: &Path) -> Vec<Step> {
    let one = |place: &PathBuf| {
        let place = within(prefix, place);
        [Step::Pin(place.clone()), Step::ReadOnly(place, Depth::Below)]
    };
    places.iter().flat_map(one).collect()
}

/// A path of the host as a path below the directory that becomes the root.
pub(crate) fn within(prefix: &Path, path: &Path) -> PathBuf {
    prefix.join(path.strip_prefix("/").unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_go_from_the_outside_in() {
        let places = [PathBuf::from("/home/me/.local/state/shoal"), PathBuf::from("/home/me/.ssh")];
        let steps = pins(&places, Path::new("/"));
        let names: Vec<String> = steps.iter().map(Step::words).collect();
        assert_eq!(names, ["pin /home", "pin /home/me", "pin /home/me/.local", "pin /home/me/.local/state"]);
    }

    #[test]
    fn a_repository_is_found_from_below() {
        let dir = std::env::temp_dir().join(format!("shoal-protect-{}", std::process::id()));
        std::fs::create_dir_all(dir.join(".git/hooks")).unwrap();
        std::fs::create_dir_all(dir.join("src/deep")).unwrap();
        std::fs::write(dir.join(".git/config"), "").unwrap();
        let dir = std::fs::canonicalize(&dir).unwrap();
        assert_eq!(in_repository(&dir.join("src/deep")), [dir.join(".git/hooks"), dir.join(".git/config")]);
        std::fs::remove_dir_all(dir.join(".git")).unwrap();
        std::fs::write(dir.join(".git"), "gitdir: /elsewhere").unwrap();
        assert_eq!(in_repository(&dir), [dir.join(".git")]);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
