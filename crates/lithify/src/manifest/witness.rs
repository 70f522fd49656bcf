//! The file `WITNESS`: how far the manifest and the log were known to be durable.
//!
//! What the end of a manifest looks like when it was torn by a crash, it looks like when it was
//! durable and has been lost since. So the length is kept in a second place, written without a
//! sync after the manifest was synced: never ahead of the truth, and behind it only until the
//! system writes its pages back. Two slots in turn, so that a torn write leaves the other one.
//!
//! It is a help for finding damage: no failure of a call on this file is one of the database.

use super::names::FileName;
use crate::base::FileNumber;
use crate::format::{Checksum, Decoder, put_u32, put_u64};
use crate::fs::{File, FileSystem, OpenMode};
use crate::{Error, Result};
use std::io::IoSlice;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) const MAGIC: &[u8; 8] = b"LITHWIT\n";

/// The bytes of a slot.
const SLOT_SIZE_BYTES: usize = 56;

/// Where the slots start: in sectors of their own.
const SLOT_OFFSETS: [u64; 2] = [0, 512];

/// What was known to be durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Witness {
    /// The manifest in force.
    pub manifest_number: FileNumber,
    /// The end of its last edit that was synced.
    pub manifest_end_offset: u64,
    /// The newest log segment with a durable header; 0 for none.
    pub log_number: FileNumber,
}

impl Witness {
    pub fn encode(self, database_id: u128) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SLOT_SIZE_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&database_id.to_le_bytes());
        put_u64(&mut bytes, self.manifest_number);
        put_u64(&mut bytes, self.manifest_end_offset);
        put_u64(&mut bytes, self.log_number);
        put_u32(&mut bytes, 0);
        let checksum = Checksum::of(&bytes);
        put_u32(&mut bytes, checksum);
        bytes
    }

    /// A whole slot, and the database that it is of.
    pub fn decode(bytes: &[u8]) -> Result<(u128, Self)> {
        let mut decoder = Decoder::new(bytes);
        let magic: [u8; 8] = decoder.array()?;
        let database_id = u128::from_le_bytes(decoder.array()?);
        let witness = Witness {
            manifest_number: decoder.u64()?,
            manifest_end_offset: decoder.u64()?,
            log_number: decoder.u64()?,
        };
        let reserved = decoder.u32()?;
        let computed = Checksum::of(&bytes[..decoder.position()]);
        let stored = decoder.u32()?;
        if magic != *MAGIC || reserved != 0 || stored != computed {
            return Err(Error::corruption("slot of WITNESS"));
        }
        Ok((database_id, witness))
    }

    /// The slots of a file with their offsets.
    pub fn slots(file: &dyn File) -> [(u64, Result<(u128, Self)>); 2] {
        SLOT_OFFSETS.map(|offset| {
            let mut bytes = [0; SLOT_SIZE_BYTES];
            let count = file.read_at(&mut bytes, offset).unwrap_or(0);
            (offset, Witness::decode(&bytes[..count]))
        })
    }

    /// What the file says of a database and its manifest; nothing if it says nothing.
    pub fn read(
        file_system: &dyn FileSystem,
        directory: &Path,
        (database_id, manifest_number): (u128, FileNumber),
    ) -> Self {
        let mut known = Witness { manifest_number, ..Witness::default() };
        let path = FileName::Witness.path(directory);
        let Ok(file) = file_system.open(&path, OpenMode::Read) else { return known };
        for (_, slot) in Witness::slots(&*file) {
            match slot {
                Ok((id, slot)) if (id, slot.manifest_number) == (database_id, manifest_number) => {
                    known.manifest_end_offset =
                        known.manifest_end_offset.max(slot.manifest_end_offset);
                    known.log_number = known.log_number.max(slot.log_number);
                }
                _ => {}
            }
        }
        known
    }
}

/// Keeps the file while a database is open. Any thread.
pub(crate) struct WitnessKeeper {
    /// `None` if there is none to be had.
    file: Option<Arc<dyn File>>,
    database_id: u128,
    written_bytes: AtomicU64,
    /// What is known, and the slot to write next.
    known: Mutex<(Witness, usize)>,
}

impl WitnessKeeper {
    /// Opens the file or makes it; writes nothing yet.
    pub fn open(
        file_system: &dyn FileSystem,
        directory: &Path,
        database_id: u128,
        log_number: FileNumber,
    ) -> Self {
        let path = FileName::Witness.path(directory);
        let there = file_system.open(&path, OpenMode::ReadWrite);
        let file = there.or_else(|_| file_system.open(&path, OpenMode::CreateNew)).ok();
        WitnessKeeper { file, ..WitnessKeeper::none(database_id, log_number) }
    }

    /// Keeps nothing: for a database that is only read.
    pub fn none(database_id: u128, log_number: FileNumber) -> Self {
        let known = Witness { log_number, ..Witness::default() };
        WitnessKeeper {
            file: None,
            database_id,
            written_bytes: AtomicU64::new(0),
            known: Mutex::new((known, 0)),
        }
    }

    /// Notes that a manifest is in force and durable up to an offset.
    pub fn manifest_is_durable(&self, manifest_number: FileNumber, end_offset: u64) {
        let bytes = self.note(|known| {
            known.manifest_number = manifest_number;
            known.manifest_end_offset = end_offset;
        });
        self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes that the header of a log segment is durable. Gives the bytes written for that.
    pub fn log_has_begun(&self, log_number: FileNumber) -> u64 {
        self.note(|known| known.log_number = known.log_number.max(log_number))
    }

    /// The newest log segment that has begun; 0 for none.
    pub fn log_number(&self) -> FileNumber {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).0.log_number
    }

    /// Bytes written so far for the manifest.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Writes what is known after `change`; gives the bytes written.
    fn note(&self, change: impl FnOnce(&mut Witness)) -> u64 {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (witness, slot) = &mut *known;
        change(witness);
        let Some(file) = &self.file else { return 0 };
        let bytes = witness.encode(self.database_id);
        if file.write_at(&[IoSlice::new(&bytes)], SLOT_OFFSETS[*slot]).is_err() {
            return 0;
        }
        *slot = 1 - *slot;
        bytes.len() as u64
    }
}
