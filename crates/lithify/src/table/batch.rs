//! Point reads of several keys from one table.
//!
//! Keys come in ascending order, so that the filter is asked for all of them in a row, the index
//! gives ascending blocks, each block is fetched once whatever number of keys lie in it, and
//! those that have to be read are asked for together.

use super::index::IndexRecord;
use super::reader::{HashedKey, ReadContext, TableReader};
use crate::Result;
use crate::base::{SequenceNumber, Slice, Trailer};

/// Keys that are looked for at once: bounds the blocks that are held for them.
const KEYS_AT_ONCE: usize = 128;

impl TableReader {
    /// [`TableReader::get`] for several keys, which ascend. `found` takes a key's place in `keys`
    /// and its newest entry that is visible at `snapshot`; it is not called for keys without one.
    pub fn get_many(
        &self,
        keys: &[HashedKey<'_>],
        snapshot: SequenceNumber,
        context: &mut ReadContext<'_>,
        found: &mut dyn FnMut(usize, Trailer, Slice),
    ) -> Result<()> {
        let target = Trailer::seek(snapshot);
        let mut records: Vec<IndexRecord> = Vec::new();
        // The keys that the filter lets through, with the place of their block in `records`.
        let mut wanted: Vec<(usize, usize)> = Vec::new();
        for start in (0..keys.len()).step_by(KEYS_AT_ONCE) {
            let end = keys.len().min(start + KEYS_AT_ONCE);
            records.clear();
            wanted.clear();
            for (place, key) in keys.iter().enumerate().take(end).skip(start) {
                if !self.filter_admits(key.hash, context)? {
                    continue;
                }
                let Some(record) = self.find_record(key.bytes, target, context)? else {
                    // Behind the last block, and so are all further keys.
                    break;
                };
                if records.last().is_none_or(|last| last.handle != record.handle) {
                    records.push(record);
                }
                wanted.push((place, records.len() - 1));
            }
            let frames = self.data_blocks(&records, context)?;
            for (place, block) in wanted.iter().copied() {
                let (frame, record) = (frames[block].clone(), &records[block]);
                let entry = self.entry_in(frame, record, keys[place].bytes, target)?;
                if let Some((trailer, value)) = entry {
                    self.meter_found(context);
                    found(place, trailer, value);
                }
            }
        }
        Ok(())
    }
}
