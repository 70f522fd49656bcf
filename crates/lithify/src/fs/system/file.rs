//! An open file of the operating system.

use super::platform;
use crate::fs::{Advice, File, read_each_at};
use crate::{Error, Result};
use std::cell::RefCell;
use std::io::{self, IoSlice, IoSliceMut};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The largest piece that a direct read copies through its aligned buffer.
const BOUNCE_BYTES_MAX: usize = 1 << 20;

thread_local! {
    /// The memory of direct reads, kept so that a block read does not allocate.
    static BOUNCE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

pub(super) struct SystemFile {
    file: std::fs::File,
    path: PathBuf,
    opened_length: u64,
    /// Where the next append goes. Held while appending, so that appends follow one another
    /// without holes. A failed append leaves it: the next one overwrites what was half written.
    end: Mutex<u64>,
    /// The alignment of reads past the page cache, if opened so.
    direct_alignment: Option<usize>,
    /// Set when the system refused a direct read; from then on the page cache is used.
    direct_refused: AtomicBool,
}

/// Writes all of the buffers by calls that may stop short anywhere, continuing where they did.
pub(super) fn write_all_by(
    buffers: &[IoSlice<'_>],
    mut offset: u64,
    mut write: impl FnMut(&[IoSlice<'_>], u64) -> io::Result<usize>,
) -> io::Result<()> {
    let mut rest = buffers;
    // How much of the first of the rest is written already.
    let mut skip = 0;
    while let Some(first) = rest.first() {
        let written = if first.is_empty() {
            0
        } else {
            let tail = [IoSlice::new(&first[skip..])];
            match write(if skip > 0 { &tail } else { rest }, offset)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => count,
            }
        };
        offset += written as u64;
        skip += written;
        while let Some(first) = rest.first().filter(|first| first.len() <= skip) {
            skip -= first.len();
            rest = &rest[1..];
        }
    }
    Ok(())
}

impl SystemFile {
    pub(super) fn new(
        file: std::fs::File,
        path: &Path,
        direct_alignment: Option<usize>,
    ) -> Result<Self> {
        let failed = |e| Error::io("cannot open", path, e);
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        Ok(SystemFile {
            file,
            path: path.to_path_buf(),
            opened_length: metadata.len(),
            end: Mutex::new(metadata.len()),
            direct_alignment,
            direct_refused: AtomicBool::new(false),
        })
    }

    fn failed(&self, what: &str, error: impl Into<io::Error>) -> Error {
        Error::io(what, &self.path, error.into())
    }

    fn failed_at(&self, what: &str, offset: u64, error: impl Into<io::Error>) -> Error {
        self.failed(what, error).at_offset(offset)
    }

    fn end(&self) -> std::sync::MutexGuard<'_, u64> {
        self.end.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn write_all(&self, buffers: &[IoSlice<'_>], offset: u64) -> io::Result<()> {
        write_all_by(buffers, offset, |rest, offset| platform::write_at(&self.file, rest, offset))
    }

    fn read_cached(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut total = 0;
        while total < buffer.len() {
            let rest = &mut buffer[total..];
            let count = platform::read_at(&self.file, rest, offset + total as u64)?;
            if count == 0 {
                break;
            }
            total += count;
        }
        Ok(total)
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let Some(alignment) = self.direct_alignment else {
            return self.read_cached(buffer, offset);
        };
        if !self.direct_refused.load(Ordering::Relaxed) {
            match self.read_direct(buffer, offset, alignment) {
                Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                    platform::stop_direct(&self.file)?;
                    self.direct_refused.store(true, Ordering::Relaxed);
                }
                done => return done,
            }
        }
        self.read_cached(buffer, offset)
    }

    /// Reads whole aligned stretches into an aligned buffer and copies the wanted bytes out.
    fn read_direct(&self, buffer: &mut [u8], offset: u64, alignment: usize) -> io::Result<usize> {
        BOUNCE.with_borrow_mut(|memory| {
            let mut total = 0;
            while total < buffer.len() {
                let position = offset + total as u64;
                let skip = (position % alignment as u64) as usize;
                let wanted = skip + (buffer.len() - total).min(BOUNCE_BYTES_MAX);
                let stretch = wanted.next_multiple_of(alignment);
                if memory.len() < stretch + alignment {
                    memory.resize(stretch + alignment, 0);
                }
                let start = memory.as_ptr().align_offset(alignment);
                let aligned = &mut memory[start..start + stretch];
                let count = platform::read_at(&self.file, aligned, position - skip as u64)?;
                let copied = count.min(wanted).saturating_sub(skip);
                buffer[total..total + copied].copy_from_slice(&aligned[skip..skip + copied]);
                total += copied;
                // Only the end of the file ends a direct read off the alignment.
                if copied == 0 || !count.is_multiple_of(alignment) {
                    break;
                }
            }
            Ok(total)
        })
    }
}

impl File for SystemFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn length(&self) -> Result<u64> {
        let metadata = self.file.metadata();
        Ok(metadata.map_err(|e| self.failed("cannot read the length", e))?.len())
    }

    fn opened_length(&self) -> Result<u64> {
        Ok(self.opened_length)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.read(buffer, offset).map_err(|e| self.failed_at("cannot read", offset, e))
    }

    fn read_vectored_at(&self, buffers: &mut [&mut [u8]], offset: u64) -> Result<usize> {
        if self.direct_alignment.is_some() {
            return read_each_at(self, buffers, offset);
        }
        let filled = buffers.iter_mut().filter(|buffer| !buffer.is_empty());
        let mut slices: Vec<IoSliceMut<'_>> = filled.map(|b| IoSliceMut::new(b)).collect();
        let mut rest = &mut slices[..];
        let mut total = 0;
        while !rest.is_empty() {
            let position = offset + total as u64;
            let count = platform::read_vectored_at(&self.file, rest, position)
                .map_err(|e| self.failed_at("cannot read", position, e))?;
            if count == 0 {
                break;
            }
            total += count;
            IoSliceMut::advance_slices(&mut rest, count);
        }
        Ok(total)
    }

    fn write_at(&self, buffers: &[IoSlice<'_>], offset: u64) -> Result<()> {
        self.write_all(buffers, offset).map_err(|e| self.failed_at("cannot write", offset, e))?;
        let after = offset + buffers.iter().map(|buffer| buffer.len() as u64).sum::<u64>();
        let mut end = self.end();
        *end = after.max(*end);
        Ok(())
    }

    fn append(&self, buffers: &[IoSlice<'_>]) -> Result<u64> {
        let mut end = self.end();
        let offset = *end;
        self.write_all(buffers, offset).map_err(|e| self.failed_at("cannot append", offset, e))?;
        *end = offset + buffers.iter().map(|buffer| buffer.len() as u64).sum::<u64>();
        Ok(offset)
    }

    fn sync_data(&self) -> Result<()> {
        if planted!(SystemSyncSkipped) {
            return Ok(());
        }
        platform::sync_data(&self.file, &self.path).map_err(|e| self.failed("cannot sync", e))
    }

    fn sync_range(&self, offset: u64, length: u64) -> Result<()> {
        platform::start_write_back(&self.file, offset, length);
        Ok(())
    }

    fn preallocate(&self, offset: u64, length: u64) -> Result<()> {
        if length == 0 {
            return Ok(());
        }
        platform::preallocate(&self.file, offset, length)
            .map_err(|e| self.failed_at("cannot preallocate", offset, e))
    }

    fn truncate(&self, length: u64) -> Result<()> {
        let mut end = self.end();
        self.file.set_len(length).map_err(|e| self.failed_at("cannot truncate", length, e))?;
        *end = length;
        Ok(())
    }

    fn advise(&self, offset: u64, length: u64, advice: Advice) -> Result<()> {
        if advice == Advice::WillNeed && self.direct_alignment.is_some() {
            // It would bring into the page cache what is read past it.
            return Ok(());
        }
        platform::advise(&self.file, offset, length, advice);
        Ok(())
    }

    fn direct_io_alignment(&self) -> Option<usize> {
        self.direct_alignment.or_else(|| platform::direct_alignment(&self.file))
    }
}
