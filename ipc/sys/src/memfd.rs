//! Anonymous files that carry bytes between processes: sealed by the writer, copied out by the reader, never mapped.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

#[cfg(target_os = "linux")]
use rustix::fs::{MemfdFlags, SealFlags};

/// Makes an empty anonymous file that can be sealed and never executed.
#[cfg(target_os = "linux")]
pub fn create(name: &str) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // MFD_NOEXEC_SEAL came with Linux 6.3; without it the file is still never executed by us.
    match rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(rustix::io::Errno::INVAL) => Ok(rustix::fs::memfd_create(name, flags)?),
        other => Ok(other?),
    }
}

/// Makes an anonymous file with `bytes` in it and seals it.
pub fn sealed(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let fd = create(name)?;
    write_all(&fd, bytes)?;
    seal(&fd)?;
    Ok(fd)
}

/// Writes `bytes` at the start of the file.
pub fn write_all(fd: impl AsFd, bytes: &[u8]) -> io::Result<()> {
    let mut at = 0_usize;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        match rustix::io::pwrite(&fd, rest, at as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => at += n,
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// The seals every body has: nobody can change, cut or extend it, and nobody can add or lack a seal.
#[cfg(target_os = "linux")]
fn full() -> SealFlags {
    SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE
}

/// Seals the file: from now on its bytes and size are final.
#[cfg(target_os = "linux")]
pub fn seal(fd: &impl AsFd) -> io::Result<()> {
    Ok(rustix::fs::fcntl_add_seals(fd, full())?)
}

/// Whether the file is an anonymous file with final bytes and size.
#[cfg(target_os = "linux")]
pub fn is_sealed(fd: impl AsFd) -> bool {
    rustix::fs::fcntl_get_seals(fd).is_ok_and(|seals| seals.contains(full()))
}

/// The size of a sealed file.
pub fn len(fd: impl AsFd) -> io::Result<u64> {
    Ok(u64::try_from(rustix::fs::fstat(fd)?.st_size).unwrap_or(0))
}

/// Copies a sealed file out, at most `cap` bytes of it.
///
/// `InvalidData` when it is not sealed, `FileTooLarge` when it has more than `cap` bytes: a sparse file can claim a
/// terabyte, so nothing is allocated before the size is known to fit. Never trusts the shared offset.
pub fn read_sealed(fd: impl AsFd, cap: usize) -> io::Result<Vec<u8>> {
    if !is_sealed(&fd) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "memfd is not sealed"));
    }
    let size = usize::try_from(len(&fd)?).unwrap_or(usize::MAX);
    if size > cap {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("memfd of {size} bytes, at most {cap}")));
    }
    let mut bytes = vec![0; size];
    let mut at = 0_usize;
    while let Some(rest) = bytes.get_mut(at..).filter(|rest| !rest.is_empty()) {
        match rustix::io::pread(&fd, rest, at as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => at += n,
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(bytes)
}

/// Without memfds: an unlinked file in the temporary directory.
#[cfg(not(target_os = "linux"))]
pub fn create(name: &str) -> io::Result<OwnedFd> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let file = format!("{name}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(file);
    let options = &mut std::fs::OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).open(&path)?;
    rustix::fs::unlink(&path)?;
    Ok(file.into())
}

/// Without seals: the file is made read-only for its owner. The reader copies it and checks the size it read.
#[cfg(not(target_os = "linux"))]
pub fn seal(fd: &impl AsFd) -> io::Result<()> {
    Ok(rustix::fs::fchmod(fd, rustix::fs::Mode::RUSR)?)
}

/// Without seals: an unlinked regular file.
#[cfg(not(target_os = "linux"))]
pub fn is_sealed(fd: impl AsFd) -> bool {
    rustix::fs::fstat(fd).is_ok_and(|stat| {
        stat.st_nlink == 0 && rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::RegularFile
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_bytes_come_back_and_cannot_change() {
        let fd = sealed("t", b"bytes").unwrap();
        assert!(is_sealed(&fd));
        assert_eq!(read_sealed(&fd, 5).unwrap(), b"bytes");
        assert_eq!(write_all(&fd, b"x").unwrap_err().raw_os_error(), Some(libc::EPERM));
        assert_eq!(rustix::fs::ftruncate(&fd, 0).unwrap_err(), rustix::io::Errno::PERM);
    }

    #[test]
    fn unsealed_and_large_files_are_refused() {
        let fd = create("t").unwrap();
        write_all(&fd, b"bytes").unwrap();
        assert_eq!(read_sealed(&fd, 5).unwrap_err().kind(), io::ErrorKind::InvalidData);
        rustix::fs::ftruncate(&fd, 1 << 40).unwrap();
        seal(&fd).unwrap();
        assert_eq!(len(&fd).unwrap(), 1 << 40);
        assert_eq!(read_sealed(&fd, 5).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_future_write_seal_is_not_enough() {
        let fd = create("t").unwrap();
        let weak = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE;
        rustix::fs::fcntl_add_seals(&fd, weak).unwrap();
        assert!(!is_sealed(&fd));
    }

    #[test]
    fn a_plain_file_is_not_sealed() {
        assert!(!is_sealed(crate::fd::null().unwrap()));
    }
}
