//! On places that sessions and programs of one user would otherwise share: temporary files, memory, terminals.

use std::ffi::CString;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

use shoal_sys::attack as sys;

use crate::{Attack, Targets, attack};

pub(super) const ATTACKS: &[Attack] = &[
    attack("A27-file", |t| std::fs::read(Path::new("/tmp").join(&t.mark)).map(drop)),
    attack("A27-memory", |t| std::fs::read(Path::new("/dev/shm").join(&t.mark)).map(drop)),
    attack("A27-queue", |t| sys::queue(&CString::new(t.mark.as_str())?, false)),
    attack("A27-segment", |t| sys::segment(t.key, false).map(drop)),
    attack("A46-type", |_| type_into_own(false)),
    attack("A46-type-high-bits", |_| type_into_own(true)),
    attack("A71-open", |t| open(&t.terminal)),
    attack("A71-number", any_number),
];

fn open(terminal: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).open(terminal).map(drop)
}

/// The terminal this program runs on.
fn type_into_own(high: bool) -> io::Result<()> {
    sys::type_into(OpenOptions::new().read(true).write(true).open("/dev/tty")?, high)
}

/// Any terminal of the user's but the session's own.
fn any_number(targets: &Targets) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let device = std::fs::metadata(targets.terminal.parent().unwrap_or(Path::new("/dev/pts")))?.dev();
    let own: Vec<PathBuf> = (0..3).filter_map(|n| std::fs::read_link(format!("/proc/self/fd/{n}")).ok()).collect();
    let mut last = Err(io::Error::from_raw_os_error(libc::ENOENT));
    for entry in std::fs::read_dir("/dev/pts")? {
        let path = entry?.path();
        let is_another = path.file_name().is_some_and(|name| name != "ptmx") && !own.contains(&path);
        if is_another && std::fs::metadata(&path).is_ok_and(|meta| meta.dev() == device) {
            last = open(&path);
            if last.is_ok() {
                break;
            }
        }
    }
    last
}
