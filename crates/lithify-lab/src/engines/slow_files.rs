//! Files on a slower device than the one that is there: a file system of Lithify's that waits.
//!
//! Owns: two queues, one for reads and one for writes, in which each request takes the time that
//! the slower device would need for it ([`Queue`]). A read waits before it is made, one operation
//! for each started piece of 128 KiB; it must go past the page cache, or what memory answers waits
//! too. What is written waits when it is synced, as a whole, at 128 KiB an operation: until then
//! memory has it.
//!
//! Promises: changes no byte. May be called from any thread; they wait in the order in which they
//! came. For where the kernel cannot hold the device back; see [`crate::run::device_limit`].

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lithify::Result;
use lithify::fs::{Advice, File, FileLock, FileSystem, OpenMode, World};

use crate::experiment::DeviceRates;

/// The most that one operation of the device moves.
const OPERATION_BYTES: u64 = 128 << 10;

/// The world of the operating system, on a device with these rates.
pub(crate) fn world(rates: DeviceRates) -> World {
    let system = World::system();
    let queues = Arc::new(Queues { reads: Queue::new(rates), writes: Queue::new(rates) });
    World { files: Arc::new(SlowFiles { inner: Arc::clone(&system.files), queues }), ..system }
}

struct Queues {
    reads: Queue,
    writes: Queue,
}

/// Requests one after the other, each for as long as the device would need.
struct Queue {
    rates: DeviceRates,
    /// When the device has done all that was asked for.
    free_at: Mutex<Instant>,
}

impl Queue {
    fn new(rates: DeviceRates) -> Queue {
        Queue { rates, free_at: Mutex::new(Instant::now()) }
    }

    /// How long the device needs.
    fn time(&self, bytes: u64) -> Duration {
        let operations = bytes.div_ceil(OPERATION_BYTES).max(1) as f64;
        let of_operations = operations / self.rates.operations as f64;
        let of_bytes = self.rates.bytes.map_or(0.0, |rate| bytes as f64 / rate as f64);
        Duration::from_secs_f64(of_operations.max(of_bytes))
    }

    /// Takes a place at the end of the queue; gives when the device is done with it.
    fn enter(&self, bytes: u64, now: Instant) -> Instant {
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        *free_at = (*free_at).max(now) + self.time(bytes);
        *free_at
    }

    fn wait(&self, bytes: u64) {
        let now = Instant::now();
        std::thread::sleep(self.enter(bytes, now).saturating_duration_since(now));
    }
}

struct SlowFiles {
    inner: Arc<dyn FileSystem>,
    queues: Arc<Queues>,
}

impl SlowFiles {
    fn slow(&self, file: Arc<dyn File>) -> Arc<dyn File> {
        let (queues, unsynced) = (Arc::clone(&self.queues), AtomicU64::new(0));
        Arc::new(SlowFile { file, queues, unsynced })
    }
}

impl FileSystem for SlowFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        Ok(self.slow(self.inner.open(path, mode)?))
    }

    fn open_direct(&self, path: &Path) -> Result<Arc<dyn File>> {
        Ok(self.slow(self.inner.open_direct(path)?))
    }

    fn absolute(&self, path: &Path) -> Result<PathBuf> {
        self.inner.absolute(path)
    }

    fn kind_name(&self, path: &Path) -> String {
        self.inner.kind_name(path)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }

    fn is_directory(&self, path: &Path) -> Result<bool> {
        self.inner.is_directory(path)
    }

    fn length(&self, path: &Path) -> Result<u64> {
        self.inner.length(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.link(from, to)
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        self.inner.list(directory)
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        self.inner.create_directory(path)
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        self.inner.remove_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> Result<()> {
        self.queues.writes.wait(0);
        self.inner.sync_directory(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn FileLock>> {
        self.inner.lock(path)
    }

    fn lock_directory(&self, file: &Path) -> Result<Box<dyn FileLock>> {
        self.inner.lock_directory(file)
    }

    fn is_locked(&self, path: &Path) -> Result<bool> {
        self.inner.is_locked(path)
    }

    fn is_directory_locked(&self, file: &Path) -> Result<bool> {
        self.inner.is_directory_locked(file)
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        self.inner.free_space(path)
    }
}

struct SlowFile {
    file: Arc<dyn File>,
    queues: Arc<Queues>,
    /// Bytes written since the last sync.
    unsynced: AtomicU64,
}

impl SlowFile {
    fn wrote(&self, buffers: &[IoSlice<'_>]) {
        let bytes: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        self.unsynced.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl File for SlowFile {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn length(&self) -> Result<u64> {
        self.file.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.queues.reads.wait(buffer.len() as u64);
        self.file.read_at(buffer, offset)
    }

    fn read_vectored_at(&self, buffers: &mut [&mut [u8]], offset: u64) -> Result<usize> {
        self.queues.reads.wait(buffers.iter().map(|buffer| buffer.len() as u64).sum());
        self.file.read_vectored_at(buffers, offset)
    }

    fn write_at(&self, buffers: &[IoSlice<'_>], offset: u64) -> Result<()> {
        self.file.write_at(buffers, offset)?;
        self.wrote(buffers);
        Ok(())
    }

    fn append(&self, buffers: &[IoSlice<'_>]) -> Result<u64> {
        let offset = self.file.append(buffers)?;
        self.wrote(buffers);
        Ok(offset)
    }

    fn sync_data(&self) -> Result<()> {
        self.queues.writes.wait(self.unsynced.swap(0, Ordering::Relaxed));
        self.file.sync_data()
    }

    fn sync_range(&self, offset: u64, length: u64) -> Result<()> {
        // What another call took already is not waited for twice.
        let take = |unsynced: u64| Some(unsynced.saturating_sub(length));
        let before = self.unsynced.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        self.queues.writes.wait(length.min(before.unwrap_or(0)));
        self.file.sync_range(offset, length)
    }

    fn preallocate(&self, offset: u64, length: u64) -> Result<()> {
        self.file.preallocate(offset, length)
    }

    fn truncate(&self, length: u64) -> Result<()> {
        self.file.truncate(length)
    }

    fn advise(&self, offset: u64, length: u64, advice: Advice) -> Result<()> {
        // Reading ahead into the page cache would pass the queue by.
        if advice == Advice::WillNeed {
            return Ok(());
        }
        self.file.advise(offset, length, advice)
    }

    fn direct_io_alignment(&self) -> Option<usize> {
        self.file.direct_io_alignment()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::DeviceSpeed;

    #[test]
    fn requests_take_the_time_of_the_device_one_after_the_other() {
        let queue = Queue::new(DeviceSpeed::Disk.rates().expect("is slower"));
        let us = |bytes| queue.time(bytes).as_micros();
        assert_eq!((us(0), us(4096), us(128 << 10)), (833, 833, 873), "bytes count from 125 KB on");
        assert_eq!(us(1_500_000), 10_000);
        let many = Queue::new(DeviceSpeed::SlowSsd.rates().expect("is slower"));
        assert_eq!(many.time(1 << 20), Duration::from_micros(800), "eight operations");
        let now = Instant::now();
        let first = many.enter(4096, now);
        let second = many.enter(4096, now);
        assert_eq!(second - first, Duration::from_micros(100));
        // An idle device does not save up.
        let later = now + Duration::from_secs(1);
        assert_eq!(many.enter(4096, later) - later, Duration::from_micros(100));
    }

    #[test]
    fn bytes_are_the_same_and_synced_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        let world = world(DeviceSpeed::SlowSsd.rates().expect("is slower"));
        let file = world.files.open(&path, OpenMode::CreateNew).expect("is made");
        file.append(&[IoSlice::new(b"abc"), IoSlice::new(b"def")]).expect("writes");
        file.sync_range(0, 4).expect("syncs");
        file.sync_data().expect("syncs");
        let mut buffer = [0; 4];
        assert_eq!(file.read_at(&mut buffer, 1).expect("reads"), 4);
        assert_eq!((&buffer, file.length().expect("tells")), (b"bcde", 6));
        assert_eq!(std::fs::read(&path).expect("reads"), b"abcdef");
    }
}
