//! The file `HEAT`: what policies that decide have observed of their levels.
//!
//! It is written without a sync, over itself, every ten seconds at most and when the database closes.
//! It is knowledge, no data: it may be missing, old or damaged, and then reads are not known. No
//! failure of a call on it is one of the database. `docs/format/manifest.md` has its form.

use crate::base::{ColumnFamilyId, Level};
use crate::chooser::LevelWatch;
use crate::format::{Checksum, Decoder, put_u32, put_u64};
use crate::fs::{FileSystem, OpenMode, read_exact_at};
use crate::manifest::FileName;
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::path::Path;

pub(crate) const MAGIC: &[u8; 8] = b"LITHEA2\n";

/// The bytes of the file beside its records.
const FRAME_BYTES: usize = 36;
const RECORD_BYTES: usize = 96;

/// More records than a database of any use has: what says otherwise is damaged.
const RECORDS_MAX: u32 = 1 << 20;

/// What was observed of a family.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FamilyHeat {
    /// The share of reads that reached a device.
    pub device_share: f64,
    /// Of each level of which something is known.
    pub levels: Vec<(Level, [f64; LevelWatch::NUMBERS])>,
}

/// Everything in the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadHeat {
    /// By family.
    pub families: BTreeMap<ColumnFamilyId, FamilyHeat>,
}

impl ReadHeat {
    /// No more of a file is read.
    pub const SIZE_BYTES_MAX: usize = FRAME_BYTES + RECORD_BYTES * RECORDS_MAX as usize;

    /// The bytes of the file.
    pub fn encode(&self, database_id: u128) -> Vec<u8> {
        let count: usize = self.families.values().map(|family| family.levels.len()).sum();
        let mut bytes = Vec::with_capacity(FRAME_BYTES + RECORD_BYTES * count);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&database_id.to_le_bytes());
        put_u32(&mut bytes, count as u32);
        put_u32(&mut bytes, 0);
        for (id, family) in &self.families {
            for (level, numbers) in &family.levels {
                put_u32(&mut bytes, *id);
                put_u32(&mut bytes, *level as u32);
                put_u64(&mut bytes, family.device_share.to_bits());
                numbers.iter().for_each(|number| put_u64(&mut bytes, number.to_bits()));
            }
        }
        let checksum = Checksum::of(&bytes);
        put_u32(&mut bytes, checksum);
        bytes
    }

    /// What the beginning of a file says, and of which database. What is behind it is of an older,
    /// longer one.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn decode(bytes: &[u8]) -> Result<(u128, ReadHeat)> {
        let damaged = || Error::corruption("HEAT");
        let mut decoder = Decoder::new(bytes);
        let magic: [u8; 8] = decoder.array()?;
        let database_id = u128::from_le_bytes(decoder.array()?);
        let (count, reserved) = (decoder.u32()?, decoder.u32()?);
        if magic != *MAGIC || reserved != 0 || count > RECORDS_MAX {
            return Err(damaged());
        }
        let mut heat = ReadHeat::default();
        for _ in 0..count {
            let (id, level) = (decoder.u32()?, decoder.u32()? as Level);
            let mut numbers = [0.0; LevelWatch::NUMBERS + 1];
            for number in &mut numbers {
                *number = f64::from_bits(decoder.u64()?);
            }
            let [device_share, numbers @ ..] = numbers;
            let family = heat.families.entry(id).or_default();
            family.device_share = device_share;
            family.levels.push((level, numbers));
        }
        let computed = Checksum::of(&bytes[..decoder.position()]);
        if decoder.u32()? != computed {
            return Err(damaged());
        }
        Ok((database_id, heat))
    }

    /// What the file says of a database; nothing if it says nothing.
    pub fn read(files: &dyn FileSystem, directory: &Path, database_id: u128) -> ReadHeat {
        let read = || {
            let file = files.open(&FileName::Heat.path(directory), OpenMode::Read)?;
            let size = (file.length()? as usize).min(ReadHeat::SIZE_BYTES_MAX);
            ReadHeat::decode(&read_exact_at(&*file, 0, size)?)
        };
        match read() {
            Ok((id, heat)) if id == database_id => heat,
            _ => ReadHeat::default(),
        }
    }

    /// Writes the file over what it was. A crash may leave a mixture of both, which says nothing.
    pub fn write(&self, files: &dyn FileSystem, directory: &Path, database_id: u128) {
        let path = FileName::Heat.path(directory);
        let there = files.open(&path, OpenMode::ReadWrite);
        let Ok(file) = there.or_else(|_| files.open(&path, OpenMode::CreateNew)) else { return };
        let _ = file.write_at(&[IoSlice::new(&self.encode(database_id))], 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::World;

    fn heat() -> ReadHeat {
        let of = |share: f64| FamilyHeat {
            device_share: share,
            levels: vec![(0, [1.0; LevelWatch::NUMBERS]), (3, [0.25; LevelWatch::NUMBERS])],
        };
        ReadHeat { families: [(1, of(0.5)), (7, of(0.0))].into() }
    }

    #[test]
    fn what_is_written_is_read_and_of_another_database_nothing() {
        let world = World::memory(1);
        let directory = Path::new("rocks.db");
        world.files.create_directory(directory).unwrap();
        assert_eq!(ReadHeat::read(&*world.files, directory, 5), ReadHeat::default());
        heat().write(&*world.files, directory, 5);
        assert_eq!(ReadHeat::read(&*world.files, directory, 5), heat());
        assert_eq!(ReadHeat::read(&*world.files, directory, 6), ReadHeat::default());
        // A shorter one leaves the end of the longer one behind it.
        ReadHeat::default().write(&*world.files, directory, 5);
        assert_eq!(ReadHeat::read(&*world.files, directory, 5), ReadHeat::default());
    }

    #[test]
    fn every_changed_byte_and_every_cut_is_found() {
        let bytes = heat().encode(5);
        for index in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[index] ^= 0x10;
            assert!(ReadHeat::decode(&damaged).is_err(), "{index}");
            assert!(ReadHeat::decode(&bytes[..index]).is_err(), "{index}");
        }
    }
}
