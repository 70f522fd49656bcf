//! What the standard library alone can do, where the system is not Linux, or by
//! `--cfg lithify_portable`. Durability is what its `sync_data` and `sync_all` give: on macOS they
//! flush the drive's cache; Windows has no call that makes names durable, and none that locks a directory.
//!
//! Not to be had here: reads past the page cache, space made ahead, hints, free space, and the CPU
//! time of a thread, in whose place stands the time that passed.

use super::Identity;
use crate::fs::{Advice, BytesRead};
use std::fs::{File, Metadata};
use std::io::{self, IoSlice, IoSliceMut};
use std::path::Path;
use std::sync::LazyLock;
use std::time::Instant;

/// Buffers of one write up to this many bytes are copied into one, for one call instead of many.
const GATHERED_BYTES_MAX: usize = 64 << 10;

/// The flag of a file that is open for reads past the page cache.
#[cfg(test)]
pub(super) const DIRECT_FLAG: u32 = 0;

#[cfg(unix)]
pub(super) fn identity(metadata: &Metadata, _path: &Path) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt;
    Ok((metadata.dev(), metadata.ino()))
}

/// Another hard link to the file is taken for another file; the lock itself is not misled.
#[cfg(not(unix))]
pub(super) fn identity(_metadata: &Metadata, path: &Path) -> io::Result<Identity> {
    use std::hash::{BuildHasher, RandomState};
    static SEEDS: LazyLock<[RandomState; 2]> =
        LazyLock::new(|| [(); 2].map(|()| RandomState::new()));
    let path = std::fs::canonicalize(path)?;
    Ok((SEEDS[0].hash_one(&path), SEEDS[1].hash_one(&path)))
}

/// Opens a file. A named pipe in its place would hold the caller until somebody writes to it.
pub(super) fn open_for_reading(path: &Path) -> io::Result<File> {
    let kind = std::fs::metadata(path)?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
    }
    File::open(path)
}

pub(super) fn open_direct(_path: &Path) -> io::Result<Option<(File, Option<usize>)>> {
    Ok(None)
}

pub(super) fn stop_direct(_file: &File) -> io::Result<()> {
    Ok(())
}

pub(super) fn direct_alignment(_file: &File) -> Option<usize> {
    None
}

/// Does a call again that a signal interrupted.
fn retried<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

#[cfg(unix)]
fn read_once(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_once(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

#[cfg(unix)]
fn write_once(file: &File, buffer: &[u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::write_at(file, buffer, offset)
}

#[cfg(windows)]
fn write_once(file: &File, buffer: &[u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_write(file, buffer, offset)
}

/// One read, which may stop short.
pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    retried(|| read_once(file, buffer, offset))
}

/// One read into several buffers, none of them empty: only the first is filled by one call.
pub(super) fn read_vectored_at(
    file: &File,
    buffers: &mut [IoSliceMut<'_>],
    offset: u64,
) -> io::Result<usize> {
    match buffers.first_mut() {
        Some(buffer) => read_at(file, buffer, offset),
        None => Ok(0),
    }
}

/// One write, which may stop short.
pub(super) fn write_at(file: &File, buffers: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
    if let [buffer] = buffers {
        return retried(|| write_once(file, buffer, offset));
    }
    let mut gathered = Vec::new();
    for buffer in buffers {
        if !gathered.is_empty() && gathered.len() + buffer.len() > GATHERED_BYTES_MAX {
            break;
        }
        gathered.extend_from_slice(buffer);
    }
    retried(|| write_once(file, &gathered, offset))
}

/// Windows syncs only files that were opened for writing: one that was not is opened again.
pub(super) fn sync_data(file: &File, path: &Path) -> io::Result<()> {
    match file.sync_data() {
        Err(e) if cfg!(windows) && e.kind() == io::ErrorKind::PermissionDenied => {
            File::options().write(true).open(path)?.sync_data()
        }
        done => done,
    }
}

pub(super) fn start_write_back(_file: &File, _offset: u64, _length: u64) {}

/// Nothing is made ahead; what no file can hold is refused as elsewhere.
pub(super) fn preallocate(_file: &File, offset: u64, length: u64) -> io::Result<()> {
    match offset.checked_add(length).is_some_and(|end| end <= i64::MAX as u64) {
        true => Ok(()),
        false => Err(io::ErrorKind::FileTooLarge.into()),
    }
}

pub(super) fn advise(_file: &File, _offset: u64, _length: u64, _advice: Advice) {}

/// Opens a directory, to be synced or locked. `None` for one that is there on a system whose
/// standard library opens none.
pub(super) fn open_directory(path: &Path) -> io::Result<Option<File>> {
    if !std::fs::metadata(path)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    match cfg!(unix) {
        true => File::open(path).map(Some),
        false => Ok(None),
    }
}

pub(super) fn kind_name(_path: &Path) -> Option<String> {
    None
}

/// Unknown: as much as there could be. A full disk is told by the write that fails.
pub(super) fn free_space(path: &Path) -> io::Result<u64> {
    std::fs::metadata(path).map(|_| u64::MAX)
}

pub(super) fn monotonic_ns() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    // From one on: a clock that says zero has not been read.
    1 + START.elapsed().as_nanos() as u64
}

/// The time that passed: never less than what the thread computed.
pub(super) fn thread_cpu_ns() -> u64 {
    monotonic_ns()
}

pub(super) fn give_way(_nice: u32) {}

pub(super) fn watch_forks() {}

/// A number that a child does not share with its parent.
pub(super) fn process_number() -> u32 {
    std::process::id()
}

pub(super) fn random_bytes() -> Option<[u8; 16]> {
    None
}

pub(super) fn bytes_read() -> Option<BytesRead> {
    None
}
