//! What a path lies on.

use std::io;
use std::path::Path;

/// A file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Its name for people.
    pub name: String,
    /// It is somewhere else: locks on it cannot be relied on.
    pub is_network: bool,
    /// It is in memory: what lies there is gone after the next start of the machine.
    pub is_memory: bool,
    /// Bytes an ordinary user may still write.
    pub free: u64,
}

/// The file system a path lies on; the path must exist.
pub fn of(path: &Path) -> io::Result<FileSystem> {
    let space = rustix::fs::statvfs(path)?;
    let name = name(path)?;
    let is_network = ["NFS", "SMB", "CIFS", "9P", "AFS", "Coda", "WebDAV"].contains(&name.as_str());
    let is_memory = name == "tmpfs";
    Ok(FileSystem { name, is_network, is_memory, free: space.f_bavail.saturating_mul(space.f_frsize) })
}

#[cfg(target_os = "linux")]
fn name(path: &Path) -> io::Result<String> {
    /// Numbers from `linux/magic.h` and the file systems' own sources.
    const NAMES: [(u32, &str); 13] = [
        (0x6969, "NFS"),
        (0x517B, "SMB"),
        (0xFE53_4D42, "SMB"),
        (0xFF53_4D42, "CIFS"),
        (0x0102_1997, "9P"),
        (0x5346_414F, "AFS"),
        (0x7375_7245, "Coda"),
        (0x0102_1994, "tmpfs"),
        (0xEF53, "ext4"),
        (0x5846_5342, "XFS"),
        (0x9123_683E, "Btrfs"),
        (0x794C_7630, "overlay"),
        (0x6573_5546, "FUSE"),
    ];
    // The field's width and sign differ by architecture: compare the low 32 bits.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let magic = rustix::fs::statfs(path)?.f_type as u32;
    let known = NAMES.iter().find(|(number, _)| *number == magic);
    Ok(known.map_or_else(|| format!("type {magic:#x}"), |(_, name)| (*name).to_owned()))
}

#[cfg(target_os = "macos")]
fn name(path: &Path) -> io::Result<String> {
    const NAMES: [(&str, &str); 4] = [("nfs", "NFS"), ("smbfs", "SMB"), ("webdav", "WebDAV"), ("afpfs", "AFS")];
    let stat = rustix::fs::statfs(path)?;
    let letters = stat.f_fstypename.iter().map(|&c| c.cast_unsigned()).take_while(|&c| c != 0);
    let name = String::from_utf8_lossy(&letters.collect::<Vec<u8>>()).into_owned();
    let known = NAMES.iter().find(|(own, _)| *own == name);
    Ok(known.map_or(name, |(_, name)| (*name).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_lies_on_something_local() {
        let here = of(Path::new("/usr")).unwrap();
        assert!(!here.name.is_empty() && !here.is_network && here.free > 0, "{here:?}");
        assert!(of(Path::new("/nowhere")).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_is_told() {
        let shm = of(Path::new("/dev/shm")).unwrap();
        assert_eq!((shm.name.as_str(), shm.is_memory), ("tmpfs", true));
    }
}
