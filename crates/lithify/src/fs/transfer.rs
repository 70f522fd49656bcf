//! Copying and checking whole files: in pieces, at a bounded rate, with progress, and stopped when
//! the caller says so.
//!
//! Memory is one piece. The caller's function is called on the caller's thread, between pieces,
//! with no lock held: it may do anything but keep the transfer waiting.

use super::rate::RateLimit;
use super::{Environment, File};
use crate::format::Checksum;
use crate::{Error, ErrorKind, Result};
use std::fmt;
use std::io::IoSlice;
use std::ops::ControlFlow;

/// Files are read, written and checked in pieces of so many bytes.
pub const PIECE_BYTES: u64 = 1 << 20;

/// How far a transfer has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferProgress {
    /// Bytes that are done: copied, checked, or found not to need it.
    pub done_bytes: u64,
    /// Bytes in all, as far as is known.
    pub total_bytes: u64,
    /// Files that are done.
    pub done_files: u64,
    /// Files in all, as far as is known.
    pub total_files: u64,
}

/// Hears how far a transfer has come; `Break` stops it with [`ErrorKind::Cancelled`].
pub type TransferListener<'a> = dyn Fn(&TransferProgress) -> ControlFlow<()> + 'a;

/// How files are to be copied or checked.
#[derive(Clone, Copy, Default)]
pub struct TransferOptions<'a> {
    /// At most so many bytes a second are read; 0 for as fast as it goes.
    pub bytes_per_second: u64,
    /// Called after every piece of a mebibyte, and while waiting for the rate.
    pub listener: Option<&'a TransferListener<'a>>,
}

impl TransferOptions<'_> {
    /// Tells the listener, if there is one, and gives its answer.
    pub(crate) fn tell(&self, progress: &TransferProgress) -> ControlFlow<()> {
        self.listener.map_or(ControlFlow::Continue(()), |listener| listener(progress))
    }
}

impl fmt::Debug for TransferOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransferOptions")
            .field("bytes_per_second", &self.bytes_per_second)
            .field("listener", &self.listener.is_some())
            .finish()
    }
}

/// The checksums of a file's pieces, and its length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pieces {
    pub(crate) size_bytes: u64,
    /// CRC-32C of each piece.
    pub(crate) checksums: Vec<u32>,
}

impl Pieces {
    /// How many pieces a file of that length has.
    pub(crate) fn count(size_bytes: u64) -> u64 {
        size_bytes.div_ceil(PIECE_BYTES)
    }
}

/// A transfer of several files.
pub(crate) struct Transfer<'a> {
    environment: &'a dyn Environment,
    options: TransferOptions<'a>,
    rate: RateLimit,
    paced_bytes: u64,
    progress: TransferProgress,
    piece: Vec<u8>,
}

impl<'a> Transfer<'a> {
    pub(crate) fn new(environment: &'a dyn Environment, options: TransferOptions<'a>) -> Self {
        Transfer {
            environment,
            options,
            rate: RateLimit::new(environment, options.bytes_per_second),
            paced_bytes: 0,
            progress: TransferProgress::default(),
            piece: Vec::new(),
        }
    }

    /// More files are to come.
    pub(crate) fn announce(&mut self, files: u64, bytes: u64) {
        self.progress.total_files += files;
        self.progress.total_bytes += bytes;
    }

    /// A file needed no work.
    pub(crate) fn pass(&mut self, bytes: u64) -> Result<()> {
        self.progress.done_files += 1;
        self.progress.done_bytes += bytes;
        self.listen()
    }

    /// Copies the first `size_bytes` of a file and makes the copy durable; gives what was copied.
    /// With `expected`, a source that is something else is [`ErrorKind::Corruption`] at the piece.
    pub(crate) fn copy(
        &mut self,
        source: &dyn File,
        size_bytes: u64,
        target: &dyn File,
        expected: Option<&Pieces>,
    ) -> Result<Pieces> {
        let pieces = self.pass_over(source, size_bytes, expected, &mut |offset, piece| {
            target.write_at(&[IoSlice::new(piece)], offset)
        })?;
        target.sync_data()?;
        Ok(pieces)
    }

    /// Reads a file and compares it. [`ErrorKind::Corruption`] with the offset of the piece that
    /// differs, or of the end where the length does.
    pub(crate) fn check(&mut self, file: &dyn File, expected: &Pieces) -> Result<()> {
        let length = file.length()?;
        if length > expected.size_bytes {
            return Err(Error::corruption("the file is longer than what was written")
                .at(file.path(), expected.size_bytes)
                .expected(expected.size_bytes, length));
        }
        self.pass_over(file, expected.size_bytes, Some(expected), &mut |_, _| Ok(())).map(drop)
    }

    fn pass_over(
        &mut self,
        source: &dyn File,
        size_bytes: u64,
        expected: Option<&Pieces>,
        on_piece: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<Pieces> {
        let mut checksums = Vec::with_capacity(Pieces::count(size_bytes) as usize);
        let mut offset = 0;
        while offset < size_bytes {
            let wanted = PIECE_BYTES.min(size_bytes - offset) as usize;
            self.piece.resize(wanted, 0);
            let count = source.read_at(&mut self.piece, offset)?;
            if count < wanted {
                return Err(Error::corruption("file ends early")
                    .at(source.path(), offset + count as u64)
                    .expected(size_bytes, offset + count as u64));
            }
            let checksum = Checksum::of(&self.piece);
            if let Some(expected) = expected {
                compare(source, offset, expected.checksums.get(checksums.len()), checksum)?;
            }
            on_piece(offset, &self.piece)?;
            checksums.push(checksum);
            offset += wanted as u64;
            self.progress.done_bytes += wanted as u64;
            self.keep_pace(wanted as u64)?;
        }
        self.progress.done_files += 1;
        Ok(Pieces { size_bytes, checksums })
    }

    /// Waits until so many more bytes may have been read.
    fn keep_pace(&mut self, bytes: u64) -> Result<()> {
        self.paced_bytes = self.paced_bytes.saturating_add(bytes);
        self.listen()?;
        self.rate.wait(self.environment, self.paced_bytes, || self.listen())
    }

    fn listen(&self) -> Result<()> {
        match self.options.tell(&self.progress) {
            ControlFlow::Break(()) => {
                Err(Error::new(ErrorKind::Cancelled, "stopped by the caller"))
            }
            ControlFlow::Continue(()) => Ok(()),
        }
    }
}

fn compare(file: &dyn File, offset: u64, expected: Option<&u32>, found: u32) -> Result<()> {
    match expected {
        Some(expected) if *expected == found => Ok(()),
        expected => {
            let expected = expected.map_or("no piece".into(), |sum| format!("{sum:#010x}"));
            Err(Error::corruption("the bytes from here on are not what was written")
                .at(file.path(), offset)
                .expected(expected, format_args!("{found:#010x}")))
        }
    }
}
