//! Pages in one file: as they are, in slots of half a page, or in their places with holes.
//!
//! Lengths of compressed pages are kept in memory, where a real store has them in the page's head.

use std::collections::HashMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use lithify::Compression;
use lithify::codec::{CodecId, Compressor, Decompressor};
use nix::fcntl::{FallocateFlags, fallocate};
use serde::{Deserialize, Serialize};

use super::{PAGE_BYTES, Pages};
use crate::adapter::codec::Codec;
use crate::run::RunError;

/// Name of the file.
const FILE: &str = "pages";

/// A slot of the old kind.
const SLOT_BYTES: usize = PAGE_BYTES / 2;

/// Holes begin and end at blocks of the file system.
const BLOCK_BYTES: usize = 4096;

/// How pages lie on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// As they are.
    Plain,
    /// Compressed, in slots of half a page; what does not fit takes a second slot.
    Slot,
    /// Compressed, each in its place, with a hole behind it.
    Hole,
    /// As rows of a column family of Lithify.
    Tree,
}

impl Layout {
    /// All of them.
    pub const ALL: [Layout; 4] = [Layout::Plain, Layout::Slot, Layout::Hole, Layout::Tree];

    /// Its name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Plain => "plain",
            Layout::Slot => "slot",
            Layout::Hole => "hole",
            Layout::Tree => "tree",
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Layout::ALL.into_iter().find(|layout| layout.name() == text);
        found.ok_or_else(|| {
            let known: Vec<&str> = Layout::ALL.iter().map(|layout| layout.name()).collect();
            format!("there is no layout \"{text}\"; there are: {}", known.join(", "))
        })
    }
}

/// The file.
pub struct PageFile {
    path: PathBuf,
    file: File,
    layout: Layout,
    codec: CodecId,
    compressor: Compressor,
    decompressor: Decompressor,
    buffer: Vec<u8>,
    /// Stored bytes of each page; of one that did not shrink those of a page.
    lengths: Vec<u32>,
    /// The second slots of pages that once did not fit into one. They lie behind all first ones.
    second_slots: HashMap<u64, u64>,
}

impl PageFile {
    /// An empty one for so many pages.
    ///
    /// # Errors
    /// The file cannot be made, or the codec is not known.
    pub fn create(
        directory: &Path,
        layout: Layout,
        codec: Codec,
        pages: u64,
    ) -> Result<PageFile, RunError> {
        let path = directory.join(FILE);
        let opened = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let file = opened.map_err(|error| RunError::io(&path, error))?;
        let compression = Compression::from(codec);
        let compressor = Compressor::new(compression)
            .map_err(|error| RunError::new(format!("codec {codec}: {error}")))?;
        Ok(PageFile {
            path,
            file,
            layout,
            codec: compression.codec,
            compressor,
            decompressor: Decompressor::new(),
            buffer: Vec::with_capacity(2 * PAGE_BYTES),
            lengths: vec![0; pages as usize],
            second_slots: HashMap::new(),
        })
    }

    fn failed(&self, error: std::io::Error) -> RunError {
        RunError::io(&self.path, error)
    }

    fn length(&mut self, number: u64) -> Result<&mut u32, RunError> {
        let count = self.lengths.len();
        let length = self.lengths.get_mut(number as usize);
        length.ok_or_else(|| RunError::new(format!("there is no page {number} of {count}")))
    }

    /// Puts the page into the buffer, compressed where that is smaller.
    fn encode(&mut self, number: u64, page: &[u8]) -> Result<(), RunError> {
        self.buffer.clear();
        self.compressor
            .compress(page, &mut self.buffer)
            .map_err(|error| RunError::new(format!("page {number}: {error}")))?;
        if self.buffer.len() >= PAGE_BYTES {
            self.buffer.clear();
            self.buffer.extend_from_slice(page);
        }
        *self.length(number)? = self.buffer.len() as u32;
        Ok(())
    }

    fn write_slots(&mut self, number: u64) -> Result<(), RunError> {
        let fits = self.buffer.len() <= SLOT_BYTES;
        self.buffer.resize(if fits { SLOT_BYTES } else { 2 * SLOT_BYTES }, 0);
        let (first, second) = self.buffer.split_at(SLOT_BYTES);
        let offset = |slot: u64| slot * SLOT_BYTES as u64;
        self.file.write_all_at(first, offset(number)).map_err(|error| self.failed(error))?;
        if fits {
            return Ok(());
        }
        let next = self.lengths.len() as u64 + self.second_slots.len() as u64;
        let slot = *self.second_slots.entry(number).or_insert(next);
        self.file.write_all_at(second, offset(slot)).map_err(|error| self.failed(error))
    }

    /// Writes whole blocks, and gives the rest of the page back.
    fn write_with_hole(&mut self, number: u64) -> Result<(), RunError> {
        let stored_bytes = self.buffer.len().next_multiple_of(BLOCK_BYTES);
        self.buffer.resize(stored_bytes, 0);
        let offset = number * PAGE_BYTES as u64;
        self.file.write_all_at(&self.buffer, offset).map_err(|error| self.failed(error))?;
        let hole_bytes = PAGE_BYTES - stored_bytes;
        if hole_bytes == 0 {
            return Ok(());
        }
        let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        let start = (offset + stored_bytes as u64).cast_signed();
        fallocate(&self.file, flags, start, hole_bytes as i64).map_err(|error| {
            RunError::new(format!("this file system punches no holes: fallocate: {error}"))
        })
    }
}

impl Pages for PageFile {
    fn write(&mut self, number: u64, page: &[u8]) -> Result<(), RunError> {
        if self.layout == Layout::Plain {
            *self.length(number)? = PAGE_BYTES as u32;
            let offset = number * PAGE_BYTES as u64;
            return self.file.write_all_at(page, offset).map_err(|error| self.failed(error));
        }
        self.encode(number, page)?;
        match self.layout {
            Layout::Slot => self.write_slots(number),
            _ => self.write_with_hole(number),
        }
    }

    fn sync(&mut self) -> Result<(), RunError> {
        self.file.sync_data().map_err(|error| self.failed(error))
    }

    fn read(&mut self, number: u64, page: &mut Vec<u8>) -> Result<(), RunError> {
        let length = *self.length(number)? as usize;
        self.buffer.resize(length, 0);
        let in_first = if self.layout == Layout::Slot { length.min(SLOT_BYTES) } else { length };
        let slot_bytes = if self.layout == Layout::Slot { SLOT_BYTES } else { PAGE_BYTES };
        let (first, second) = self.buffer.split_at_mut(in_first);
        let read = self.file.read_exact_at(first, number * slot_bytes as u64);
        let read = read.and_then(|()| match self.second_slots.get(&number) {
            Some(slot) => self.file.read_exact_at(second, slot * SLOT_BYTES as u64),
            None => Ok(()),
        });
        read.map_err(|error| RunError::io(&self.path, error))?;
        page.clear();
        if length == PAGE_BYTES {
            page.extend_from_slice(&self.buffer);
            return Ok(());
        }
        page.resize(PAGE_BYTES, 0);
        self.decompressor
            .decompress(self.codec, &self.buffer, page)
            .map_err(|error| RunError::new(format!("page {number}: {error}")))
    }

    fn pages_in_two_slots(&self) -> u64 {
        let lengths = self.second_slots.keys().filter_map(|page| self.lengths.get(*page as usize));
        lengths.filter(|length| **length as usize > SLOT_BYTES).count() as u64
    }

    fn remove(self: Box<Self>) -> Result<(), RunError> {
        // The last name and the last handle: what follows is the file system's.
        std::fs::remove_file(&self.path).map_err(|error| self.failed(error))
    }
}
