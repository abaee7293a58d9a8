//! After a start: close what was open and whose work is gone, sweep what was half written.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::chain;
use crate::error::JournalError;
use crate::row::{Closing, Ended};
use crate::store::Store;

impl Store {
    /// Closes every open row but those of live work as `interrupted`. Returns how many.
    pub fn recover(&mut self, live: &[i64]) -> Result<usize, JournalError> {
        let mut closed = 0;
        for row in self.open_rows()? {
            if live.contains(&row.id) {
                continue;
            }
            self.close_row(row.id, &Closing { ended: Some(Ended::Interrupted), ..Closing::default() })?;
            closed += 1;
        }
        Ok(closed)
    }

    /// Removes temporary files of blobs that never became any.
    pub(crate) fn sweep(&self) -> Result<(), JournalError> {
        let temps = self.dir.join("cas").join("tmp");
        let entries = match std::fs::read_dir(&temps) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(e.into()),
        };
        for entry in entries {
            std::fs::remove_file(entry?.path())?;
        }
        Ok(())
    }

    /// Removes blob files that no blob names: a broker was killed between the renaming of one and its commit.
    pub(crate) fn sweep_orphans(&self) -> Result<(), JournalError> {
        let below = |dir: &Path| -> Result<Vec<PathBuf>, JournalError> {
            let entries = match std::fs::read_dir(dir) {
                Ok(entries) => entries,
                Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Vec::new()),
                Err(e) => return Err(e.into()),
            };
            entries.map(|entry| Ok(entry?.path())).collect()
        };
        let cas = self.dir.join("cas");
        for first in below(&cas)?.into_iter().filter(|path| !path.ends_with("tmp")) {
            for second in below(&first)? {
                for file in below(&second)? {
                    let hash = file.file_stem().and_then(|stem| stem.to_str()).and_then(chain::unhex);
                    if let Some(hash) = hash
                        && !self.has_blob(&hash)?
                    {
                        std::fs::remove_file(&file)?;
                    }
                }
            }
        }
        Ok(())
    }
}
