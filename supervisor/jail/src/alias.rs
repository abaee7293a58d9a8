//! Other names of a place: bind mounts show a directory twice, and a hole over one name leaves the other open.

use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// One mount: what it is of, from where in it, and where it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    device: String,
    root: PathBuf,
    point: PathBuf,
}

/// Every other path of this mount namespace that leads to one of `places` now, or into it.
pub(crate) fn others(places: &[PathBuf]) -> Vec<PathBuf> {
    let Ok(text) = std::fs::read("/proc/self/mountinfo") else { return Vec::new() };
    let mounts = parse(&text);
    let named: Vec<PathBuf> = places.iter().flat_map(|place| names(place, &mounts)).collect();
    let same = |alias: &PathBuf| {
        // A name may be covered by another mount, or lead elsewhere by now.
        places.iter().any(|place| identity(alias).is_some_and(|id| Some(id) == identity(place)))
            || mounts.iter().any(|mount| mount.point == *alias)
    };
    let mut named: Vec<PathBuf> = named.into_iter().filter(|alias| !places.contains(alias) && same(alias)).collect();
    named.sort();
    named.dedup();
    named
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// The names of a place by every mount of its device, its own among them.
fn names(place: &Path, mounts: &[Mount]) -> Vec<PathBuf> {
    let holds = |mount: &&Mount| place.starts_with(&mount.point);
    // The last of the deepest is the one on top.
    let depth = |mount: &&Mount| mount.point.components().count();
    let Some(home) = mounts.iter().filter(holds).max_by_key(depth) else { return Vec::new() };
    let Ok(below) = place.strip_prefix(&home.point) else { return Vec::new() };
    let inside = join(&home.root, below);
    let same = mounts.iter().filter(|mount| mount.device == home.device);
    same.filter_map(|mount| {
        if let Ok(rest) = inside.strip_prefix(&mount.root) {
            return Some(join(&mount.point, rest));
        }
        // A part of the place is shown by itself.
        mount.root.starts_with(&inside).then(|| mount.point.clone())
    })
    .collect()
}

fn join(base: &Path, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() { base.to_owned() } else { base.join(rest) }
}

/// Reads `mountinfo`; a line that does not look like one is passed over.
fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|&b| b == b'\n')
        .filter_map(|line| {
            let fields: Vec<&[u8]> = line.split(|&b| b == b' ').collect();
            let [_, _, device, root, point, ..] = fields.as_slice() else { return None };
            let device = String::from_utf8_lossy(device).into_owned();
            Some(Mount { device, root: unescape(root), point: unescape(point) })
        })
        .collect()
}

/// Space, tab, line feed and backslash are written as three octal digits.
fn unescape(field: &[u8]) -> PathBuf {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        let octal = (byte == b'\\').then(|| tail.first_chunk::<3>()).flatten();
        let value = octal.filter(|digits| digits.iter().all(|d| (b'0'..=b'7').contains(d))).and_then(|digits| {
            let number = digits.iter().fold(0_u16, |n, d| n * 8 + u16::from(d - b'0'));
            u8::try_from(number).ok()
        });
        match value {
            Some(value) => {
                out.push(value);
                rest = tail.get(3..).unwrap_or_default();
            }
            None => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    std::ffi::OsString::from_vec(out).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &[u8] = b"20 1 8:1 / / rw - ext4 /dev/a rw\n\
        21 20 8:1 /home/me /mnt/my\\040home rw - ext4 /dev/a rw\n\
        22 20 8:1 /home/me/.local/state/shoal/cas /srv/cas rw - ext4 /dev/a rw\n\
        23 20 0:5 / /proc rw - proc proc rw\n\
        24 20 8:2 / /home rw - ext4 /dev/b rw\n\
        short\n";

    #[test]
    fn a_place_is_found_by_every_mount_of_its_device() {
        let mounts = parse(INFO);
        assert_eq!(mounts.len(), 5);
        // On the first device, before another one covers /home.
        let got = names(Path::new("/home/me/.local/state/shoal"), &mounts[..4]);
        let expected = ["/home/me/.local/state/shoal", "/mnt/my home/.local/state/shoal", "/srv/cas"];
        assert_eq!(got, expected.map(PathBuf::from));
        // With it the place is on the second device, which has one mount.
        let got = names(Path::new("/home/me/.local/state/shoal"), &mounts);
        assert_eq!(got, [PathBuf::from("/home/me/.local/state/shoal")]);
    }

    #[test]
    fn escapes() {
        assert_eq!(unescape(b"a\\134b\\011"), PathBuf::from("a\\b\t"));
        assert_eq!(unescape(b"a\\9"), PathBuf::from("a\\9"));
        assert_eq!(unescape(b"\\777"), PathBuf::from("\\777"));
    }
}
