//! Taking files out of the system's page cache, so that what reads them next reads the device.

use std::fs::{self, File};
use std::path::Path;

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use serde::{Deserialize, Serialize};

use super::space::sync_file_system;

/// What was asked to leave the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Files whose pages were given up.
    pub files: u64,
    /// Files of which the system refused it.
    pub refused: u64,
}

/// Writes back and gives up the cached pages of all files below `directory`, and of no others: no
/// other process on the machine loses anything. Pages that a process has mapped stay, so engines
/// that map their files are closed before. Whether it worked shows in the bytes that are read from
/// the device afterwards.
pub fn drop_pages(directory: &Path) -> Dropped {
    // Dirty pages would stay.
    sync_file_system(directory);
    let mut dropped = Dropped::default();
    give_up(directory, &mut dropped);
    dropped
}

fn give_up(directory: &Path, dropped: &mut Dropped) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            give_up(&entry.path(), dropped);
        } else if kind.is_file() {
            let advice = PosixFadviseAdvice::POSIX_FADV_DONTNEED;
            let done = File::open(entry.path())
                .is_ok_and(|file| posix_fadvise(&file, 0, 0, advice).is_ok());
            *(if done { &mut dropped.files } else { &mut dropped.refused }) += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_below_a_directory_are_given_up_and_stay_whole() {
        let root = tempfile::tempdir().expect("a directory");
        fs::create_dir(root.path().join("below")).expect("creates");
        fs::write(root.path().join("a"), vec![7u8; 100_000]).expect("writes");
        fs::write(root.path().join("below/b"), b"b").expect("writes");
        let dropped = drop_pages(root.path());
        assert_eq!((dropped.files, dropped.refused), (2, 0));
        assert_eq!(fs::read(root.path().join("a")).expect("reads"), vec![7u8; 100_000]);
        assert_eq!(drop_pages(Path::new("/no such directory")), Dropped::default());
    }
}
