//! The file `CURRENT`: which manifest is in force.

use super::names::FileName;
use crate::base::FileNumber;
use crate::format::{Checksum, Decoder, put_u32, put_u64};
use crate::fs::{File, FileSystem, OpenMode, read_exact_at};
use crate::{Error, Result};
use std::io::IoSlice;
use std::path::Path;

pub(crate) const MAGIC: &[u8; 8] = b"LITHCUR\n";

/// The length of the file, in bytes.
pub(crate) const SIZE_BYTES: usize = 40;

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Current {
    /// The database in this directory.
    pub database_id: u128,
    /// The number of the manifest in force.
    pub manifest_number: FileNumber,
}

impl Current {
    pub fn encode(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SIZE_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.database_id.to_le_bytes());
        put_u64(&mut bytes, self.manifest_number);
        put_u32(&mut bytes, 0);
        let checksum = Checksum::of(&bytes);
        put_u32(&mut bytes, checksum);
        bytes
    }

    pub fn decode(bytes: &[u8; SIZE_BYTES]) -> Result<Self> {
        let mut decoder = Decoder::new(bytes);
        let magic: [u8; 8] = decoder.array()?;
        if magic != *MAGIC {
            return Err(Error::corruption("magic of CURRENT")
                .expected(MAGIC.escape_ascii(), magic.escape_ascii()));
        }
        let database_id = u128::from_le_bytes(decoder.array()?);
        let manifest_number = decoder.u64()?;
        let reserved = decoder.u32()?;
        let stored = decoder.u32()?;
        let computed = Checksum::of(&bytes[..SIZE_BYTES - 4]);
        if stored != computed {
            return Err(Error::corruption("checksum of CURRENT")
                .expected(format_args!("{computed:#010x}"), format_args!("{stored:#010x}")));
        }
        if manifest_number == 0 || reserved != 0 {
            return Err(Error::corruption("CURRENT names no manifest, or uses reserved bytes"));
        }
        Ok(Current { database_id, manifest_number })
    }

    /// Reads the file; [`crate::ErrorKind::NotFound`] where there is none.
    pub fn read(file_system: &dyn FileSystem, directory: &Path) -> Result<Self> {
        let path = FileName::Current.path(directory);
        Current::read_file(&*file_system.open(&path, OpenMode::Read)?)
    }

    /// Reads an open file.
    pub fn read_file(file: &dyn File) -> Result<Self> {
        let path = file.path();
        let length = file.length()?;
        if length != SIZE_BYTES as u64 {
            check_not_foreign(file)?;
            return Err(Error::corruption("length of CURRENT")
                .at(path, length.min(SIZE_BYTES as u64))
                .expected(SIZE_BYTES, length));
        }
        let bytes = read_exact_at(file, 0, SIZE_BYTES)?;
        let bytes = bytes.first_chunk().ok_or_else(|| Error::corruption("length of CURRENT"));
        bytes.and_then(Current::decode).map_err(|error| error.at(path, 0))
    }

    /// Writes the next `CURRENT` beside the one in force, durably.
    pub fn write_temporary(self, file_system: &dyn FileSystem, directory: &Path) -> Result<()> {
        let path = FileName::CurrentTemporary.path(directory);
        let file = file_system.open(&path, OpenMode::CreateOrTruncate)?;
        file.write_at(&[IoSlice::new(&self.encode())], 0)?;
        if planted!(CurrentUnsynced) {
            return Ok(());
        }
        file.sync_data()
    }

    /// Puts the temporary file into force. After an error it is unknown which one is.
    pub fn install_temporary(file_system: &dyn FileSystem, directory: &Path) -> Result<()> {
        let temporary = FileName::CurrentTemporary.path(directory);
        file_system.rename(&temporary, &FileName::Current.path(directory))?;
        if planted!(CurrentNameUnsynced) {
            return Ok(());
        }
        file_system.sync_directory(directory)
    }
}

/// Refuses the `CURRENT` of LevelDB and RocksDB: the name of a manifest, as text.
fn check_not_foreign(file: &dyn File) -> Result<()> {
    const NAME: &[u8] = b"MANIFEST-";
    let mut head = [0; NAME.len()];
    if file.read_at(&mut head, 0)? == head.len() && head == *NAME {
        let what = "this is a database of LevelDB or RocksDB, which is left as it is; \
            lithify import NEW_DIRECTORY OLD_DIRECTORY --create makes a copy that opens";
        return Err(Error::invalid(what).in_file(file.path()));
    }
    Ok(())
}
