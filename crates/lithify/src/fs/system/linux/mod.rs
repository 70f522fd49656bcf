//! What Linux has beyond the standard library: reads past the page cache and without times of
//! access, calls of several buffers, space made ahead, hints, the CPU time of a thread.

mod forks;
mod write_back;

pub(super) use forks::{process_number, watch_forks};
pub(super) use write_back::start_write_back;

use super::Identity;
use crate::fs::{Advice, BytesRead};
use rustix::fs::{AtFlags, FallocateFlags, OFlags, StatxFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut};
use std::num::NonZeroU64;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The most buffers that one system call takes (`IOV_MAX`).
const VECTOR_COUNT_MAX: usize = 1024;

/// The alignment to use where the file is open for direct I/O but the system does not say which.
const ALIGNMENT_DEFAULT: usize = 4096;

/// The level that gives way to all others.
const NICE_MAX: i32 = 19;

/// A named pipe in the place of a file must not hold the caller until somebody writes to it; for
/// files it changes nothing.
const READ_FLAGS: OFlags = OFlags::NONBLOCK;

/// The flag of a file that is open for reads past the page cache.
#[cfg(test)]
pub(super) const DIRECT_FLAG: u32 = OFlags::DIRECT.bits();

pub(super) fn identity(metadata: &Metadata, _path: &Path) -> io::Result<Identity> {
    Ok((metadata.dev(), metadata.ino()))
}

/// Opens a file. The times at which a file was read are not asked for where the owner may do
/// without: the system would look at them at every read.
pub(super) fn open_for_reading(path: &Path) -> io::Result<File> {
    open_without_times(|flags| open_with(path, flags))
}

fn open_with(path: &Path, flags: OFlags) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)
}

/// Opens by `open` without times of access, or with them where the system refuses that.
fn open_without_times<F>(open: impl Fn(OFlags) -> io::Result<F>) -> io::Result<F> {
    match open(READ_FLAGS.union(OFlags::NOATIME)) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => open(READ_FLAGS),
        opened => opened,
    }
}

/// Opens a file for reads past the page cache, with the alignment of these; `None` where the file
/// system has no such reads.
pub(super) fn open_direct(path: &Path) -> io::Result<Option<(File, Option<usize>)>> {
    match open_with(path, OFlags::DIRECT) {
        Ok(file) => {
            let alignment = reported_alignment(&file).unwrap_or(Some(ALIGNMENT_DEFAULT));
            Ok(Some((file, alignment)))
        }
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(None),
        Err(e) => Err(e),
    }
}

/// From here on the file is read through the page cache.
pub(super) fn stop_direct(file: &File) -> io::Result<()> {
    Ok(rustix::fs::fcntl_setfl(file, OFlags::empty())?)
}

/// The alignment that direct I/O on a file needs; `None` if it is not to be had or not known.
pub(super) fn direct_alignment(file: &File) -> Option<usize> {
    reported_alignment(file).flatten()
}

fn reported_alignment(file: &File) -> Option<Option<usize>> {
    let status = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    if status.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
        return None;
    }
    let alignment = status.stx_dio_mem_align.max(status.stx_dio_offset_align) as usize;
    Some(alignment.is_power_of_two().then_some(alignment))
}

/// One read, which may stop short.
pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    Ok(retry_on_intr(|| rustix::io::pread(file, &mut *buffer, offset))?)
}

/// One read into several buffers, none of them empty, which may stop short.
pub(super) fn read_vectored_at(
    file: &File,
    buffers: &mut [IoSliceMut<'_>],
    offset: u64,
) -> io::Result<usize> {
    let batch = buffers.len().min(VECTOR_COUNT_MAX);
    Ok(retry_on_intr(|| rustix::io::preadv(file, &mut buffers[..batch], offset))?)
}

/// One write, which may stop short.
pub(super) fn write_at(file: &File, buffers: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
    // One buffer, as most records of a log are, is spared the copy of the list of buffers.
    Ok(match buffers {
        [buffer] => retry_on_intr(|| rustix::io::pwrite(file, buffer, offset))?,
        _ => {
            let batch = &buffers[..buffers.len().min(VECTOR_COUNT_MAX)];
            retry_on_intr(|| rustix::io::pwritev(file, batch, offset))?
        }
    })
}

pub(super) fn sync_data(file: &File, _path: &Path) -> io::Result<()> {
    file.sync_data()
}

/// Reserves space without changing the length, where the file system can.
pub(super) fn preallocate(file: &File, offset: u64, length: u64) -> io::Result<()> {
    let flags = FallocateFlags::KEEP_SIZE;
    match retry_on_intr(|| rustix::fs::fallocate(file, flags, offset, length)) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// A hint: a file system that does not know it is no failure.
pub(super) fn advise(file: &File, offset: u64, length: u64, advice: Advice) {
    let advice = match advice {
        Advice::Sequential => rustix::fs::Advice::Sequential,
        Advice::Random => rustix::fs::Advice::Random,
        Advice::WillNeed => rustix::fs::Advice::WillNeed,
        Advice::DontNeed => rustix::fs::Advice::DontNeed,
    };
    let _ = rustix::fs::fadvise(file, offset, NonZeroU64::new(length), advice);
}

/// Opens a directory, to be synced or locked.
pub(super) fn open_directory(path: &Path) -> io::Result<Option<File>> {
    open_with(path, OFlags::DIRECTORY).map(Some)
}

/// The name of the file system that holds a path.
pub(super) fn kind_name(path: &Path) -> Option<String> {
    let number = rustix::fs::statfs(path).ok()?.f_type as u64;
    let name = match number {
        0x0102_1994 => "tmpfs",
        0xEF53 => "ext4",
        0x5846_5342 => "xfs",
        0x9123_683E => "btrfs",
        0x794C_7630 => "overlayfs",
        0x6969 => "nfs",
        0x2FC1_2FC1 => "zfs",
        0x6573_5546 => "fuse",
        0xF2F5_2010 => "f2fs",
        _ => return Some(format!("file system {number:#x}")),
    };
    Some(name.to_string())
}

/// Bytes that can still be written.
pub(super) fn free_space(path: &Path) -> io::Result<u64> {
    let space = rustix::fs::statvfs(path)?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}

fn nanoseconds(time: Timespec) -> u64 {
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

pub(super) fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

pub(super) fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Lowers the priority of the calling thread: Linux means it, not the process, by no process.
pub(super) fn give_way(nice: u32) {
    use rustix::process::{getpriority_process, setpriority_process};
    if let Ok(now) = getpriority_process(None) {
        let _ = setpriority_process(None, now.saturating_add_unsigned(nice).min(NICE_MAX));
    }
}

/// Random bits of the system; `None` where it forbids the call.
pub(super) fn random_bytes() -> Option<[u8; 16]> {
    let mut bytes = [0_u8; 16];
    let flags = rustix::rand::GetRandomFlags::empty();
    let filled = retry_on_intr(|| rustix::rand::getrandom(&mut bytes, flags));
    (filled == Ok(bytes.len())).then_some(bytes)
}

/// What the process has read so far.
pub(super) fn bytes_read() -> Option<BytesRead> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    Some(BytesRead { by_calls: field("rchar:")?, from_devices: field("read_bytes:")? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::{Environment, FileSystem, SystemEnvironment, SystemFileSystem};

    #[test]
    fn a_thread_gives_way_by_itself_alone() {
        use rustix::process::getpriority_process;
        let before = getpriority_process(None).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let body = move || {
            SystemEnvironment.give_way(3);
            tell.send(getpriority_process(None).unwrap()).unwrap();
            SystemEnvironment.give_way(100);
            tell.send(getpriority_process(None).unwrap()).unwrap();
        };
        SystemEnvironment.spawn("polite", Box::new(body)).unwrap().join();
        assert_eq!(told.iter().collect::<Vec<_>>(), [(before + 3).min(19), 19]);
        assert_eq!(getpriority_process(None).unwrap(), before);
    }

    #[test]
    fn a_file_of_another_owner_can_be_read() {
        // The system lets only the owner, or root, do without times of access.
        let path = Path::new("/etc/passwd");
        let file = SystemFileSystem.open(path, crate::fs::OpenMode::Read).unwrap();
        assert!(file.length().unwrap() > 0);
        // Whoever runs this may be root, whom the system refuses nothing.
        let refused = |kind: io::ErrorKind| {
            open_without_times(move |flags| match flags.contains(OFlags::NOATIME) {
                true => Err(io::Error::from(kind)),
                false => Ok(flags),
            })
        };
        assert_eq!(refused(io::ErrorKind::PermissionDenied).unwrap(), READ_FLAGS);
        assert_eq!(refused(io::ErrorKind::NotFound).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
