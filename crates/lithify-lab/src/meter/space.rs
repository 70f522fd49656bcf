//! Space on disk: the size of a directory, extents of files, what a file system uses and has free,
//! and its sync.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The size of a directory with everything below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectorySize {
    /// Blocks that are allocated, as `du` counts them, bytes.
    pub allocated_bytes: u64,
    /// Lengths of the files, bytes.
    pub apparent_bytes: u64,
    /// Number of files.
    pub files: u64,
}

/// Measures `directory`. Files that vanish meanwhile are not counted; directories count with their
/// allocated blocks only.
pub fn directory_size(directory: &Path) -> DirectorySize {
    let mut size = DirectorySize::default();
    let Ok(entries) = fs::read_dir(directory) else { return size };
    for entry in entries.flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        size.allocated_bytes += metadata.blocks() * 512;
        if metadata.is_dir() {
            let below = directory_size(&entry.path());
            size.allocated_bytes += below.allocated_bytes;
            size.apparent_bytes += below.apparent_bytes;
            size.files += below.files;
        } else {
            size.apparent_bytes += metadata.len();
            size.files += 1;
        }
    }
    size
}

/// How often a directory is measured that is to be quiet.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// So many times as long as a directory is to be quiet is waited for that at most.
const QUIET_TIMES_MAX: u64 = 4;

/// Waits until the size of `directory` has not changed for `quiet`, but not for ever.
pub(super) fn wait_until_quiet(directory: &Path, quiet: Duration) {
    let polls = quiet.as_millis() as u64 / POLL_INTERVAL.as_millis() as u64;
    measure_until_quiet(polls, directory_size(directory), || {
        std::thread::sleep(POLL_INTERVAL);
        directory_size(directory)
    });
}

/// Measures until so many sizes in a row are as the one before them. Gives how often it has measured.
fn measure_until_quiet<T: PartialEq>(polls: u64, first: T, mut measure: impl FnMut() -> T) -> u64 {
    let (mut size, mut unchanged, mut measured) = (first, 0, 0);
    while unchanged < polls && measured < polls * QUIET_TIMES_MAX {
        let now = measure();
        measured += 1;
        unchanged = if now == size { unchanged + 1 } else { 0 };
        size = now;
    }
    measured
}

/// Files by their paths with their allocated blocks, bytes.
pub type FileSizes = HashMap<PathBuf, u64>;

/// The files below `directory`; those that vanish meanwhile are left out.
pub fn file_sizes(directory: &Path) -> FileSizes {
    let mut paths = Vec::new();
    list_files(directory, &mut paths);
    let size = |path: PathBuf| {
        let allocated_bytes = fs::symlink_metadata(&path).ok()?.blocks() * 512;
        Some((path, allocated_bytes))
    };
    paths.into_iter().filter_map(size).collect()
}

/// Bytes that the files below `directory` have beyond those of `before`: of new ones all.
pub fn grown_bytes(directory: &Path, before: &FileSizes) -> u64 {
    let now = file_sizes(directory);
    let beyond = |(path, bytes): (&PathBuf, &u64)| {
        bytes.saturating_sub(before.get(path).copied().unwrap_or(0))
    };
    now.iter().map(beyond).sum()
}

/// Bytes that may still be written under `directory`, which must exist.
///
/// # Errors
/// The operating system's, when the file system does not tell.
pub fn free_bytes(directory: &Path) -> std::io::Result<u64> {
    let status = nix::sys::statvfs::statvfs(directory)?;
    Ok(status.blocks_available() as u64 * status.fragment_size() as u64)
}

/// Bytes that the file system that holds `directory` uses, by its own account; 0 when it does not
/// tell.
pub fn occupied_bytes(directory: &Path) -> u64 {
    nix::sys::statvfs::statvfs(directory).map_or(0, |status| {
        let blocks = status.blocks().saturating_sub(status.blocks_free());
        blocks * status.fragment_size()
    })
}

/// Files that one call of `filefrag` is given.
const FILES_OF_A_CALL: usize = 500;

/// Extents of all files below `directory`, as the file system tells (`filefrag`); `None` where that
/// is not installed or not allowed.
pub fn extents(directory: &Path) -> Option<u64> {
    let mut paths = Vec::new();
    list_files(directory, &mut paths);
    let mut sum = 0;
    for paths in paths.chunks(FILES_OF_A_CALL) {
        let output = Command::new("filefrag").args(paths).output().ok()?;
        let said = String::from_utf8_lossy(&output.stdout);
        for line in said.lines() {
            let (_, count) = line.rsplit_once(": ")?;
            sum += count.split_whitespace().next()?.parse::<u64>().ok()?;
        }
        // A file that it says nothing of may have vanished; nothing of any is no answer.
        if said.is_empty() {
            return None;
        }
    }
    Some(sum)
}

fn list_files(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => list_files(&entry.path(), paths),
            Ok(kind) if kind.is_file() => paths.push(entry.path()),
            _ => {}
        }
    }
}

/// Writes all dirty pages of the file system that holds `directory`. Returns whether it worked.
pub fn sync_file_system(directory: &Path) -> bool {
    File::open(directory).is_ok_and(|directory| nix::unistd::syncfs(directory).is_ok())
}

/// Has ZFS commit what was written to a pool. A sync leaves it in a group of transactions that is
/// open for seconds, and neither the pool's account nor its file has it yet; a change of a property
/// waits for the group. Returns whether it worked.
pub fn commit_pool(pool: &str) -> bool {
    let mut change = Command::new("zfs");
    // The value alone makes no difference; a property of one's own has a colon in its name.
    change.args(["set", "lithify:committed=yes", pool]);
    change.output().is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_measured_until_they_stay_but_not_for_ever() {
        let after = |polls, sizes: &[u64]| {
            let mut sizes = sizes.iter().copied().cycle();
            measure_until_quiet(polls, Some(7), || sizes.next())
        };
        assert_eq!(measure_until_quiet(3, 7, || 7), 3);
        assert_eq!(after(3, &[5, 5, 4, 4, 4, 4]), 6);
        assert_eq!(after(3, &[5, 4]), 12, "it never is quiet");
        assert_eq!(after(0, &[5, 4]), 0);
    }

    #[test]
    fn directories_add_up() {
        let root = tempfile::tempdir().expect("a directory");
        fs::create_dir(root.path().join("below")).expect("creates");
        fs::write(root.path().join("a"), vec![1u8; 5000]).expect("writes");
        fs::write(root.path().join("below/b"), vec![1u8; 300]).expect("writes");
        let sparse = File::create(root.path().join("sparse")).expect("creates");
        sparse.set_len(1 << 30).expect("grows");
        assert!(sync_file_system(root.path()));
        // Two files with data and one hole; where that can be told at all.
        assert!(extents(root.path()).is_none_or(|count| count == 2));
        assert_eq!(extents(Path::new("/no such directory")), Some(0));
        let size = directory_size(root.path());
        assert_eq!((size.files, size.apparent_bytes), (3, 5300 + (1 << 30)));
        assert!(size.allocated_bytes < 1 << 20, "a hole is not allocated: {size:?}");
        assert_eq!(directory_size(Path::new("/no such directory")), DirectorySize::default());
        let before = file_sizes(root.path());
        assert_eq!((before.len(), grown_bytes(root.path(), &before)), (3, 0));
        fs::remove_file(root.path().join("a")).expect("removes");
        fs::write(root.path().join("below/c"), vec![1u8; 9000]).expect("writes");
        assert!(sync_file_system(root.path()));
        let grown = grown_bytes(root.path(), &before);
        assert!((9000..=16_384).contains(&grown), "what went does not count: {grown}");
        assert!(free_bytes(root.path()).expect("tells") > 0);
        assert!(occupied_bytes(root.path()) > 0);
        assert_eq!(occupied_bytes(Path::new("/no such directory")), 0);
        assert!(!sync_file_system(Path::new("/no such directory")));
    }
}
